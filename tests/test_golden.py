"""What pages, CSV and JSON say of a made run of every mode, variant, warning and failure: nothing of it gets lost.

After a change of what they say: python -m pytest tests/test_golden.py --update
"""

import csv
import dataclasses
import difflib
import inspect
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kerasbench import api
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.metrics import MEMORY_BY_PHASE, METRICS
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.table import MEASURED, NAMES, Observation, observations
from kerasbench.api.results import Results
from kerasbench.host.noise import WarningKind
from kerasbench.modes import COMMANDS
from kerasbench.modes.versus import search as searches
from kerasbench.modes.versus.bisect import Bisection, Probe, bisect
from kerasbench.pages import data
from kerasbench.protocol.columns import APART, CaseKey, Column
from kerasbench.protocol.messages import Code
from kerasbench.report import document, markdown
from kerasbench.report.document import Document
from kerasbench.results.run import Run
from kerasbench.variants import BY_NAME, CAUSES
from tests import catalogue, made
from tests.conftest import Shell
from tests.records import exactly
from tests.report.table import on_terminal
from tests.warned import pair

GOLDEN = Path(__file__).parent / "golden"
UPDATE = "python -m pytest tests/test_golden.py --update"
NUMBER = re.compile(r"(?<![\w.+-])-?\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")
DIGITS = 6  # of a number: the last ones of a logarithm differ between systems
LINES = 60  # of a difference, that are shown
Printed = dict[str, str]  # by the name of the golden file


def rounded(text: str) -> str:
    return NUMBER.sub(lambda number: repr(float(f"{float(number[0]):.{DIGITS}g}")), text)


def in_lines(document: Mapping[str, Any]) -> str:
    parts = []
    for name, value in document.items():
        if isinstance(value, list) and value:
            records = ",\n".join(json.dumps(record, allow_nan=False) for record in value)
            parts.append(f"{json.dumps(name)}: [\n{records}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def rows(records: Sequence[Mapping[str, object]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def store(runs: Sequence[Run], folder: str = "results") -> None:
    for run in runs:
        made.stored(Path(folder), run)


def as_json(shell: Shell, *words: str) -> str:
    return in_lines(json.loads(shell.out(*words, "--json")))


ALL_FORMS = ("run", "explain", "fastest")  # the others have Markdown and JSON
CHARTS = ("sweep", "soak", "merged")
MAIN = re.compile(r"<main>(.*)</main>", re.DOTALL)


def of_runs(name: str, shell: Shell) -> Printed:
    """What is said of runs that were measured here: the page of each, and what they are in Python, of all together."""
    store(catalogue.RUNS[name]())
    results = api.load("results")
    results = type(Results.of(results.records[0]))(results.records)  # as it is returned by what has measured it
    texts = {"json": in_lines(results.to_data())}
    shell.out("report", "results")
    for kind in ("md", "svg") if name in (*ALL_FORMS, *CHARTS) else ("md",):
        texts[kind] = "\n".join(file.read_text("utf-8") for file in sorted(Path("results").rglob(f"2026*.{kind}")))
    if name == "merged":
        texts["index.md"] = Path("results/README.md").read_text("utf-8")
    if name in ALL_FORMS:
        texts["csv"] = shell.out("report", "results", "--format", "csv")
        texts["txt"] = "".join(f"{line.rstrip()}\n" for line in on_terminal(results.page).splitlines())
        (texts["html"],) = MAIN.findall(shell.out("report", "results", "--format", "html"))
    return texts


def of_machines(name: str, shell: Shell) -> Printed:
    for number, run in enumerate(catalogue.machines(), start=1):
        store([run], f"results/m{number}")
    several = [f"results/m{number}" for number in (1, 2)]
    texts = {"md": shell.out("report", *several), "json": as_json(shell, "compare", *several, several[0])}
    return texts | {"m1.m2.json": as_json(shell, "compare", *several), "compare.md": shell.out("compare", *several)}


def of_comparison(name: str, shell: Shell) -> Printed:
    """Three runs of each side by turns, a case with one of each, and a case that fails by now."""
    old, new = catalogue.over_time((3.0, 3.01, 2.99), 1, "3.15.0"), catalogue.over_time((4.0, 4.01, 3.99), 2, "3.16.0")
    broken = made.trial(failure=made.FAILURE, name="conv")
    store([*old, catalogue.run(*pair("conv"), *pair("deep"))], "old")
    store([*new, catalogue.run(broken, *pair("deep", 3.5))], "new")
    figures = rows(api.compare("old", "new").to_dicts())
    printed = shell.out("compare", "old", "new")
    return {"json": as_json(shell, "compare", "old", "new"), "figures.csv": figures, "md": printed}


def of_history(name: str, shell: Shell) -> Printed:
    store(catalogue.over_time((3.0, 6.0, 2.0)))
    store(catalogue.over_time((2.0, 2.1), machine={"identifier": "m2"}))
    shell.out("history", "results", "--plot", "history.svg")
    chart = Path("history.svg").read_text("utf-8")
    csv, page = shell.out("history", "results", "--csv"), shell.out("history", "results")
    return {"json": as_json(shell, "history", "results"), "csv": csv, "md": page, "svg": chart}


def of_search(name: str, shell: Shell) -> Printed:
    """One that finds the version, and one that a probe ends which says nothing."""
    case = CaseKey("dense", "default", Column("torch", "cpu"))
    versions = [f"keras==3.{minor}" for minor in range(6)]

    def searched(why: str = "") -> Bisection:
        measure = exactly([1.0, 1.0, 1.0, 1.0, 1.25, 1.25], v2=why)
        control = made.estimate(1.0, 1.01, trials=6)

        def measured(index: int, case: object) -> Probe:
            probe = measure(index, case)
            return dataclasses.replace(
                probe, contrast=dataclasses.replace(made.known(probe.contrast), control_ratio=control)
            )

        return bisect(6, measured)

    printed = {}
    for name_of, search in (("", searched()), ("undecided.", searched("keras==3.0 differs from itself"))):
        printed[f"{name_of}json"] = in_lines(searches.of_search(search, versions, case).to_data())
        printed[f"{name_of}md"] = markdown.rendered(searches.bisected(search, versions, "dense torch cpu"))
    return printed


PRINTED: Mapping[str, Callable[[str, Shell], Printed]] = {
    **dict.fromkeys(catalogue.RUNS, of_runs),
    "machines": of_machines,
    "compare": of_comparison,
    "history": of_history,
    "bisect": of_search,
}


@pytest.mark.parametrize("name", PRINTED)
def test_pages_csv_and_json_are_as_they_were(name: str, shell: Shell, request: pytest.FixtureRequest) -> None:
    printed = PRINTED[name](name, shell).items()
    data_kinds = ("csv", "json", "svg")  # whose last digits differ between systems
    texts = {f"{name}.{kind}": rounded(text) if kind.endswith(data_kinds) else text for kind, text in printed}
    if request.config.getoption("update"):
        for place in GOLDEN.glob(f"{name}.*"):
            place.unlink()
        for file, text in texts.items():
            (GOLDEN / file).write_text(text, encoding="utf-8")
    assert {place.name for place in GOLDEN.glob(f"{name}.*")} == texts.keys(), UPDATE
    differing: list[str] = []
    for file, text in texts.items():
        lines = (GOLDEN / file).read_text(encoding="utf-8").splitlines(), text.splitlines()
        differing += difflib.unified_diff(*lines, f"tests/golden/{file}", "now", n=0, lineterm="")
    if differing:
        shown = "\n".join(differing[:LINES])
        pytest.fail(f"{shown}\n… {len(differing)} lines in all. If they are meant: {UPDATE}", pytrace=False)


RECORD = GOLDEN / "recorded.json"  # a result file, and not what is said of one


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [msgspec.json.decode(file.read_bytes(), type=Document) for file in GOLDEN.glob("*.json") if file != RECORD]


@pytest.fixture(scope="module")
def observed() -> list[Observation]:
    return observations(summarize(run) for runs in catalogue.RUNS.values() for run in runs())


def test_there_is_a_file_of_each_and_no_other() -> None:
    names = {file.name.partition(".")[0] for file in GOLDEN.iterdir()}
    assert names == {*PRINTED, RECORD.stem}


def test_they_have_every_mode_warning_and_metric(documents: list[Document], observed: list[Observation]) -> None:
    cases = [case for printed in documents for case in (*printed.results, *printed.failures)]
    options = {name for case in cases for name in case.configuration.options}
    commands = {*COMMANDS, data.COMPARE, data.HISTORY}
    assert {printed.command for printed in documents} == commands
    sizes, causes = {"batch", "width"}, {cause.name for cause in CAUSES}  # sizes have fields; causes are said alike
    assert options - causes == {*BY_NAME, *APART} - sizes - causes
    assert {warned.kind for printed in documents for warned in printed.warnings} == set(WarningKind)
    assert {failed.code for printed in documents for failed in printed.failures} == set(Code)
    assert {ratio.verdict for printed in documents for ratio in printed.ratios} == {*Verdict, None}
    metrics = {line.metric for line in observed} - {""}
    assert metrics & {*MEMORY_BY_PHASE}  # of which each phase says the same
    assert metrics | {*MEMORY_BY_PHASE} == {metric.name for metric in METRICS}
    assert {line.status for line in observed} == {MEASURED, *Code}


def test_they_have_every_field_with_something_in_it(documents: list[Document], observed: list[Observation]) -> None:
    assert {name for line in observed for name in NAMES if getattr(line, name) not in ("", None)} == {*NAMES}
    types = [
        value for value in vars(document).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)
    ]
    fields = {field for type_ in types for field in own_fields(type_)}
    assert fields - {said for printed in documents for said in filled(printed)} == {("RunFacts", "result_file")}


def own_fields(kind: type) -> list[tuple[str, str]]:
    return [(kind.__name__, name) for name in inspect.get_annotations(kind)]


def filled(value: object) -> Iterator[tuple[str, str]]:
    """Yield the fields that are not empty, of a record and of all within it, by the class that has them."""
    if isinstance(value, list):
        for part in value:
            yield from filled(part)
    elif isinstance(value, msgspec.Struct):
        for kind in inspect.getmro(type(value))[:-1]:
            yield from (field for field in own_fields(kind) if getattr(value, field[1]))
        for part in msgspec.structs.asdict(value).values():
            yield from filled(part)
