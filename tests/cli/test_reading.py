"""Commands that read what there is, from their words to what a user reads and the exit code."""

import dataclasses
import json
from pathlib import Path

import pytest

from kerasbench.cli import main
from kerasbench.results.store import Store
from tests import made
from tests.records import stored, stored_by_turns


def test_list_shows_every_builtin_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["list"]) == 0
    table = capsys.readouterr().out
    assert main.main(["list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"cifar10_cnn", "iris_mlp", "mnist_dense"} <= {one["name"] for one in data}
    assert all(one["name"] in table for one in data)
    assert {one["suite"] for one in data} == {"published", "tiny", "modern"}
    assert main.main(["list", "--suite", "tiny"]) == 0
    table = capsys.readouterr().out
    assert "resnet8" in table and "iris_mlp" not in table


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return stored(tmp_path / "old", 2.0, 2.01, 1.99)


@pytest.mark.parametrize(
    ("steps_ms", "verdict", "finding", "code"),
    [
        ((3.0, 3.01, 2.99), "slower", "1 of 1 case clearly slower, 0 clearly faster", 3),
        ((1.0, 1.01, 0.99), "faster", "0 of 1 case clearly slower, 1 clearly faster", 0),
    ],
)
def test_compare_prints_the_verdict_and_fails_on_a_regression_only_when_it_is_asked_to(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    steps_ms: tuple[float, ...],
    verdict: str,
    finding: str,
    code: int,
) -> None:
    before = stored_by_turns(tmp_path / "before", 1, 2.0, 2.01, 1.99)
    new = stored_by_turns(tmp_path / "new", 2, *steps_ms)
    assert main.main(["compare", str(before), str(new)]) == 0
    assert f"{new}: {finding}\n" in capsys.readouterr().out
    assert main.main(["compare", str(before), str(new), "--json"]) == 0
    assert [ratio["verdict"] for ratio in json.loads(capsys.readouterr().out)["ratios"]] == [verdict]
    assert main.main(["compare", str(before), str(new), "--fail-on", "regression"]) == code


def test_where_nothing_was_judged_it_does_not_pass_and_says_why(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = stored(tmp_path / "new", 3.0, 3.01, 2.99, started="2026-01-02T09:00:00Z")
    assert main.main(["compare", str(old), str(new)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Nothing between the two is decided (1 case)\n") and "1.50×, not judged" in out
    assert main.main(["compare", str(old), str(new), "--fail-on", "regression"]) == 1
    printed, err = capsys.readouterr()
    assert printed == out
    assert err.startswith("kerasbench: nothing could be judged, so this is no pass: 1 case: a verdict needs three runs")
    assert err.count("\n") == 1


def test_more_than_two_stand_side_by_side_under_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"a/results": 1.0, "b/results": 2.0, "keras-3.14": 3.0, "keras-3.15": 4.0}
    for place, step_ms in places.items():
        stored(Path(place), step_ms)
    assert main.main(["compare", *places, "keras-3.15"]) == 0
    out = capsys.readouterr().out
    header, row = ([case.strip() for case in line.split("|")[2:-1]] for line in out.splitlines() if "| " in line)
    named = [*list(places)[:3], "keras-3.15 (1)", "keras-3.15 (2)"]
    assert header == named
    assert row == ["1.00 ms", "2.0×", "3.0×", "4.0×", "4.0×"]
    assert "machine" not in out.partition("|")[0]
    assert main.main(["compare", *places, "--json"]) == 0
    steps = [result for result in json.loads(capsys.readouterr().out)["results"] if result["metric"] == "train_step_ms"]
    assert {result["side"]: round(result["value"], 2) for result in steps} == places


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["old"], "compare takes two or more"),
        (["old", "old", "--fail-on", "anything"], "'--fail-on': 'anything' is not 'regression'"),
        (["old", "old", "old", "--fail-on", "regression"], "--fail-on needs two sets of results"),
    ],
)
def test_compare_refuses_what_it_cannot_compare(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(old.parent)
    assert main.main(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert complaint in err and err.count("\n") == 1
    assert not out


def test_history_prints_a_page_or_csv_and_draws_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day, torch_ms in ((1, 3.0), (2, 3.3)):
        started = f"2026-01-{day:02d}T03:04:05Z"
        found = [
            made.trial(1, backend=name, found=made.measurement(ms)) for name, ms in (("jax", 2.0), ("torch", torch_ms))
        ]
        Store.create(tmp_path / "runs", started).finish(dataclasses.replace(made.record(*found), started=started))
    picture = tmp_path / "ratios.svg"
    assert main.main(["history", str(tmp_path / "runs"), "--over", "keras", "--plot", str(picture)]) == 0
    assert "torch cpu relative to jax cpu" in capsys.readouterr().out and ">3.15.1</text>" in picture.read_text()
    assert main.main(["history", str(tmp_path / "runs"), "--csv"]) == 0
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == "time,commit,keras,torch,dense torch cpu relative to jax cpu" and len(lines) == 2
    assert main.main(["history", str(tmp_path / "runs"), "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["history"]
    assert [round(point["takes_times_as_much"], 2) for point in points] == pytest.approx([1.5, 1.65], abs=0.05)
    assert main.main(["history", str(tmp_path / "runs"), "--over", "moon"]) == 2
    assert "'--over': 'moon' is not one of 'date', 'keras', 'backend', 'commit'" in capsys.readouterr().err
    mine = tmp_path / "mine.svg"
    mine.write_text("mine")
    for words, complaint in (
        (["--over", "keras"], "add the chart's file, --plot FILE.svg"),
        (["--csv", "--json"], "exclude each other"),
        (["--plot", "README.md"], "ends in .svg, such as ratios.svg, not README.md"),
        (["--plot", str(mine)], "left as it is"),
    ):
        assert main.main(["history", str(tmp_path / "runs"), *words]) == 2
        assert complaint in capsys.readouterr().err
    assert mine.read_text() == "mine"


def test_report_prints_bencher_s_format_of_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = stored(tmp_path / "runs", 2.0, 2.01, 1.99)
    assert main.main(["report", str(place), "--format", "bmf"]) == 0
    assert json.loads(capsys.readouterr().out)["dense torch cpu"]["train_step_ms"]["value"] == pytest.approx(
        2.0, abs=0.1
    )
    other = dataclasses.replace(made.record(made.trial()), machine=dataclasses.replace(made.MACHINE, chip="M1"))
    Store.create(place, "2026-02-02T03:04:05Z").finish(other)
    assert main.main(["report", str(place), "--format", "bmf"]) == 2
    assert "of one machine, not of 2" in capsys.readouterr().err
    page = tmp_path / "README.md"
    page.touch()
    assert main.main(["report", str(page), "--format", "bmf"]) == 2
    assert "of one machine, not of 0" in capsys.readouterr().err
