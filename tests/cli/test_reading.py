"""Commands that read what there is: their choices, refusals and exit codes; what they print is in the golden files."""

import json
from pathlib import Path

import pytest

from kerasbench.cli import main
from tests import made
from tests.records import DATED, stored, stored_by_turns


def test_list_shows_every_builtin_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["list"]) == 0
    table = capsys.readouterr().out
    assert main.main(["list", "--json"]) == 0
    scenarios = json.loads(capsys.readouterr().out)
    assert {"cifar10_cnn", "iris_mlp", "mnist_dense"} <= {scenario["name"] for scenario in scenarios}
    assert all(scenario["name"] in table for scenario in scenarios)
    assert {scenario["suite"] for scenario in scenarios} == {"published", "tiny", "modern"}
    assert main.main(["list", "--suite", "tiny"]) == 0
    table = capsys.readouterr().out
    assert "resnet8" in table and "iris_mlp" not in table


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return stored(Path("old"), 2.0, 2.01, 1.99)


@pytest.mark.parametrize(("steps_ms", "code"), [((3.0, 3.01, 2.99), 3), ((1.0, 1.01, 0.99), 0)])
def test_compare_fails_on_a_regression_only_when_it_is_asked_to(
    tmp_path: Path, steps_ms: tuple[float, ...], code: int
) -> None:
    sides = [str(stored_by_turns(tmp_path / "before", 1, 2.0, 2.01, 1.99))]
    sides += [str(stored_by_turns(tmp_path / "new", 2, *steps_ms))]
    assert main.main(["compare", *sides]) == 0
    assert main.main(["compare", *sides, "--fail-on", "regression"]) == code


def test_where_nothing_was_judged_it_does_not_pass_and_says_why(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = stored(Path("new"), 3.0, 3.01, 2.99, started="2026-01-02T09:00:00Z")
    assert main.main(["compare", str(old), str(new)]) == 0
    out = capsys.readouterr().out
    assert main.main(["compare", str(old), str(new), "--fail-on", "regression"]) == 1
    printed, err = capsys.readouterr()
    assert printed == out
    assert err.startswith("kerasbench: nothing could be judged, so this is no pass: 1 case: a verdict needs three runs")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("compare old", "compare takes two or more"),
        ("compare old old --fail-on anything", "'--fail-on': 'anything' is not 'regression'"),
        ("compare old old old --fail-on regression", "--fail-on needs two sets of results"),
        ("history old --over moon", "'--over': 'moon' is not one of 'date', 'keras', 'backend', 'commit'"),
        ("history old --over keras", "add the chart's file, --plot FILE.svg"),
        ("history old --csv --json", "exclude each other"),
        ("history old --plot README.md", "ends in .svg, such as ratios.svg, not README.md"),
        ("report README.md --format bmf", "of one machine, not of 0"),
        ("report old new --format bmf", "of one machine, not of 2"),
    ],
)
@pytest.mark.usefixtures("old")
def test_what_cannot_be_read_so_is_one_line(capsys: pytest.CaptureFixture[str], words: str, complaint: str) -> None:
    made.stored(Path("new"), made.changed(made.record(made.trial()), machine={"chip": "M1"}))
    Path("README.md").touch()
    assert main.main(words.split()) == 2
    out, err = capsys.readouterr()
    assert complaint in err and err.count("\n") == 1
    assert not out


def test_history_draws_over_versions_and_leaves_a_file_of_somebody_else_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in DATED:
        made.stored(tmp_path / "runs", run)
    ask, picture, mine = ["history", str(tmp_path / "runs")], tmp_path / "ratios.svg", tmp_path / "mine.svg"
    assert main.main([*ask, "--over", "keras", "--plot", str(picture)]) == 0
    assert ">3.15.0</text>" in picture.read_text()
    mine.write_text("mine")
    assert main.main([*ask, "--plot", str(mine)]) == 2
    assert "left as it is" in capsys.readouterr().err and mine.read_text() == "mine"


def test_report_prints_bencher_s_format(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["report", str(old), "--format", "bmf"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["dense torch cpu"]["train_step_ms"]["value"] == pytest.approx(2.0, abs=0.1)
