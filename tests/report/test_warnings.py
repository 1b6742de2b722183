"""What stands above the fold of a page: five kinds of warnings at most, the one that matters most first."""

import re

from kerasbench.analysis.findings import Findings
from kerasbench.host.noise import WarningKind
from kerasbench.report import page, warnings
from kerasbench.report.warnings import MOST, ORDER, TITLE
from tests import catalogue, made
from tests.report.table import plain


def test_every_kind_of_warning_has_a_place_or_no_consequence() -> None:
    without = {WarningKind.SCATTERED, WarningKind.WAITED}  # an interval shows the one, a median leaves the other out
    of_runs = {"power", "governor", "quota", "load", "heat", "others", "steal", "gpu", "gpu heat", "gpu clock"}
    assert {*ORDER} | without == {kind for kind in WarningKind if kind not in of_runs}


def test_five_kinds_stand_above_the_fold_and_the_rest_below() -> None:
    (run,) = catalogue.warnings()
    whole = page.whole(Findings.of(run))
    (above,) = (section for section in whole.sections if section.title == TITLE)
    assert len(above.lines) == MOST + 1  # and that another machine has other numbers
    below = next(section for section in whole.sections if section.title.endswith("more warnings"))
    kinds = len(warnings.cautions(Findings.of(run)))
    assert below.folded and len(below.lines) == kinds - MOST > 3


def test_a_number_marks_what_a_warning_is_about() -> None:
    (run,) = catalogue.warnings()
    findings = Findings.of(run)
    shown = warnings.cautions(findings)
    marks = warnings.marks_of(shown)
    marking = [caution for caution in shown if caution.cases]
    for number, caution in enumerate(marking, start=1):
        for row, column in caution.cases:
            assert number in marks.of(row, column)
    table = next(section.table for section in page.whole(findings).sections if section.table)
    assert {mark for row in table.rows for cell in row for mark in cell.marks} <= {*range(1, len(shown) + 1)}


def test_a_command_is_written_out_for_a_case() -> None:
    (run,) = catalogue.warnings()
    said = [plain(caution.words) for caution in warnings.cautions(Findings.of(run))]
    (memory,) = (text for text in said if "getting memory back from Linux" in text)
    assert re.search(r"an estimated \d+ % *\)|an estimated \d+ to \d+ %", memory)
    assert re.search(r"kerasbench --scenario \w+ --backend \w+ --malloc default,keep", memory)


def test_nothing_is_warned_of_where_nothing_was_measured() -> None:
    titles = [
        section.title for section in page.whole(Findings.of(made.record(made.trial(failure=made.FAILURE)))).sections
    ]
    assert TITLE not in titles and any("failed" in title for title in titles)
