"""Commands that explain and compare, from their words to what a user reads; their children are a stand-in."""

import dataclasses
import json
import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.api import Versions
from kerasbench.api.results import Machines
from kerasbench.cli import measuring
from kerasbench.cli.options import FACTS, REGRESSION
from kerasbench.errors import Undecided
from kerasbench.modes import soak, versus
from kerasbench.modes.run import RunSettings
from kerasbench.pages.series import history
from kerasbench.pages.several import MachineSummary
from kerasbench.protocol.columns import CaseKey, Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Message
from kerasbench.protocol.stages import BATCH, ONE
from kerasbench.results.run import Trial
from kerasbench.results.store import Store, load
from kerasbench.runs.rows import seconds
from kerasbench.runs.run import FinishedRun
from tests import made, stand_in
from tests.conftest import Shell
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER, of_versions, soaking, versions
from tests.stand_in import Command

pytestmark = pytest.mark.processes


def succeed(command: Command, *arguments: str) -> tuple[str, str]:
    code, out, err = command.run(*arguments)
    assert code == 0, err
    return out, err


def scenario(command: Command) -> str:
    return str(command.folder / "mine.py")


def data_of(command: Command) -> Path:
    (data,) = command.results.glob("*.json")
    return data


def answer(folder: Path, measured: Measurement) -> None:
    """Have trials of torch measure this, but for predictions."""
    said = Message(measurement=made.without(measured, ONE, BATCH))
    stand_in.answer(folder, "trial-torch", Message(begun="train"), stand_in.phase(), said)


def test_it_says_where_the_time_of_each_case_goes(command: Command) -> None:
    out, _ = succeed(command, "explain", scenario(command), "--rounds", "3", "--backend", "jax,torch", "--json")
    parts = [result for result in json.loads(out)["results"] if result["metric"] == "input_pipeline_ms"]
    feeding_ms = {part["configuration"]["backend"]: part["value"] for part in parts}
    assert feeding_ms == {"jax": pytest.approx(0.25), "torch": pytest.approx(0.5)}  # a quarter of a step


def test_where_every_case_fails_the_failures_are_shown(command: Command) -> None:
    for name in ("trial", "parts"):
        stand_in.answer(command.folder, f"{name}-jax", Message(failure=made.FAILURE))
    code, out, _ = command.run("explain", scenario(command), "--backend", "jax")
    assert code == 1
    assert out.startswith("# Nothing was measured: ") and "died from SIGSEGV" in out


def test_a_race_says_what_is_fastest(command: Command) -> None:
    out, err = succeed(command, "fastest", scenario(command), "--backend", "jax,torch", "--rounds", "1")
    assert out.startswith("# mine: undecided which is fastest; JAX")
    assert "cases, 1 round: " in err and "of the fastest are dropped" in err
    tried = {(trial.backend, trial.options.label) for trial in load(data_of(command)).trials}
    assert tried >= {("jax", "steps-per-execution=8"), ("torch", "")}


def test_a_soak_says_whether_memory_grows_and_steps_become_slower(command: Command, rng: random.Random) -> None:
    answer(command.folder, soaking(0, 64 << 10, 1_200, rng))  # a minute
    out, err = succeed(command, "soak", scenario(command), "--backend", "torch", "--minutes", "0.1")
    assert "in a soak of less than 1 minute no trend is judged; without --minutes it takes 5 minutes" in err
    assert out.startswith("# mine: memory grows on PyTorch, nothing becomes slower")
    assert soak.MODE.settings_of(load(data_of(command)).config) == soak.SoakConfig("train", 0.1)
    assert "| mine" in data_of(command).with_suffix(".md").read_text()


def test_a_disk_that_takes_no_file_takes_no_explanation_away(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    record = made.record(*(made.trial(index, found=made.with_parts()) for index in (1, 2, 3)), rounds=3)
    store = Store.create(Path("results"), record.started)
    full = f"{store.data}: cannot be written: no space"
    monkeypatch.setattr("kerasbench.runs.run.measured", lambda *asked: nullcontext(FinishedRun(record, store, full)))
    code, out, err = shell("explain", "dense", "--backend", "torch")
    assert code == 2 and out.startswith("# dense: the largest part of an epoch is computation on PyTorch")
    assert err == f"kerasbench: {full}\nraw results: {store.journal}\n"  # which has every block
    assert not store.tables.exists()


def other(command: Command, step_ms: float, name: str = "new") -> Path:
    """Make one more stand-in, whose steps on torch take so long, and return its interpreter."""
    folder = command.folder / name
    folder.mkdir()
    stand_in.furnish(folder)
    answer(folder, made.measurement(step_ms))
    return folder / "python"


def on_torch(command: Command) -> list[str]:
    return ["--scenario", scenario(command), "--backend", "torch", "--rounds", "3"]


def labelled(command: Command) -> list[str]:
    """Return the words that give the stand-in and a slower one their labels."""
    return ["--python", f"torch@old={command.folder / 'python'}", "--python", f"torch@new={other(command, 2.2)}"]


@pytest.mark.parametrize(
    ("more", "code", "verdict"),
    [
        (["--fail-on", "regression"], 3, "**1.095× (1.095–1.095)**"),
        (["--fail-on", "regression", "--threshold", "20%"], 0, "1.095× (1.095–1.095), tie"),
    ],
)
def test_versions_are_compared_and_gated(command: Command, more: list[str], code: int, verdict: str) -> None:
    ended, out, err = command.run("versus", "old", "new", *labelled(command), *on_torch(command), *more)
    assert ended == code, err
    (line,) = [line for line in out.splitlines() if line.startswith("| mine")]
    _, base, takes, again = (cell.strip() for cell in line.strip("| ").split(" | ")[1:])
    assert (base, takes, again) == ("2.10 ms", verdict, "1.000× (1.000–1.000)")
    data = data_of(command)
    record = load(data)
    assert versus.MODE.settings_of(record.config) == versus.VersusConfig("old", ["new"], 0.2 if "20%" in more else 0.03)
    assert record.config.environments == ["torch@old", "torch@new"]
    assert {trial.options.label for trial in record.trials} == {"@old", "@new", "@old control=on"}
    written = (data.read_text(), data.with_suffix(".md").read_text())
    assert not any(str(command.folder / "new") in text for text in written)  # paths of interpreters are nobody's matter


def test_with_json_stdout_has_that_alone_and_stderr_the_rest(command: Command) -> None:
    out, err = succeed(command, scenario(command), "--backend", "jax,torch", "--rounds", "3", "--json")
    printed = json.loads(out)
    assert printed["command"] == "run"
    assert [fastest["configuration"]["backend"] for fastest in printed["fastest"]] == ["jax"]
    assert [Path(run["result_file"]) for run in printed["runs"]] == [data_of(command)]
    assert "all tables: " in err and "[6/6]" in err


def failing(*options: Options, backend: str = "jax") -> list[Trial]:
    return [made.trial(1, backend=backend, failure=made.FAILURE, options=column) for column in options]


@pytest.mark.parametrize(
    ("trials", "code"),
    [
        (versions(SLOWER), 3),
        (versions(ALIKE), 0),
        ([*versions(ALIKE), *failing(OLD, NEW, AGAIN)], 0),  # what fails with both is no difference
        ([*versions(ALIKE), *failing(NEW), *versions({OLD: {"step_ms": 2.0}}, "jax")], 3),
        ([*versions(ALIKE), *failing(OLD), *versions({NEW: {"step_ms": 2.0}}, "jax")], 1),
    ],
)
def test_what_a_gate_fails_on(trials: list[Trial], code: int) -> None:
    assert measuring.gated([Versions([of_versions(*trials)])], [REGRESSION]) == code
    with pytest.raises(Undecided, match="everything is undecided, so nothing has passed"):
        measuring.gated([Versions([of_versions(*failing(OLD, NEW))])], [REGRESSION])


@pytest.mark.parametrize(
    ("head", "gates", "code"),
    [
        ("flash", [FACTS], 0),
        ("math", [FACTS], 3),
        ("math", ["attention"], 3),
        ("math", ["recurrent"], 0),
        ("math", [REGRESSION], 0),
        ("math", [REGRESSION, FACTS], 3),
        ("not known", [FACTS], 0),  # this Keras may have it elsewhere: that is no proof of other code
    ],
)
def test_a_gate_fails_on_other_code_where_it_is_asked_to(head: str, gates: list[str], code: int) -> None:
    ran = {"old": {"attention": "flash"}, "new": {"attention": head}}
    trials = [made.changed(trial, measurement={"facts": ran[trial.options.environment]}) for trial in versions(ALIKE)]
    assert measuring.gated([Versions([of_versions(*trials)])], gates) == code


@pytest.mark.parametrize(("failed", "code"), [({}, 0), ({"m2": "the connection has ended"}, 1)])
def test_a_gate_needs_every_machine(
    failed: dict[str, str], code: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = of_versions(*versions(ALIKE))
    data, briefs = {"m1": made.stored(Path("results"), run).data}, [MachineSummary.of("m1", summarize(run))]
    machines = Machines(RunSettings(), data, failed, briefs=briefs)
    monkeypatch.setattr("kerasbench.api.measure_on_machines", Mock(return_value=machines))
    assert shell("versus", "old", "new", "--hosts", "m1,m2", "--fail-on", "regression")[0] == code


def test_what_continues_a_machine_s_run_names_interpreters_made_there(capsys: pytest.CaptureFixture[str]) -> None:
    ways, asked = ["m1:torch@old=/cache/a b/python"], RunSettings(hosts=["m1"], python=["m1:kerasbench=/k"])
    briefs = [MachineSummary.of("m1", summarize(made.record(made.trial())))]
    measuring.finish_machines(Machines(asked, {"m1": Path("m1.json")}, {}, ["m1"], ways, briefs))
    said = capsys.readouterr().err
    assert "--hosts=m1 --python=m1:kerasbench=/k '--python=m1:torch@old=/cache/a b/python'" in said


def test_what_a_lost_machine_has_is_named_with_how_to_go_on(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = RunSettings(hosts=["m1"])
    machines = Machines(asked, {}, {"m1": "no space left"}, interrupted=["m1"])
    monkeypatch.setattr("kerasbench.api.measure_on_machines", Mock(return_value=machines))
    code, out, err = shell("run", "--hosts", "m1")
    assert code == 1 and "no space left" in out and err.endswith("run --resume --results results --hosts=m1\n")


def interrupt(command: Command) -> Counter[CaseKey]:
    """Leave of a run what there is if it is interrupted after its first round; return the cases of the whole of it."""
    data = data_of(command)
    whole = load(data)
    cut = [trial for trial in whole.trials if trial.round < 2]
    data.unlink()
    interrupted = dataclasses.replace(whole, trials=cut, stopped_because="interrupted", rounds_completed=1)
    Store(data.with_suffix(".jsonl")).finish(interrupted)
    return Counter(trial.case for trial in whole.trials)


def test_columns_with_labels_stand_beside_the_others_and_a_run_of_them_is_resumed(command: Command) -> None:
    named = ["--python", f"torch@new={other(command, 2.2)}", "--python", f"torch={command.folder / 'python'}"]
    out, _ = succeed(command, scenario(command), "--backend", "jax,torch", "--rounds", "3", *named)
    (head,) = [line for line in out.splitlines() if line.startswith("| workload")]
    assert [name.strip() for name in head.strip("| ").split("|")[2:]] == ["JAX", "PyTorch", "PyTorch @new"]
    whole = interrupt(command)
    succeed(command, "run", scenario(command), "--resume", *named)
    assert Counter(trial.case for trial in load(data_of(command)).trials) == whole


def test_a_comparison_of_versions_is_resumed_by_its_labels(command: Command) -> None:
    named = labelled(command)
    succeed(command, "versus", "old", "new", *named, *on_torch(command))
    whole = interrupt(command)
    out, _ = succeed(command, "--resume", "--scenario", scenario(command), *named)
    assert Counter(trial.case for trial in load(data_of(command)).trials) == whole
    assert "new takes 1.095× (1.095–1.095) as long as old\n" in out


def test_a_run_that_its_budget_ended_gets_more_time_and_what_it_let_in_again(command: Command) -> None:
    words, let_in = ("--scenario", scenario(command)), command.folder / "let_in"
    succeed(command, *words, "--backend", "jax,torch", "--keep-env", "LET_IN", "--budget", "0.001s")
    assert let_in.read_text() == "yes\n"
    assert "(--keep-env): LET_IN=yes." in data_of(command).with_suffix(".md").read_text().replace("\\", "")
    first = load(data_of(command))
    assert (first.rounds_completed, first.out_of_time, first.config.keep_env) == (1, True, {"LET_IN": "yes"})
    let_in.unlink()
    succeed(command, "--resume", "--budget", "10m", *words)
    assert let_in.read_text() == "yes\n"
    whole = load(data_of(command))
    assert whole.config.effort.budget_s == pytest.approx(600 + seconds(first.trials), abs=1e-6)
    assert whole.rounds_completed >= 3 and not whole.out_of_time
    assert whole.trials[: len(first.trials)] == first.trials


def test_bisect_finds_the_first_slow_version_with_each_probe_beside_good(command: Command) -> None:
    words = [*on_torch(command), "--json"]
    for number, step_ms in enumerate((2.0, 2.0, 2.0, 2.0, 3.0, 3.0)):
        words += ["--python", f"torch@v{number}={other(command, step_ms, f'v{number}')}"]
    out, err = succeed(command, "bisect", *(f"v{number}" for number in range(6)), *words)
    assert json.loads(out)["search"]["first_slow"] == "v4"
    said = [line for line in err.splitlines() if line.startswith("bisect: v")]
    assert said[::2] == [f"bisect: v{number} beside v0" for number in (5, 2, 3, 4)]
    assert said[1].startswith("bisect: v5 takes 1.4") and f" as long as v0 ({command.results}" in said[1]
    records = [load(data) for data in command.results.glob("*.json")]
    asked = [versus.MODE.settings_of(record.config) for record in records]
    assert sorted((pair.base, *pair.heads) for pair in asked) == [("v0", f"v{number}") for number in (2, 3, 4, 5)]
    assert any(trial.options.control for trial in records[0].trials)
    (series,) = history(records)  # of all versions over v0
    assert (series.over, len(series.points)) == ("@v0", 4)
