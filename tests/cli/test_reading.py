"""Commands that read what there is: their choices, refusals and exit codes; what they print is in the golden files."""

import json
from pathlib import Path

import pytest

from tests import made
from tests.conftest import Shell
from tests.records import DATED, stored, stored_by_turns


def test_list_shows_every_builtin_scenario(shell: Shell) -> None:
    table, scenarios = shell.out("list"), json.loads(shell.out("list", "--json"))
    assert {"cifar10_cnn", "iris_mlp", "mnist_dense"} <= {scenario["name"] for scenario in scenarios}
    assert all(scenario["name"] in table for scenario in scenarios)
    assert {scenario["suite"] for scenario in scenarios} == {"published", "tiny", "modern", "layers", "feeds"}
    table = shell.out("list", "--suite", "tiny")
    assert "resnet8" in table and "iris_mlp" not in table


def test_a_page_of_the_manual_is_shown_by_its_name_wherever_kerasbench_is_installed(shell: Shell) -> None:
    pages = dict(line.split("  ", 1) for line in shell.out("docs").splitlines() if line and "#" not in line)
    assert {name.strip(): title.strip() for name, title in pages.items()}["limitations"] == "Limitations"
    text = shell.out("docs", "limitations")
    assert text.startswith("# Limitations\n") and text == shell.out("docs", "docs/limitations.md")
    assert "unknown page of the manual 'limits'; did you mean 'limitations'?" in shell.refused("docs", "limits")


@pytest.mark.parametrize(("steps_ms", "code"), [((3.0, 3.01, 2.99), 3), ((1.0, 1.01, 0.99), 0)])
def test_compare_fails_on_a_regression_only_if_asked_to(shell: Shell, steps_ms: tuple[float, ...], code: int) -> None:
    stored_by_turns(Path("old"), 1, 2.0, 2.01, 1.99)
    stored_by_turns(Path("new"), 2, *steps_ms)
    shell.out("compare", "old", "new")
    assert shell("compare", "old", "new", "--fail-on", "regression")[0] == code


def test_compare_fails_on_other_code_and_says_it_first(shell: Shell) -> None:
    for place, number, kernel in (("old", 1, "flash"), ("new", 2, "math")):
        stored_by_turns(Path(place), number, 2.0, 2.01, 1.99, facts={"attention": kernel})
    assert "dense on PyTorch: attention: math; before: flash" in shell.out("compare", "old", "new")
    assert shell("compare", "old", "new", "--fail-on", "facts")[0] == 3
    assert shell("compare", "old", "old", "--fail-on", "facts")[0] == 0
    assert [shell("compare", "old", "new", "--fail-on", name)[0] for name in ("attention", "recurrent")] == [3, 0]
    assert shell("compare", "old", "new", "--fail-on", "regression")[0] == 0


def test_where_nothing_was_judged_it_does_not_pass_and_says_why(shell: Shell) -> None:
    stored(Path("old"), 2.0, 2.01, 1.99)
    stored(Path("new"), 3.0, 3.01, 2.99, started="2026-01-02T09:00:00Z")
    code, out, err = shell("compare", "old", "new", "--fail-on", "regression")
    assert (code, out, err.count("\n")) == (1, shell.out("compare", "old", "new"), 1)
    assert err.startswith(
        "kerasbench: everything is undecided, so nothing has passed: 1 case: a verdict needs three runs"
    )


def test_more_than_two_stand_side_by_side_under_their_places(shell: Shell) -> None:
    places = {"a/results": 1.0, "b/results": 2.0, "keras-3.14": 3.0, "keras-3.15": 4.0}
    for place, step_ms in places.items():
        stored(Path(place), step_ms)
    lines = [line for line in shell.out("compare", *places, "keras-3.15").splitlines() if "| " in line]
    header, row = ([cell.strip() for cell in line.split("|")[2:-1]] for line in lines)
    assert header == [*list(places)[:3], "keras-3.15 (1)", "keras-3.15 (2)"]
    assert row == ["1.00 ms", "2.0×", "3.0×", "4.0×", "4.0×"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("compare old", "compare takes two or more"),
        ("compare old old --fail-on anything", "'--fail-on': 'anything' is not one of 'regression', 'facts'"),
        ("compare old old old --fail-on regression", "--fail-on needs two sets of results"),
        ("history old --over moon", "'--over': 'moon' is not one of 'date', 'keras', 'backend', 'commit'"),
        ("history old --over keras", "add the chart's file, --plot FILE.svg"),
        ("history old --csv --json", "exclude each other"),
        ("history old --plot README.md", "ends in .svg, such as ratios.svg, not README.md"),
    ],
)
def test_what_cannot_be_read_so_is_refused(shell: Shell, words: str, complaint: str) -> None:
    for place, chip in (("old", "M1"), ("new", "M2")):
        made.stored(Path(place), made.changed(made.record(made.trial()), machine={"chip": chip}))
    Path("README.md").touch()
    assert complaint in shell.refused(*words.split())


def test_history_draws_over_versions_and_leaves_somebody_else_s_file_as_it_is(shell: Shell) -> None:
    for run in DATED:
        made.stored(Path("runs"), run)
    shell.out("history", "runs", "--over", "keras", "--plot", "ratios.svg")
    assert ">3.15.0</text>" in Path("ratios.svg").read_text()
    Path("mine.svg").write_text("mine")
    code, _, err = shell("history", "runs", "--plot", "mine.svg")
    assert (code, Path("mine.svg").read_text()) == (2, "mine") and "left as it is" in err
