"""The configuration of a run, of settings."""

import dataclasses
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import request
from kerasbench.protocol.columns import DEFAULT, Column, Options, Size
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.results.run import DEFAULT as DEFAULT_EFFORT
from kerasbench.results.run import PUBLISHED, QUICK, RACE, SWEEP, RaceConfig, RunConfig, SoakConfig, exactly
from kerasbench.results.store import Store, load
from kerasbench.settings import Settings
from tests import made


def test_who_says_nothing_asks_for_a_run_of_everything() -> None:
    assert request.run(Settings()) == RunConfig()
    assert request.explanation(Settings()) == RunConfig(explain=True)
    assert request.explanation(Settings(quick=True)).effort == QUICK


def test_a_control_is_asked_for_by_itself_or_with_rigour() -> None:
    assert request.run(Settings(control=True)) == RunConfig(control=True)
    assert request.run(Settings(rigorous=True)).control and request.sweep(Settings(["dense"], control=True)).control
    assert not request.run(Settings(rounds=12)).control


def test_backends_and_devices_are_parsed_with_all_the_rest() -> None:
    devices = ["gpu:0", "gpu", "gpu:00", "gpu:01", "cpu:0"]
    asked = request.run(Settings(backends=["torch", "jax", "torch"], devices=devices, protocol="published"))
    assert (asked.backends, asked.devices, asked.effort) == (["torch", "jax"], ["gpu", "gpu:1", "cpu"], PUBLISHED)


@pytest.mark.parametrize("request_of", [request.run, request.sweep, request.explanation])
@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Settings(backends=["pytorch"]), "did you mean 'torch'"),
        (Settings(devices=["tpu"]), "unknown device 'tpu'"),
        (Settings(seed=-1), "--seed takes"),
        *((Settings(timeout=time_s), "--timeout takes") for time_s in (0, -1.0, math.inf, math.nan)),
        (Settings(data="none"), "unknown kind of data"),
        (Settings(budget="soon"), "--budget takes a time such as 90s, 10m or 1.5h, not 'soon'"),
        (Settings(timeout="soon"), "--timeout takes a time"),
        (Settings(memory_limit="lots"), "--memory-limit takes a size of memory such as 500m"),
        *((Settings(memory_limit=limit), "--memory-limit takes") for limit in (0, -1, 0.5, 4.5, math.inf, math.nan)),
        (Settings(memory_limit="0.0000001m"), "--memory-limit takes"),
        *((Settings(budget=budget_s), "--budget takes") for budget_s in (0, -1.0, math.inf, math.nan)),
        (Settings(keep_env=["A=1"]), "--keep-env takes the names"),
    ],
)
def test_a_word_that_means_nothing_is_refused_whatever_is_asked_for(
    request_of: Callable[[Settings], RunConfig], said: Settings, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        request_of(said)


def test_what_is_asked_for_in_numbers_of_python_is_read_again_from_its_file(tmp_path: Path) -> None:
    asked = request.run(Settings(memory_limit=4e9, budget=600, timeout=60))
    assert asked == request.run(Settings(memory_limit=4_000_000_000, budget="10m", timeout=60))
    store = Store.create(tmp_path, "2026-01-02T03:04:05Z")
    store.begin(dataclasses.replace(made.record(), config=asked))
    assert load(store.journal).config == asked


def test_a_sweep_crosses_terms_with_sizes_and_goes_on_where_series_cross() -> None:
    asked = request.sweep(Settings(["dense"], batch_sizes=["1..2"], widths=["0.5", "1"], jit=["on"]))
    assert asked.options == [
        Options(jit=True, batch=batch, width=width) for batch in (1, 2) for width in (0.5, 1.0)
    ]  # fmt: skip
    assert (asked.refine, asked.effort.protocol) == (True, SWEEP)
    assert [options.batch for options in request.sweep(Settings(["dense"])).options][-1] == 4096
    assert {options.batch for options in request.sweep(Settings(["dense"], widths=["1", "2"])).options} == {None}


def test_what_a_file_says_was_asked_for_is_looked_at_again() -> None:
    with pytest.raises(UsageError, match="unknown device"):
        request.validated(dataclasses.replace(RunConfig(), devices=["toaster"]))
    assert request.validated(RunConfig(options=[DEFAULT])) == RunConfig()
    for other in ("nope", "nope@old", "@", "jax.x"):  # of an interrupted run, whose file may be anybody's
        with pytest.raises(UsageError, match="unknown backend"):
            request.validated(RunConfig(environments=["torch@old", other]))


def test_what_is_said_of_a_model_goes_with_what_is_asked_for() -> None:
    said = Settings(
        scenarios=["mine.keras"], inputs=["tokens=128"], batch_size=8, trust=True, rows="rows.npz", samples=3
    )
    assert request.run(said).model_config == ModelConfig([Input("tokens", [128])], 8, "", True, "rows.npz", 3)
    assert request.run(Settings()).model_config == ModelConfig()


@pytest.mark.parametrize("batch", [0, -1, 1 << 21, 8.0])
def test_a_batch_of_no_samples_is_none(batch: int) -> None:
    with pytest.raises(UsageError, match="--batch-size takes a whole number from 1 to"):
        request.run(Settings(batch_size=batch))


def test_a_suite_is_asked_for_in_place_of_scenarios() -> None:
    assert request.run(Settings(suite="tiny")) == RunConfig(suite="tiny")
    with pytest.raises(UsageError, match="--suite and --scenario exclude each other"):
        request.run(Settings(["resnet8"], suite="tiny"))


def test_efforts() -> None:
    assert request.effort_of(False, None, False) == DEFAULT_EFFORT
    assert request.effort_of(True, None, False) == QUICK
    assert request.effort_of(False, 7, False) == exactly(7)
    assert request.effort_of(False, None, True) == exactly(12)
    assert request.effort_of(True, None, False, "sweep") == dataclasses.replace(QUICK, protocol=SWEEP)
    assert request.effort_of(False, 7, False, "sweep") == exactly(7, SWEEP)
    with pytest.raises(UsageError, match="exclude each other"):
        request.effort_of(True, 3, False)
    with pytest.raises(UsageError, match="unknown protocol 'sweep'"):
        request.run(Settings(protocol="sweep"))


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_number_of_rounds_that_is_none_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"--rounds takes a whole number from 1 on, not {count}"):
        request.effort_of(False, count, False)


def test_a_model_s_own_layers_are_in_a_python_file(tmp_path: Path) -> None:
    file = tmp_path / "layers.py"
    file.touch()
    assert request.run(Settings(custom=str(file))).model_config.custom == str(file)
    for wrong in (str(tmp_path / "none.py"), str(tmp_path)):
        with pytest.raises(UsageError, match="--custom takes a Python file"):
            request.run(Settings(custom=wrong))


def test_each_of_the_terms_is_measured_at_each_size() -> None:
    assert [one.label for one in request.crossed([DEFAULT, Options(jit=False)], [1, 8], [])] == [
        "batch=1",
        "jit=off batch=1",
        "batch=8",
        "jit=off batch=8",
    ]
    assert [one.size for one in request.crossed([DEFAULT], [], [0.5, 2.0])] == [Size(width=0.5), Size(width=2.0)]
    assert len(request.crossed([DEFAULT, Options(jit=False)], [1, 8], [1.0, 2.0])) == 8


@pytest.mark.parametrize(("batches", "widths"), [([], []), ([8], []), ([8], [2.0])])
def test_one_size_is_no_sweep(batches: list[int], widths: list[float]) -> None:
    with pytest.raises(UsageError, match="two sizes or more"):
        request.crossed([DEFAULT], batches, widths)


@pytest.mark.parametrize(
    ("low", "high", "found"), [(64, 128, [81, 102]), (8, 64, [16, 32]), (1, 2, []), (2, 4, [3]), (1, 4, [2, 3])]
)
def test_two_sizes_divide_a_bracket_where_there_is_room(low: float, high: float, found: list[float]) -> None:
    assert request.sizes_between(low, high, whole=True) == found
    assert request.sizes_between(1, 2, whole=False) == [1.26, 1.59]  # widths


def test_a_sweep_is_of_one_workload_and_by_widths_of_one_that_scales() -> None:
    with pytest.raises(UsageError, match=r"names 2: dense\.py/a, dense\.py/b; name one of them"):
        request.require_sweepable([made.selected(workload_name="a"), made.selected(workload_name="b")], [DEFAULT])
    request.require_sweepable([made.selected()], [Options(batch=8)])
    with pytest.raises(UsageError, match="dense has no --width"):
        request.require_sweepable([made.selected()], [Options(batch=8), Options(width=2.0)])


def test_options_are_crossed_and_taken_once() -> None:
    assert request.options_of(Settings()) == [DEFAULT]
    assert request.options_of(Settings(jit=["on", "off"], dtype=["float32", "float32"], threads=["1"])) == [
        Options(jit=True, dtype="float32", threads=1),
        Options(jit=False, dtype="float32", threads=1),
    ]


def test_kept_memory_makes_a_column() -> None:
    assert request.options_of(Settings(malloc=["default", "keep"])) == [DEFAULT, Options(malloc="keep")]
    with pytest.raises(UsageError, match="did you mean 'keep'"):
        request.options_of(Settings(malloc=["kept"]))


def test_steps_in_an_execution_make_columns_and_a_baseline_has_a_loop_of_its_own() -> None:
    found = request.options_of(Settings(native=True, steps_per_execution=["1", "8"]))
    assert found == [Options(steps_per_execution=1), Options(steps_per_execution=8), Options(native=True)]


def test_baselines_are_columns_beside_all_others_and_compete_with_none() -> None:
    offered = request.options_of(Settings(native=True))
    assert [options.label for options in offered] == ["", "native=on"]
    assert [options for options in offered if Column("jax", "cpu", options).competes] == [DEFAULT]


def test_each_column_with_keras_is_measured_once_more_with_a_warm_cache_and_that_one_competes_with_none() -> None:
    settings = Settings(jit=["on"], native=True, steps_per_execution=["1", "8"], warm_cache=True)
    found = request.options_of(settings)
    warm = [one for one in found if one.warm_cache]
    assert warm == [Options(jit=True, steps_per_execution=steps, warm_cache=True) for steps in (1, 8)]
    assert len(found) == 5
    assert not any(Column("jax", "cpu", one).competes for one in warm)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Settings(jit=["yes"]), "value of --jit 'yes'"),
        (Settings(dtype=["bf16"]), r"value of --dtype 'bf16'.*bfloat16"),
        (Settings(fp32=["tf23"]), "did you mean 'tf32'"),
        *((Settings(threads=[text]), "--threads takes whole numbers from 1 on") for text in ("0", "-1", "two")),
        (Settings(warm_cache=True, quick=True), "--warm-cache is about the first step, which --quick does not measure"),
        (Settings(warm_cache=True, protocol="published"), "which --protocol published does not measure"),
    ],
)
def test_an_option_that_means_nothing_is_refused(said: Settings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        request.run(said)


def test_a_race_tries_what_changes_no_result_unless_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    found = request.fastest(Settings(scenarios=["dense"], budget="10m"))
    assert found.race == RaceConfig(
        tries=["backend", "device", "jit", "threads", "malloc", "steps-per-execution"], baseline="jax"
    )
    protocol = dataclasses.replace(RACE.protocol, predicts=False)
    assert found.effort == dataclasses.replace(RACE, budget_s=600, protocol=protocol)
    assert found.backends == []
    named = request.fastest(Settings(scenarios=["dense"], tries=["jit"], margin="10%", purpose="predict", rounds=6))
    assert named.race == RaceConfig("predict", 0.1, ["jit"], "jax")
    assert (named.backends, named.effort.max_rounds) == (["jax"], 6)
    assert (named.effort.protocol.epochs, named.effort.protocol.predicts) == (False, True)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Settings(tries=["batch-size"], purpose="predict"), "--try batch-size is for training"),
        (Settings(purpose="evaluate"), "purpose 'evaluate'"),
        (Settings(tries=["batch"]), "setting to --try 'batch'"),
        (Settings(margin="0%"), "--within must be above 0%, for example 5%; you gave 0%."),
        (Settings(margin="much"), "--within takes a share"),
        (Settings(rounds=13), "at most 12 rounds"),
    ],
)
def test_a_race_that_means_nothing_is_refused(said: Settings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        request.fastest(said)


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
def test_the_backend_that_keras_takes_without_settings(
    tmp_path: Path, variables: dict[str, str], configured: str, backend: str
) -> None:
    (tmp_path / "keras.json").write_text(configured)
    assert request.default_backend({"KERAS_HOME": str(tmp_path)} | variables) == backend


@pytest.mark.parametrize(
    ("parse", "given", "meant"),
    [
        (request.parse_share, "5%", 0.05),
        (request.parse_share, "2.5 %", 0.025),
        (request.parse_share, "7", 0.07),
        (request.parse_share, 0.1, 0.1),
        (request.parse_duration_s, "90", 90),
        (request.parse_duration_s, "1.5h", 5400),
        (request.parse_duration_s, " 2m ", 120),
        (request.parse_size_bytes, "4G", 4 << 30),
        (request.parse_size_bytes, "500m", 500 << 20),
        (request.parse_size_bytes, "1.5GiB", 3 << 29),
        (request.parse_inputs, ["96x96x3"], [Input("", [96, 96, 3])]),
        (request.parse_inputs, ["tokens=1x128:int32"], [Input("tokens", [1, 128], "int32")]),
        (request.parse_inputs, [" a/b:0=7 "], [Input("a/b:0", [7])]),
        (request.parse_widths, ["2", "0.5", "1", "2.0"], [0.5, 1.0, 2.0]),
        (request.parse_batches, ["1..8"], [1, 2, 4, 8]),
        (request.parse_batches, ["3..100"], [3, 6, 12, 24, 48, 96]),
        (request.parse_batches, ["48", "1..4", "4"], [1, 2, 4, 48]),
    ],
)
def test_words_are_understood(parse: Callable[[Any], object], given: Any, meant: object) -> None:
    assert parse(given) == meant


@pytest.mark.parametrize(
    ("parse", "texts", "complaint"),
    [
        (request.parse_share, ["100%", "many", "-1%", "", 1.0, -0.1], "--threshold takes a share below 100%"),
        (request.parse_duration_s, ["", "m", "10 minutes", "-5m", "0", "1e9"], "--budget takes a time"),
        (
            request.parse_size_bytes,
            ["", "4", "g", "-1g", "0g", "4t", "4g4", "1e3m", "٤g"],
            "--memory-limit takes a size of memory such as 500m or 4g, not",
        ),
        (
            request.parse_inputs,
            [["tokens"], ["tokens="], ["96x"], ["96x0"], ["x=3:string"], ["=3"], ["3x-1"], [""]],
            "--input takes NAME=SIZE such as tokens=128:int32, or 96x96x3, not",
        ),
        (request.parse_inputs, [["a=1", "a=2"], ["1", "2"]], "give each input once"),
        (request.parse_widths, [["0"], ["-1"], ["nan"], ["inf"], ["wide"], ["1..4"]], "--width takes factors"),
        (request.parse_batches, [["8..1"]], "put the smaller number first"),
        (request.parse_batches, [["0..8"], ["1..2097152"]], "from 1 to 1,048,576"),
        (request.parse_batches, [["0"], ["2097152"]], "whole numbers from 1"),
        (request.parse_batches, [["-1"], ["1.5"], ["1...8"], ["²"], ["all"]], "doubled from 1 on"),
    ],
)
def test_what_means_nothing_is_refused(parse: Callable[[Any], object], texts: list[Any], complaint: str) -> None:
    for text in texts:
        with pytest.raises(UsageError, match=complaint):
            parse(text)


def test_a_soak_is_one_long_block_with_a_control() -> None:
    found = request.soak(Settings(scenarios=["dense"], minutes=10))
    protocol = found.effort.protocol
    assert found.soak == SoakConfig("train", 10.0)
    assert (protocol.kind, protocol.soaks, protocol.slices_max_ns) == ("steady", True, 600_000_000_000)
    assert found.control
    assert (found.effort.min_rounds, found.effort.max_rounds) == (1, 1)
    assert found.timeout_s is None
    assert request.soak(Settings(scenarios=["dense"], purpose="predict")).effort.protocol.kind == "calls"


@pytest.mark.parametrize(("purpose", "clears"), [("build", False), ("build-cleared", True)])
def test_a_soak_of_builds_says_whether_the_session_is_cleared(purpose: str, clears: bool) -> None:
    protocol = request.soak(Settings(scenarios=["dense"], purpose=purpose)).effort.protocol
    assert (protocol.kind, protocol.clears, protocol.soaks) == ("builds", clears, True)
    with pytest.raises(UsageError, match="purpose 'build'"):
        request.fastest(Settings(scenarios=["dense"], purpose="build"))


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (Settings(minutes=0), "--minutes takes a number from 0.1"),
        (Settings(minutes=1e6), "--minutes takes a number"),
        (Settings(minutes=10, timeout="5m"), "--timeout would stop a soak of 10 minutes before its end"),
        (Settings(purpose="predict-one"), "purpose 'predict-one'"),
    ],
)
def test_a_soak_that_means_nothing(said: Settings, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        request.soak(said)
