"""Commands that explain and compare, from their words to what a user reads; their children are a stand-in."""

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.history import history
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.versus import versus
from kerasbench.cli import main, measuring
from kerasbench.errors import Undecided
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Message
from kerasbench.report.compare import MachineBrief
from kerasbench.results import run as saved
from kerasbench.results.run import Run, Trial
from kerasbench.results.store import Store, load
from kerasbench.returns import Machines
from kerasbench.runs.rows import seconds
from kerasbench.runs.run import FinishedRun
from kerasbench.settings import Settings
from tests import made, stand_in
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER, of_versions, soaking, versions
from tests.stand_in import Command

pytestmark = pytest.mark.processes


def explain(command: Command, *arguments: str) -> tuple[int, str, str]:
    """Run the command and return its exit code and what it wrote to stdout and stderr."""
    return command.run("explain", str(command.folder / "mine.py"), "--rounds", "3", *arguments)


def test_it_says_where_the_time_of_each_case_goes(command: Command) -> None:
    code, out, err = explain(command, "--backend", "jax,torch")
    assert code == 0, err
    assert out.startswith("# mine: the largest part of an epoch is computation on ") and "failed" not in out
    code, out, _ = explain(command, "--json", "--backend", "jax,torch")
    parts = [result for result in json.loads(out)["results"] if result["metric"] == "input_pipeline_ms"]
    found = {part["configuration"]["backend"]: part["value"] for part in parts}
    assert (code, found) == (0, {"jax": pytest.approx(0.25), "torch": pytest.approx(0.5)})  # a quarter of a step


def test_where_every_case_fails_the_failures_are_shown(command: Command) -> None:
    for name in ("trial", "parts"):
        stand_in.answer(command.folder, f"{name}-jax", Message(failure=made.FAILURE))
    code, out, _ = explain(command, "--backend", "jax")
    assert code == 1
    assert out.startswith("# Nothing was measured: ") and "died from SIGSEGV" in out
    code, out, _ = explain(command, "--backend", "jax", "--json")
    printed = json.loads(out)
    assert (code, printed["results"], printed["failures"][0]["cause"]) == (1, [], made.FAILURE.cause)


def test_a_race_says_what_is_fastest_to_a_reader_and_to_a_script(command: Command) -> None:
    asked = ("fastest", str(command.folder / "mine.py"), "--backend", "jax,torch", "--rounds", "1")
    code, out, err = command.run(*asked)
    assert code == 0, err
    assert out.startswith("# mine trains fastest so far on JAX")
    assert "candidates, 1 round: " in err and "are dropped after a round" in err
    code, out, _ = command.run(*asked, "--json")
    printed = json.loads(out)
    (fastest,), others = printed["fastest"], [ratio["configuration"] for ratio in printed["ratios"]]
    assert (code, fastest["configuration"]["backend"]) == (0, "jax")
    assert {"backend": "jax", "device": "cpu", "options": {"steps_per_execution": 8}} in others


def test_a_soak_says_whether_memory_grows_and_steps_become_slower(command: Command, rng: random.Random) -> None:
    said = dataclasses.replace(soaking(0, 64 << 10, 60, rng), prediction=[])
    stand_in.answer(command.folder, "trial-torch", Message(begun="train"), stand_in.phase(), Message(measurement=said))
    code, out, err = command.run("soak", str(command.folder / "mine.py"), "--backend", "torch", "--minutes", "0.1")
    assert code == 0, err
    assert out.startswith("# mine: memory grows on PyTorch, nothing becomes slower")
    (data,) = command.results.glob("*.json")
    assert load(data).config.soak == saved.SoakConfig("train", 0.1)
    assert "| mine" in data.with_suffix(".md").read_text()


def test_a_disk_that_takes_no_file_takes_no_explanation_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = made.record(*(made.trial(index, found=made.with_parts()) for index in (1, 2, 3)), rounds=3)
    store = Store.create(tmp_path, record.started)
    full = f"{store.data}: cannot be written: no space"
    monkeypatch.setattr("kerasbench.runs.run.measured", lambda *asked: nullcontext(FinishedRun(record, store, full)))
    assert main.main(["explain", "dense", "--backend", "torch"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("# dense: the largest part of an epoch is computation on PyTorch")
    assert err == f"kerasbench: {full}\nraw results: {store.journal}\n"  # which has every block
    assert not store.tables.exists()


def other(command: Command, step_ms: float, name: str = "new") -> Path:
    """Make one more stand-in, whose steps on torch take so long, and return its interpreter."""
    folder = command.folder / name
    folder.mkdir()
    stand_in.furnish(folder)
    said = dataclasses.replace(made.measurement(step_ms), prediction=[])
    stand_in.answer(folder, "trial-torch", Message(begun="train"), stand_in.phase(), Message(measurement=said))
    return folder / "python"


def compare(command: Command, *arguments: str) -> tuple[int, str, str]:
    """Compare the stand-in with another, and return the exit code and what was written to stdout and stderr."""
    scenario = str(command.folder / "mine.py")
    return command.run("versus", *arguments, "--scenario", scenario, "--backend", "torch", "--rounds", "3")


def labelled(command: Command) -> list[str]:
    """Return the words that compare the stand-in with a slower one, by their labels."""
    old, new = command.folder / "python", other(command, 2.2)
    return ["old", "new", "--python", f"torch@old={old}", "--python", f"torch@new={new}"]


@pytest.mark.parametrize(
    ("more", "code", "verdict"),
    [
        (["--fail-on", "regression"], 3, "**1.095× (1.095–1.095)**"),
        (["--fail-on", "regression", "--threshold", "20%"], 0, "1.095× (1.095–1.095), tie"),
    ],
)
def test_versions_are_compared_and_a_regression_has_an_exit_code_of_its_own(
    command: Command, more: list[str], code: int, verdict: str
) -> None:
    ended, out, err = compare(command, *labelled(command), *more)
    assert ended == code, err
    (line,) = [line for line in out.splitlines() if line.startswith("| mine")]
    _, base, takes, again = (cell.strip() for cell in line.strip("| ").split(" | ")[1:])
    assert (base, takes, again) == ("2.10 ms", verdict, "1.000× (1.000–1.000)")
    (data,) = command.results.glob("*.json")
    record = load(data)
    assert (record.config.versus, record.config.environments) == (["old", "new"], ["torch@old", "torch@new"])
    assert {trial.options.label for trial in record.trials} == {"@old", "@new", "@old control=on"}
    written = (data.read_text(), data.with_suffix(".md").read_text())
    assert not any(str(command.folder / "new") in text for text in written)  # paths of interpreters are nobody's matter


def test_with_json_stdout_has_that_alone_and_stderr_the_rest(command: Command) -> None:
    code, out, err = command.run(str(command.folder / "mine.py"), "--backend", "jax,torch", "--rounds", "3", "--json")
    printed = json.loads(out)
    assert (code, printed["command"]) == (0, "run")
    assert [fastest["configuration"]["backend"] for fastest in printed["fastest"]] == ["jax"]
    assert [Path(run["result_file"]) for run in printed["runs"]] == [*command.results.glob("*.json")]
    assert "all tables: " in err and "[6/6]" in err


def test_a_gate_and_a_search_print_json(command: Command) -> None:
    code, out, _ = compare(command, *labelled(command), "--fail-on", "regression", "--json")
    steps = [
        ratio for ratio in json.loads(out)["ratios"] if ratio["metric"] == "train_step_ms" and not ratio["is_control"]
    ]
    assert (code, [ratio["verdict"] for ratio in steps]) == (3, ["slower"])
    code, out, err = searched(command, 2.0, 2.0, 3.0, more=["--json"])
    assert code == 0, err
    assert json.loads(out)["search"]["first_slow"] == "v2"


def failing(*options: Options, backend: str = "jax") -> list[Trial]:
    return [made.trial(1, backend=backend, failure=made.FAILURE, options=one) for one in options]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (versions(SLOWER), 3),
        (versions(ALIKE), 0),
        ([*versions(ALIKE), *failing(OLD, NEW, AGAIN)], 0),  # what fails with both is no difference
        ([*versions(ALIKE), *failing(NEW), *versions({OLD: {"step_ms": 2.0}}, "jax")], 3),
        ([*versions(ALIKE), *failing(OLD), *versions({NEW: {"step_ms": 2.0}}, "jax")], 1),
    ],
)
def test_what_a_gate_fails_on(found: list[Trial], code: int) -> None:
    assert measuring.gated(versus(summarize(of_versions(*found)))) == code
    with pytest.raises(Undecided, match="nothing could be judged, so this is no pass"):
        measuring.gated(versus(summarize(of_versions(*failing(OLD, NEW)))))


@pytest.mark.parametrize(("failed", "code"), [({}, 0), ({"m2": "the connection has ended"}, 1)])
def test_a_gate_lets_nothing_pass_that_was_not_measured_on_every_machine(
    failed: dict[str, str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = of_versions(*versions(ALIKE))
    store = Store.create(tmp_path, run.started)
    store.finish(run)
    found = Machines([], data={"m1": store.data}, failed=failed, briefs=[MachineBrief.of("m1", Findings.of(run))])
    monkeypatch.setattr("kerasbench.api.measure", lambda *asked, **own: found)
    assert main.main(["versus", "old", "new", "--hosts", "m1,m2", "--fail-on", "regression"]) == code


def test_what_continues_a_machine_s_run_names_the_interpreters_that_were_made_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ways, asked = ["m1:torch@old=/cache/a b/python"], Settings(hosts=["m1"], python=["m1:kerasbench=/k"])
    briefs = [MachineBrief.of("m1", Findings.of(made.record(made.trial())))]
    measuring.finish_machines(Machines([], None, (), asked, {"m1": tmp_path / "m1.json"}, {}, ["m1"], ways, briefs))
    said = capsys.readouterr().err
    assert "--hosts=m1 --python=m1:kerasbench=/k '--python=m1:torch@old=/cache/a b/python'" in said


def test_what_a_lost_machine_has_is_named_with_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Machines([], asked=Settings(hosts=["m1"]), failed={"m1": "no space left"}, interrupted=["m1"])
    monkeypatch.setattr("kerasbench.api.measure", lambda *asked, **own: found)
    assert main.main(["run", "--hosts", "m1"]) == 1
    out, err = capsys.readouterr()
    assert "no space left" in out and err.endswith("run --resume --results results --hosts=m1\n")


def test_two_interpreters_need_no_label(command: Command) -> None:
    code, out, err = compare(command, str(command.folder / "python"), str(other(command, 2.2)))
    assert code == 0, err
    assert "python-head takes 1.095× (1.095–1.095) as long as python\n" in out


def interrupt(data: Path) -> Run:
    """Leave of a run what there is if it is interrupted after its first round; return the whole of it."""
    whole = load(data)
    cut = [trial for trial in whole.trials if trial.round < 2]
    data.unlink()
    interrupted = dataclasses.replace(whole, trials=cut, stopped_because="interrupted", rounds_completed=1)
    Store(data.with_suffix(".jsonl")).finish(interrupted)
    return whole


def test_columns_with_labels_stand_beside_the_others_and_a_run_of_them_is_resumed(command: Command) -> None:
    scenario = str(command.folder / "mine.py")
    named = ["--python", f"torch@new={other(command, 2.2)}", "--python", f"torch={command.folder / 'python'}"]
    code, out, err = command.run(scenario, "--backend", "jax,torch", "--rounds", "3", *named)
    assert code == 0, err
    (head,) = [line for line in out.splitlines() if line.startswith("| workload")]
    assert [name.strip() for name in head.strip("| ").split("|")[2:]] == ["JAX", "PyTorch", "PyTorch @new"]
    (data,) = command.results.glob("*.json")
    whole = interrupt(data)
    code, _, err = command.run("run", scenario, "--resume", *named)
    assert code == 0, err
    assert Counter(trial.case for trial in load(data).trials) == Counter(trial.case for trial in whole.trials)


def test_a_comparison_of_versions_is_resumed_by_its_labels(command: Command) -> None:
    arguments = labelled(command)
    assert compare(command, *arguments)[0] == 0
    (data,) = command.results.glob("*.json")
    whole = interrupt(data)
    code, out, err = command.run("--resume", "--scenario", str(command.folder / "mine.py"), *arguments[2:])
    assert code == 0, err
    assert Counter(trial.case for trial in load(data).trials) == Counter(trial.case for trial in whole.trials)
    assert "new takes 1.095× (1.095–1.095) as long as old\n" in out


def test_a_run_that_its_budget_ended_gets_more_time_and_what_it_let_in_again(command: Command) -> None:
    scenario = str(command.folder / "mine.py")
    arguments = ("--scenario", scenario, "--backend", "jax,torch", "--keep-env", "LET_IN")
    code, _, err = command.run(*arguments, "--budget", "0.001s")
    assert code == 0, err
    (data,) = command.results.glob("*.json")
    first = load(data)
    assert (first.rounds_completed, first.out_of_time) == (1, True)
    (command.folder / "let_in").unlink()
    code, _, err = command.run("--resume", "--budget", "10m", "--scenario", scenario)
    assert code == 0, err
    assert (command.folder / "let_in").read_text() == "yes\n"
    whole = load(data)
    assert whole.config.effort.budget_s == pytest.approx(600 + seconds(first.trials), abs=1e-6)
    assert whole.rounds_completed >= 3 and not whole.out_of_time
    assert whole.trials[: len(first.trials)] == first.trials


def searched(command: Command, *steps_ms: float, more: Sequence[str] = ()) -> tuple[int, str, str]:
    """Search among interpreters v0, v1, ... in which a step takes so long."""
    named = []
    for number, step_ms in enumerate(steps_ms):
        named += ["--python", f"torch@v{number}={other(command, step_ms, f'v{number}')}"]
    names = [f"v{number}" for number in range(len(steps_ms))]
    scenario = str(command.folder / "mine.py")
    return command.run("bisect", *names, *named, "--scenario", scenario, "--backend", "torch", "--rounds", "3", *more)


def test_bisect_finds_the_first_slow_version_with_each_probe_beside_good(command: Command) -> None:
    code, out, err = searched(command, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0)
    assert code == 0, err
    assert "v4 is the first slow version: a step takes 1.4" in out
    assert "It took 4 probes to search 5 versions." in out
    said = [line for line in err.splitlines() if line.startswith("bisect: v")]
    assert said[::2] == [f"bisect: v{number} beside v0" for number in (5, 2, 3, 4)]
    assert said[1].startswith("bisect: v5 takes 1.4") and f" as long as v0 ({command.results}" in said[1]
    records = [load(data) for data in command.results.glob("*.json")]
    assert sorted(record.config.versus for record in records) == [["v0", f"v{number}"] for number in (2, 3, 4, 5)]
    assert any(trial.options.control for trial in records[0].trials)
    (series,) = history(records)  # of all versions over v0
    assert (series.over, len(series.points)) == ("@v0", 4)
