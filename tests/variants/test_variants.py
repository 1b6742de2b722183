"""What variants refuse, try and prove, and how a file keeps a choice."""

import dataclasses
from typing import Any

import pytest

from kerasbench import backends
from kerasbench.plan import cases
from kerasbench.protocol.columns import DEFAULT, Device, Options
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results.run import RunConfig
from kerasbench.runs.planner import Planner
from kerasbench.variants import BY_NAME, chosen, of_file, unrepeated
from tests import made

CPU, CUDA, METAL, MPS = made.CPU, Device("cuda", 1), Device("metal"), Device("mps")
GOT = Resolved(False, "float32", ["float32"], ["float32"], "ieee", "channels_last", 2, {})
PLAIN = Planner(RunConfig(), None)
TWO_BUSY = Usage(20, 10)


@pytest.mark.parametrize(
    ("asked", "different", "names"),
    [
        (DEFAULT, {}, []),
        (DEFAULT, {"jit": True}, []),  # nobody asked
        (Options(jit=True), {}, ["--jit"]),
        (Options(dtype="mixed_bfloat16"), {}, ["--dtype"]),
        (Options(dtype="mixed_bfloat16"), {"dtype_policy": "mixed_bfloat16", "compute_dtypes": ["bfloat16"]}, []),
        # A scenario that names its layers' dtype itself.
        (Options(dtype="mixed_bfloat16"), {"dtype_policy": "mixed_bfloat16"}, ["--dtype"]),
        (Options(dtype="float64"), {"dtype_policy": "float64", "compute_dtypes": ["float64"]}, ["--dtype"]),
        (DEFAULT, {"fp32": "tf32"}, []),
        (Options(fp32="tf32"), {}, ["--fp32"]),
        (Options(fp32="tf32"), {"fp32": "tf32"}, []),
        (Options(fp32="framework-default"), {"fp32": "mixed"}, []),
        (Options(threads=1), {}, ["--threads"]),
        (Options(threads=1), {"threads": 1}, ["--threads"]),  # a pool of one, and two processors busy
        (Options(threads=2), {"threads": None}, []),
        (Options(steps_per_execution=8), {}, ["--steps-per-execution"]),
        (DEFAULT, {"steps_per_execution": 8}, []),  # the scenario's own choice
        (Options(unrolled_steps=8), {}, ["--unrolled-steps"]),
        (Options(unrolled_steps=8), {"unrolled_steps": 8}, []),
        (Options(feed="dataloader"), {}, ["--feed"]),
        (Options(feed="dataloader"), {"feed": "a DataLoader"}, []),
        (Options(feed="grain", workers=2), {"feed": "grain"}, ["--workers"]),
        (Options(feed="grain", workers=2), {"feed": "grain", "workers": 2}, []),
        (Options(malloc="keep"), {}, ["--malloc"]),
        (Options(layout="channels_first"), {}, ["--layout"]),
        (Options(layout="channels_first"), {"image_data_format": "channels_first"}, []),
        (Options(warm_cache=True), {"cached": 3}, []),
        (Options(warm_cache=True), {}, ["--warm-cache"]),
        (Options(warm_cache=True), {"cached": None}, []),
        (Options(runtime="pt2"), {}, []),
        (Options(runtime="pt2"), {"compute_dtypes": ["bfloat16"]}, ["--runtime"]),
    ],
)
def test_what_was_asked_for_and_what_came(asked: Options, different: dict[str, Any], names: list[str]) -> None:
    got = dataclasses.replace(GOT, **different)
    otherwise = [f"--{variant.flag}" for variant, value in chosen(asked) if variant.ran_as(value, got, TWO_BUSY)]
    assert otherwise == names


XLA_OFF = "TensorFlow keeps only what XLA has compiled, and XLA is off here"
NOTHING_COMPILED = "torch compiles nothing without --jit on, so it leaves no cache"


@pytest.mark.parametrize(
    ("name", "device", "options", "cause"),
    [
        ("tensorflow", METAL, Options(jit=True), "XLA does not compile for Metal"),
        ("tensorflow", METAL, Options(jit=False), ""),
        ("tensorflow", METAL, Options(warm_cache=True), XLA_OFF),
        *((name, MPS, Options(jit=True), "") for name in ("torch", "jax")),
        ("jax", CPU, Options(warm_cache=True), ""),
        *(("torch", CPU, Options(jit=jit, warm_cache=True), NOTHING_COMPILED) for jit in (None, False)),
        ("torch", CPU, Options(jit=True, warm_cache=True), ""),
        ("tensorflow", CPU, Options(warm_cache=True), XLA_OFF),
        ("tensorflow", CPU, Options(jit=True, warm_cache=True), ""),
        ("tensorflow", CUDA, Options(warm_cache=True), ""),
        ("tensorflow", CUDA, Options(jit=False, warm_cache=True), XLA_OFF),
        ("torch", CPU, Options(unrolled_steps=8), "Keras unrolls no steps on torch"),
        (
            "tensorflow",
            CPU,
            Options(unrolled_steps=8),
            "1 steps in one execution are not a multiple of 8 unrolled ones",
        ),
        ("tensorflow", CPU, Options(unrolled_steps=4, steps_per_execution=8), ""),
        ("jax", CPU, Options(feed="tf.data"), ""),
        ("jax", CPU, Options(feed="tf.data", workers=2), "the feed tf.data has no workers"),
        ("jax", CPU, Options(workers=2), "the feed arrays has no workers"),
        ("jax", CPU, Options(feed="pydataset", workers=2), ""),
    ],
)
def test_what_a_backend_cannot_do_is_refused(name: str, device: Device, options: Options, cause: str) -> None:
    failure = cases.unsupported(cases.Case(made.selected(), name, device, options), PLAIN, 2)
    assert (failure.cause if failure else "") == cause


@pytest.mark.parametrize(
    ("device", "kind", "options", "cause"),
    [
        (CPU, "predictions", Options(runtime="pt2", threads=1), ""),
        (CPU, "calls", Options(runtime="pt2", dtype="float32"), ""),
        (CUDA, "predictions", Options(runtime="pt2"), "exported models are measured on the CPU alone"),
        (CPU, "steady", Options(runtime="pt2"), "an exported model only predicts"),
        *(
            (
                CPU,
                "predictions",
                options,
                "an exported model computes in float32, as it was written, and is compiled as its runtime does",
            )
            for options in (Options(runtime="pt2", jit=False), Options(runtime="pt2", dtype="mixed_bfloat16"))
        ),
    ],
)
def test_what_an_exported_model_cannot_have(device: Device, kind: Any, options: Options, cause: str) -> None:
    case = cases.Case(made.selected(), "torch", device, options, TrialPlan(kind))
    failure = cases.unsupported(case, PLAIN, 2)
    assert (failure.cause if failure else "") == cause


def test_what_a_child_sets() -> None:
    options = Options(dtype="float64", malloc="keep", threads=3, warm_cache=True)
    sets = {
        name: {
            variable: value
            for variant, chosen_value in chosen(options)
            for variable, value in variant.variables(chosen_value, backends.get(name), "/caches").items()
        }
        for name in backends.names()
    }
    assert (sets["jax"]["NPROC"], sets["torch"]["OMP_NUM_THREADS"]) == ("3", "3")
    assert [name for name in sets if "JAX_ENABLE_X64" in sets[name]] == ["jax"]
    assert all(sets[name]["MALLOC_ARENA_MAX"] == "1" for name in sets)
    assert (
        sets["jax"]["JAX_COMPILATION_CACHE_DIR"] == "/caches" and sets["jax"]["JAX_ENABLE_COMPILATION_CACHE"] == "true"
    )
    assert sets["tensorflow"]["TF_XLA_FLAGS"].endswith("=/caches")


def test_what_a_page_says_of_variables_can_be_typed_again() -> None:
    env = BY_NAME["env"]
    values = env.parse(["A=1", "2", "B=x"])
    assert values == ["A=1 B=x", "A=2 B=x"]
    assert env.parse(",".join(map(env.word, values)).split(",")) == values


def test_a_file_keeps_choices_flat_and_leaves_defaults_out() -> None:
    old = {"jit": None, "fp32": "ieee", "native": False, "control": False, "environment": "", "malloc": None}
    assert of_file(old) == DEFAULT
    options = Options(jit=False, width=2.0, control=True, threads=2)
    assert of_file(dict(options)) == options
    assert options.label == "jit=off threads=2 control=on width=2"
    assert unrepeated(Options(malloc="keep", jit=True)) == Options(jit=True)


@pytest.mark.parametrize(
    "values",
    [
        {"malloc": "some"},
        {"steps_per_execution": 0},
        {"speed": 3},
        {"threads": "two"},
        {"jit": 1},
        {"width": "wide"},
        [],
    ],
)
def test_what_no_column_can_have_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match=r"cannot be|no configuration has|no object"):
        of_file(values)


@pytest.mark.parametrize(
    ("kind", "workload", "is_refused"),
    [("steady", {}, False), ("steady", {"predicts_only": True}, True), ("predictions", {}, True), ("calls", {}, True)],
)
def test_what_is_only_predicted_is_fed_nothing(kind: Any, workload: dict[str, bool], is_refused: bool) -> None:
    case = made.case(backend="tensorflow", options=Options(feed="tf.data"))
    case = made.changed(case, plan={"kind": kind}, selected={"workload": workload})
    refused = BY_NAME["feed"].refusal("tf.data", cases.facts(case, 2))
    assert (refused is not None) == is_refused
