"""The configuration of a run, of settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from kerasbench.errors import UsageError
from kerasbench.names import EXPLAIN, FASTEST, RUN, SOAK, VERSUS
from kerasbench.names import SWEEP as SWEEPS
from kerasbench.plan import configure
from kerasbench.protocol.columns import DEFAULT, Column, Options
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.results.run import DEFAULT as DEFAULT_EFFORT
from kerasbench.results.run import PUBLISHED, QUICK, RACE, SWEEP, Purpose, RaceConfig, RunConfig, SoakConfig, exactly
from kerasbench.results.store import load
from kerasbench.settings import Settings
from tests import made


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (Settings(), RunConfig()),
        (Settings(control=True), RunConfig(control=True)),
        (Settings(quick=True), RunConfig(effort=QUICK)),
        (Settings(protocol="calls"), RunConfig(effort=made.changed(DEFAULT_EFFORT, protocol={"kind": "calls"}))),
        (Settings(custom=__file__), RunConfig(model_config=ModelConfig(custom=__file__))),
        (Settings(rigorous=True), RunConfig(effort=exactly(12), control=True)),
        (Settings(rounds=12), RunConfig(effort=exactly(12))),
        (Settings(suite="tiny"), RunConfig(suite="tiny")),
        (Settings(backends=["torch", "torch"], devices=["gpu:0"]), RunConfig(backends=["torch"], devices=["gpu"])),
        (Settings(protocol="published", data="real"), RunConfig(effort=PUBLISHED, data="real")),
        (
            Settings(["m.keras"], inputs=["tokens=128"], batch_size=8, trust=True, rows="rows.npz", samples=3),
            RunConfig(["m.keras"], model_config=ModelConfig([Input("tokens", [128])], 8, "", True, "rows.npz", 3)),
        ),
        (
            Settings(memory_limit="4g", budget="10m", timeout="60"),
            RunConfig(memory_limit_bytes=4 << 30, timeout_s=60, effort=replace(DEFAULT_EFFORT, budget_s=600)),
        ),
    ],
)
def test_settings_are_what_a_run_is_configured_by(said: Settings, asked: RunConfig) -> None:
    assert configure.run(said) == asked
    assert configure.explanation(Settings()) == RunConfig(explain=True)


@pytest.mark.parametrize(
    ("command", "said", "complaint"),
    [
        *(
            (command, said, complaint)
            for command in (RUN, SWEEPS, EXPLAIN, VERSUS, FASTEST, SOAK)
            for said, complaint in (
                (Settings(backends=["pytorch"]), "did you mean 'torch'"),
                (Settings(devices=["tpu"]), "unknown device 'tpu'"),
                (Settings(seed=-1), "--seed takes"),
                (Settings(timeout=0), "--timeout takes"),
                (Settings(data="none"), "unknown kind of data"),
                (Settings(budget="soon"), "--budget takes a time such as 90s, 10m or 1.5h, not 'soon'"),
                (Settings(memory_limit="0.0000001m"), "--memory-limit takes a whole number"),
                (Settings(keep_env=["A=1"]), "--keep-env takes the names"),
                *((Settings(batch_size=size), "--batch-size takes a whole number from 1 to") for size in (0, 1 << 21)),
                (Settings(rounds=0), "--rounds takes a whole number from 1 on, not 0"),
                (Settings(quick=True, rounds=3), "exclude each other"),
                (Settings(["resnet8"], suite="tiny"), "--suite and --scenario exclude each other"),
                (Settings(custom="none.py"), "--custom takes a Python file"),
                (Settings(custom="."), "--custom takes a Python file"),
            )
        ),
        (RUN, Settings(protocol="sweep"), "unknown protocol 'sweep'"),
        (RUN, Settings(quick=True, protocol="published"), "it cannot be --quick"),
        (RUN, Settings(dtype=["bf16"]), "value of --dtype 'bf16'.*bfloat16"),
        (RUN, Settings(fp32=["tf23"]), "did you mean 'tf32'"),
        (RUN, Settings(malloc=["kept"]), "did you mean 'keep'"),
        *((RUN, Settings(threads=[word]), "--threads takes whole numbers from 1 on") for word in ("0", "-1", "two")),
        (RUN, Settings(warm_cache=True, quick=True), "--warm-cache is about the first step, which --quick does not"),
        (RUN, Settings(warm_cache=True, protocol="published"), "which --protocol published does not measure"),
        *((SWEEPS, Settings(batch_sizes=["8"], widths=words), "two sizes or more") for words in ([], ["2"])),
        (VERSUS, Settings(threshold="1%"), "--threshold takes 3 % or more, not 1.00 %"),
        (FASTEST, Settings(tries=["batch-size"], purpose="predict"), "--try batch-size is for training"),
        (FASTEST, Settings(tries=["steps-per-execution"], purpose="predict"), "steps-per-execution is for training"),
        (FASTEST, Settings(purpose="build"), "purpose 'build'"),
        (FASTEST, Settings(tries=["batch"]), "setting to --try 'batch'"),
        (FASTEST, Settings(margin="0%"), "--within must be above 0%, for example 5%; you gave 0%."),
        (FASTEST, Settings(rounds=13), "at most 12 rounds"),
        (SOAK, Settings(minutes=0), r"--minutes takes a number from 0\.1"),
        (SOAK, Settings(minutes=1e6), "--minutes takes a number"),
        (SOAK, Settings(minutes=10, timeout="5m"), "--timeout would stop a soak of 10 minutes before its end"),
        (SOAK, Settings(purpose="predict-one"), "purpose 'predict-one'"),
    ],
)
def test_what_means_nothing_is_refused(command: str, said: Settings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        configure.config_of(command, said)


def test_what_is_asked_for_in_numbers_of_python_is_read_again_from_its_file(tmp_path: Path) -> None:
    asked = configure.run(Settings(memory_limit=4e9, budget=600, timeout=60))
    assert asked == configure.run(Settings(memory_limit=4_000_000_000, budget="10m", timeout=60))
    assert load(made.stored(tmp_path, replace(made.record(), config=asked)).data).config == asked


def test_a_sweep_crosses_terms_with_sizes_and_goes_on_where_series_cross() -> None:
    asked = configure.sweep(Settings(["dense"], batch_sizes=["1..2"], widths=["0.5", "1"], jit=["on"]))
    assert asked.options == [Options(jit=True, batch=batch, width=width) for batch in (1, 2) for width in (0.5, 1.0)]
    assert (asked.refine, asked.effort.protocol) == (True, SWEEP)
    assert configure.sweep(Settings(["dense"], quick=True)).effort == replace(QUICK, protocol=SWEEP)
    limited = configure.sweep(Settings(["dense"], rounds=7, control=True))
    assert (limited.effort, limited.control) == (exactly(7, SWEEP), True)
    assert [options.batch for options in configure.sweep(Settings(["dense"])).options][-1] == 4096
    assert {options.batch for options in configure.sweep(Settings(["dense"], widths=["1", "2"])).options} == {None}
    crossed = configure.crossed([DEFAULT, Options(jit=False)], [1, 8], [])
    assert [options.label for options in crossed] == ["batch=1", "jit=off batch=1", "batch=8", "jit=off batch=8"]


def test_what_a_file_says_was_asked_for_is_looked_at_again() -> None:
    with pytest.raises(UsageError, match="unknown device"):
        configure.validated(RunConfig(devices=["toaster"]))
    assert configure.validated(RunConfig(options=[DEFAULT])) == RunConfig()
    for other in ("nope", "nope@old", "@", "jax.x"):  # of an interrupted run, whose file may be anybody's
        with pytest.raises(UsageError, match="unknown backend"):
            configure.validated(RunConfig(environments=["torch@old", other]))


def test_two_sizes_divide_a_bracket_where_there_is_room() -> None:
    brackets = [(64, 128), (8, 64), (1, 2), (2, 4), (1, 4)]
    between = [configure.sizes_between(low, high, whole=True) for low, high in brackets]
    assert between == [[81, 102], [16, 32], [], [3], [2, 3]]
    assert configure.sizes_between(1, 2, whole=False) == [1.26, 1.59]  # widths


def test_a_sweep_is_of_one_workload_and_by_widths_of_one_that_scales() -> None:
    with pytest.raises(UsageError, match=r"names 2: dense\.py/a, dense\.py/b; name one of them"):
        configure.require_sweepable([made.selected(workload_name=name) for name in ("a", "b")], [DEFAULT])
    configure.require_sweepable([made.selected()], [Options(batch=8)])
    with pytest.raises(UsageError, match="dense has no --width"):
        configure.require_sweepable([made.selected()], [Options(batch=8), Options(width=2.0)])


EXECUTIONS = ["1", "8"]


@pytest.mark.parametrize(
    ("said", "competing", "beside"),
    [
        (Settings(), "", ""),
        (Settings(jit=["on", "off"], dtype=["float32"] * 2), "jit=on dtype=float32, jit=off dtype=float32", ""),
        (Settings(malloc=["default", "keep"], threads=["1"]), "threads=1, threads=1 malloc=keep", ""),
        (  # the loop of a baseline is its own
            Settings(jit=["on"], native=True, steps_per_execution=EXECUTIONS, warm_cache=True),
            "jit=on steps-per-execution=1, jit=on steps-per-execution=8",
            "jit=on native=on, jit=on steps-per-execution=1 warm-cache=on, jit=on steps-per-execution=8 warm-cache=on",
        ),
    ],
)
def test_options_are_crossed_and_taken_once(said: Settings, competing: str, beside: str) -> None:
    columns = [Column("jax", "cpu", options) for options in configure.options_of(said)]
    assert ", ".join(column.options.label for column in columns if column.competes) == competing
    assert ", ".join(column.options.label for column in columns) == competing + (beside and f", {beside}")


def test_a_race_tries_what_changes_no_result_unless_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    asked = configure.fastest(Settings(["dense"], budget="10m"))
    tries = ["backend", "device", "jit", "threads", "malloc", "steps-per-execution"]
    assert (asked.race, asked.backends) == (RaceConfig(tries=tries, baseline="jax"), [])
    assert asked.effort == made.changed(RACE, budget_s=600, protocol={"predicts": False})
    named = configure.fastest(Settings(["dense"], tries=["jit"], margin="10%", purpose="predict", rounds=6))
    assert named.race == RaceConfig("predict", 0.1, ["jit"], "jax")
    assert (named.backends, named.effort.max_rounds) == (["jax"], 6)
    assert (named.effort.protocol.epochs, named.effort.protocol.predicts) == (False, True)


@pytest.mark.parametrize(
    ("variables", "configured", "backend"),
    [
        ({"KERAS_BACKEND": "torch"}, '{"backend": "jax"}', "torch"),
        ({}, '{"backend": "jax"}', "jax"),
        ({}, "[]", "tensorflow"),
        ({}, "{", "tensorflow"),
        ({"KERAS_BACKEND": "openvino"}, "{}", "tensorflow"),
    ],
)
def test_the_backend_of_keras_itself(tmp_path: Path, variables: dict[str, str], configured: str, backend: str) -> None:
    (tmp_path / "keras.json").write_text(configured)
    assert configure.default_backend({"KERAS_HOME": str(tmp_path)} | variables) == backend


KINDS: dict[Purpose, str] = {"train": "steady", "predict": "calls", "build": "builds", "build-cleared": "builds"}


@pytest.mark.parametrize("purpose", KINDS)
def test_a_soak_is_one_long_block_with_a_control(purpose: Purpose) -> None:
    asked = configure.soak(Settings(["dense"], purpose=purpose, minutes=10))
    protocol = asked.effort.protocol
    assert (asked.soak, asked.control, asked.timeout_s) == (SoakConfig(purpose, 10.0), True, None)
    assert (protocol.kind, protocol.clears) == (KINDS[purpose], purpose == "build-cleared")
    assert (protocol.soaks, protocol.slices_max_ns) == (True, 600 * 10**9)
    assert (asked.effort.min_rounds, asked.effort.max_rounds) == (1, 1)
