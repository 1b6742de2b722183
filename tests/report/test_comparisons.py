"""Runs, machines and versions side by side."""

import dataclasses
import io

from rich.console import Console

from kerasbench import __version__
from kerasbench.analysis.findings import findings
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.versus import compare
from kerasbench.events import RoundEnded, RunStarted
from kerasbench.plan.duration import History
from kerasbench.report import comparisons, html, page
from kerasbench.report.conditions import INSECURE
from kerasbench.report.progress import ConsoleProgress
from kerasbench.results.record import Carried, Record
from kerasbench.text import NOTHING
from tests import made
from tests.analysis.test_versus import AGAIN, ALIKE, NEW, OLD, SLOWER, differing, record, trials
from tests.report.table import drawn, rows, section

OTHER = dataclasses.replace(made.MACHINE, chip="Chip 10")


def run(factor: float = 1.0, backends: tuple[str, ...] = ("torch",)) -> Record:
    trials = [one for backend in backends for one in made.thrice(2.0 * factor, backend=backend)]
    return made.record(*trials, rounds=3)


def by_turns(first: int, factor: float = 1.0) -> list[Record]:
    runs = [run(factor * each) for each in made.SCATTER]
    return [
        made.changed(one, started=str(first + 2 * index), trials=[made.changed(each, code="a") for each in one.trials])
        for index, one in enumerate(runs)
    ]


def test_a_line_has_both_steps_their_ratio_and_the_verdict() -> None:
    page = drawn(comparisons.changes(compare(by_turns(1), by_turns(2, 1.5)), "one", "two"))
    header, line = rows(page)
    assert header == ["case", "one", "two", "new / old", "beside", "verdict"]
    assert line[:2] == ["dense torch cpu", "2.00 ms ±0.2 %"]
    assert line[3].startswith("1.50 ±") and line[4:] == [NOTHING, "**slower**"]
    assert "Welch" in page and "Descriptive" not in page


def test_of_one_run_a_side_there_is_a_ratio_without_an_interval_and_one_beside_another_column() -> None:
    page = drawn(comparisons.changes(compare([run(1.0, ("jax", "torch"))], [run(1.5, ("jax", "torch"))]), "a", "b"))
    _, jax, torch = rows(page)
    assert jax[3:] == ["1.50", "1.00 (torch cpu)", NOTHING]
    assert torch[3:] == ["1.50", "1.00 (jax cpu)", NOTHING]
    assert "over 2 cases: 1.500." in page and "Welch" not in page
    assert "Descriptive only, without verdicts: 2 cases: a verdict needs three runs of each side by turns" in page
    assert "beside: the ratio to another column of the same run" in page


def test_what_fails_now_is_named_with_its_cause() -> None:
    failed = made.record(made.trial(failure=dataclasses.replace(made.FAILURE, cause="died | *hard*")))
    page = drawn(comparisons.changes(compare([run()], [failed]), "a", "b"))
    assert "Measured before, failing now: dense torch cpu: crash: died \\| \\*hard\\*" in page
    assert "No longer measured" not in page


def test_nothing_in_common_leaves_lists_and_no_empty_table() -> None:
    page = drawn(comparisons.changes(compare([run()], [run(backends=("jax",))]), "a", "b"))
    assert "New: dense jax cpu." in page and "No longer measured: dense torch cpu." in page
    assert "|" not in page and "Welch" not in page
    assert "No case was measured on both sides." in page


def test_every_column_of_every_machine_stands_beside_the_others() -> None:
    there = dataclasses.replace(run(0.5, ("jax", "torch")), machine=OTHER)
    page = drawn(comparisons.side_by_side([("m1", summarize(run())), ("box", summarize(there))]))
    assert rows(page) == [
        ["scenario", "fastest measured", "m1: torch cpu", "box: jax cpu", "box: torch cpu"],
        ["dense", "box: jax cpu", "**2.00 ms ±0.2 %, 2.00×**", "**1.00 ms ±0.2 %**", "1.00 ms ±0.2 %"],
    ]
    assert "descriptive" in page


def test_what_one_machine_has_not_measured_is_left_open_and_what_failed_is_named() -> None:
    conv = made.record(made.trial(name="conv"), made.trial(failure=made.FAILURE))
    found = {
        line[0]: line[1:]
        for line in rows(drawn(comparisons.side_by_side([("m1", summarize(run())), ("box", summarize(conv))])))
    }
    assert found["dense"] == ["m1: torch cpu", "**2.00 ms ±0.2 %**", "*crash*"]
    assert found["conv"] == ["box: torch cpu", NOTHING, "**2.10 ms**"]


def test_a_page_of_machines_says_which_versions_differ_and_whether_others_could_read_it() -> None:
    other = dataclasses.replace(run(), kerasbench="0.0.1", carried=Carried("box", "a", insecure=True))
    found = [comparisons.brief(name, findings(one)) for name, one in (("m1", run()), ("box", other))]
    text = drawn(comparisons.of_machines(found, {}))
    assert text.startswith(f"# kerasbench on 2 machines ({INSECURE})\n")
    assert rows(section(text, "Versions that differ"))[1:] == [["kerasbench", __version__, "0.0.1"]]
    assert "Versions that differ" not in drawn(comparisons.of_machines(found[:1], {}))


WORSE = SLOWER | {NEW: {"step_ms": 2.2, "first_ms": 600, "mib": 1024, "rate": 0.5}}
TITLE = "new against old"


def test_the_answer_counts_and_names_what_is_worse() -> None:
    text = drawn(page.screen(findings(record(*trials(WORSE), *trials(ALIKE, "jax")))))
    answer = section(text, TITLE)
    assert "Training step of new against old, 2 rows: slower in 1, the same in 1; geometric mean" in answer
    said = [line for line in answer.splitlines() if line.startswith("- ")]
    assert [line.partition(": ")[2].partition("×")[0] for line in said] == [
        "a training step takes 1.096",
        "the first step takes 2.000",
        "predict does 0.500",
        "the process takes 2.000",
    ]
    assert all(line.startswith("- dense torch cpu: ") for line in said)
    assert "is fastest" not in text  # which is not what was asked


def test_first_step_prediction_and_memory_have_a_table_of_their_own() -> None:
    text = drawn(page.screen(findings(record(*trials(WORSE)))))
    others = rows(section(text, "First step, prediction and memory"))
    assert [(one[2], one[-1]) for one in others[1:]] == [
        ("First step", "**slower**"),
        ("predict_on_batch, one sample", "same"),
        ("predict, throughput", "**slower**"),
        ("Peak memory of the process", "**more**"),
    ]
    assert [one.partition(" ±")[0] for one in others[3][3:6]] == ["20,000 /s", "10,000 /s", "0.500"]


def test_every_backend_has_its_own_mean() -> None:
    one = comparisons.sentences(findings(record(*trials(WORSE), *trials(ALIKE, name="conv"))).versus[0])[0]
    assert "geometric mean of the ratios 1.0" in one and "(" not in one
    two = comparisons.sentences(findings(record(*trials(WORSE), *trials(ALIKE, "jax"))).versus[0])[0]
    assert two.endswith(("(torch cpu 1.096, jax cpu 1.000).", "(jax cpu 1.000, torch cpu 1.096)."))


def test_a_terminal_shows_of_many_figures_those_that_differ() -> None:
    names = ("dense", "conv", "deep", "wide")
    many = findings(record(*trials(WORSE), *(one for name in names[1:] for one in trials(ALIKE, name=name))))
    title = "First step, prediction and memory"
    brief = section(drawn(page.screen(many)), title)
    assert [one[0] for one in rows(brief)[1:]] == ["dense"] * 3
    assert "Not shown: 13 figures without a significant difference." in brief
    whole = section(drawn(page.whole(many)), title)
    assert len(rows(whole)) == 1 + 16 and "Not shown" not in whole
    alike = findings(record(*(one for name in names for one in trials(ALIKE, name=name))))
    none = section(drawn(page.screen(alike)), title)
    assert "|" not in none and "Not shown: 16 figures" in none


def test_the_control_is_printed_beside_each_ratio_and_takes_verdicts_away() -> None:
    text = drawn(page.screen(findings(record(*trials(SLOWER), *trials(ALIKE | {AGAIN: {"step_ms": 2.5}}, "jax")))))
    head, jax, torch = rows(section(text, TITLE))
    place = head.index("base / base")
    assert (jax[place], jax[-1]) == ("1.24 ±0.0 %", "–")
    assert (torch[place], torch[-1]) == ("1.00 ±0.0 %", "**slower**")
    said = section(text, TITLE)
    assert "- dense jax cpu: no verdict, old differs from itself: 1.24 ±0.0 %." in said
    assert "A/A control" not in text


def test_a_threshold_and_few_rounds_are_said() -> None:
    text = drawn(page.whole(findings(record(*trials(ALIKE, blocks=1), threshold=0.05))))
    notes = section(text, TITLE)
    assert "by more than 5 %. Same: significantly within 5 %." in notes
    assert "Fewer than three rounds" in notes
    assert "## Training step\n" not in text  # which would compare backends, whose blocks were others


def test_what_computes_something_else_and_what_cannot_be_compared_is_said() -> None:
    failed = made.trial(1, backend="jax", failure=made.FAILURE, options=OLD)
    found = findings(record(*differing(), failed, made.trial(1, backend="jax", options=NEW)))
    said = comparisons.sentences(found.versus[0])
    assert said[0] == "Nothing was timed with both versions."
    assert said[1].startswith("dense torch cpu: new computes something else than old: the loss of step 2 is 2, ")
    assert said[2].startswith("dense jax cpu: not compared, old has no figure: crash: ")
    assert html.of_results(found) == said


def test_a_head_that_fails_is_said_with_its_cause() -> None:
    kept = [one for one in trials(ALIKE) if one.options != NEW]
    found = findings(record(*kept, made.trial(1, failure=made.FAILURE, options=NEW)))
    (line,) = comparisons.worse(found.versus[0])
    assert line.startswith("dense torch cpu: new fails, old does not: crash: ")


def test_after_a_round_the_answer_is_that_of_the_versions() -> None:
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=300))
    run = dataclasses.replace(record(*trials(SLOWER)), stopped_because="")
    progress(RunStarted(made.plan(made.case(options=OLD), made.case(options=NEW)), run, History()))
    progress(RoundEnded(run))
    assert "Training step of new against old, 1 row: slower in 1." in out.getvalue()
    assert "is fastest" not in out.getvalue()


def test_figures_become_data() -> None:
    found = findings(record(*trials(SLOWER)))
    first, *_ = comparisons.rows(found.versus[0])
    line = dict(zip(comparisons.COLUMNS, first, strict=True))
    known = {"scenario": "dense", "backend": "torch", "options": "", "figure": "train_step_ms"}
    assert known.items() <= line.items()
    assert line["verdict"] == "slower" and isinstance(line["low"], float)
