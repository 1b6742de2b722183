from dataclasses import replace
from pathlib import Path

import pytest

from kerasbench import variants
from kerasbench.errors import UsageError
from kerasbench.modes import registry
from kerasbench.modes.command import command
from kerasbench.modes.run import RunSettings
from kerasbench.modes.run.plan import run_config
from kerasbench.plan import configure
from kerasbench.protocol.columns import DEFAULT, Column
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.results.run import DEFAULT as DEFAULT_EFFORT
from kerasbench.results.run import PUBLISHED, QUICK, Effort, RunConfig, exactly
from kerasbench.results.store import load
from kerasbench.settings import Settings
from tests import made

CALLS = replace(DEFAULT_EFFORT, plan=DEFAULT_EFFORT.plan.of_kind("calls"))


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (RunSettings(), RunConfig()),
        (RunSettings(control=True), RunConfig(control=True)),
        (RunSettings(quick=True), RunConfig(effort=QUICK)),
        (RunSettings(protocol="calls"), RunConfig(effort=CALLS)),
        (RunSettings(custom=__file__), RunConfig(model_config=ModelConfig(custom=__file__))),
        (RunSettings(rigorous=True), RunConfig(effort=exactly(12), control=True)),
        (RunSettings(rounds=12), RunConfig(effort=exactly(12))),
        (RunSettings(suite="tiny"), RunConfig(suite="tiny")),
        (RunSettings(interval="8%"), RunConfig(effort=Effort(aim=0.08))),
        (RunSettings(backends=["torch", "torch"], devices=["gpu:0"]), RunConfig(backends=["torch"], devices=["gpu"])),
        (RunSettings(protocol="published", data="real"), RunConfig(effort=PUBLISHED, data="real")),
        (
            RunSettings(["m.keras"], inputs=["tokens=128"], batch_size=8, trust=True, rows="rows.npz", samples=3),
            RunConfig(["m.keras"], model_config=ModelConfig([Input("tokens", [128])], 8, "", True, "rows.npz", 3)),
        ),
        (
            RunSettings(memory_limit="4g", budget="10m", timeout="60"),
            RunConfig(memory_limit_bytes=4 << 30, timeout_s=60, effort=replace(DEFAULT_EFFORT, budget_s=600)),
        ),
    ],
)
def test_settings_are_what_a_run_is_configured_by(said: RunSettings, asked: RunConfig) -> None:
    assert run_config(said) == asked


@pytest.mark.parametrize(
    ("mode", "said", "complaint"),
    [
        *(
            (mode.name, said, complaint)
            for mode in registry.MODES
            for said, complaint in (
                (Settings(backends=["toch"]), "did you mean 'torch'"),
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
                (Settings(interval="8%", rigorous=True), "exclude each other"),
                (Settings(interval="3%"), "--interval takes 4 % or more, not 3%: from session to session a ratio"),
                (Settings(["resnet8"], suite="tiny"), "--suite and --scenario exclude each other"),
                (Settings(custom="none.py"), "--custom takes a Python file"),
                (Settings(custom="."), "--custom takes a Python file"),
            )
        ),
        ("run", RunSettings(protocol="sweep"), "unknown protocol 'sweep'"),
        ("run", RunSettings(quick=True, protocol="published"), "it cannot be --quick"),
        ("run", RunSettings(interval="8%", protocol="published"), "it has no --interval to wait for"),
        ("run", RunSettings(choices={"dtype": ["bf16"]}), "value of --dtype 'bf16'.*bfloat16"),
        ("run", RunSettings(choices={"fp32": ["tf23"]}), "did you mean 'tf32'"),
        ("run", RunSettings(choices={"malloc": ["kept"]}), "did you mean 'keep'"),
        *(
            ("run", RunSettings(choices={"threads": [word]}), "--threads takes whole numbers from 1 on")
            for word in ("0", "-1", "two")
        ),
        ("run", RunSettings(choices={"warm_cache": [""]}, quick=True), "about the first step, which --quick does not"),
        ("run", RunSettings(choices={"warm_cache": [""]}, protocol="published"), "which --protocol published does not"),
        ("run", RunSettings(choices={"runtime": ["pt2"]}, protocol="published"), "--runtime measures predictions"),
        (
            "run",
            RunSettings(choices={"runtime": ["pt2"]}, backends=["jax"]),
            "--runtime pt2 is exported from torch, which",
        ),
        ("run", RunSettings(choices={"runtime": ["pt3"]}), "did you mean 'pt2'"),
    ],
)
def test_what_means_nothing_is_refused(mode: str, said: Settings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        registry.config_of(mode, command(mode).settings(**vars(said)))


def test_what_is_asked_for_in_numbers_of_python_is_read_again_from_its_file(tmp_path: Path) -> None:
    asked = run_config(RunSettings(memory_limit=4e9, budget=600, timeout=60))
    assert asked == run_config(RunSettings(memory_limit=4_000_000_000, budget="10m", timeout=60))
    assert load(made.stored(tmp_path, replace(made.record(), config=asked)).data).config == asked


def test_what_a_file_says_was_asked_for_is_looked_at_again() -> None:
    with pytest.raises(UsageError, match="unknown device"):
        configure.validated(RunConfig(devices=["toaster"]))
    assert configure.validated(RunConfig(options=[DEFAULT])) == RunConfig()
    for other in ("nope", "nope@old", "@", "jax.x"):  # of an interrupted run, whose file may be anybody's
        with pytest.raises(UsageError, match="unknown backend"):
            configure.validated(RunConfig(environments=["torch@old", other]))


@pytest.mark.parametrize(
    ("runtimes", "protocol", "measured"),
    [
        (["keras"], "steady", "steady"),
        (["keras", "pt2"], "steady", "predictions"),
        (["pt2"], "calls", "calls"),
        ([], "predictions", "predictions"),
    ],
)
def test_exported_models_are_measured_by_their_predictions(runtimes: list[str], protocol: str, measured: str) -> None:
    assert run_config(RunSettings(choices={"runtime": runtimes}, protocol=protocol)).effort.plan.kind == measured


EXECUTIONS = ["1", "8"]


@pytest.mark.parametrize(
    ("said", "competing", "beside"),
    [
        (Settings(), "", ""),
        (
            Settings(choices={"jit": ["on", "off"], "dtype": ["float32"] * 2}),
            "dtype=float32 jit=on, dtype=float32 jit=off",
            "",
        ),
        (Settings(choices={"malloc": ["default", "keep"], "threads": ["1"]}), "threads=1, malloc=keep threads=1", ""),
        (  # workers are of some feeds alone, and where none of these is there, the plan says so
            Settings(choices={"feed": ["arrays", "dataloader"], "workers": ["0", "2"]}),
            ", feed=dataloader, feed=dataloader workers=2",
            "",
        ),
        (Settings(choices={"workers": ["2"]}), "workers=2", ""),
        (  # the loop of a baseline is its own
            Settings(choices={"jit": ["on"], "native": [""], "steps_per_execution": EXECUTIONS, "warm_cache": [""]}),
            "jit=on steps-per-execution=1, jit=on steps-per-execution=8",
            "jit=on native=on, jit=on steps-per-execution=1 warm-cache=on, jit=on steps-per-execution=8 warm-cache=on",
        ),
    ],
)
def test_options_are_crossed_and_taken_once(said: Settings, competing: str, beside: str) -> None:
    columns = [Column("jax", "cpu", options) for options in configure.options_of(said)]
    assert ", ".join(column.options.label for column in columns if variants.competes(column)) == competing
    assert ", ".join(column.options.label for column in columns) == competing + (beside and f", {beside}")
