"""What each fact says of what a backend has told, with stand-ins: no framework is here."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench import facts
from kerasbench.backends import Operation
from kerasbench.cli.options import FACT_NAMES
from kerasbench.facts import BY_NAME, NOT_KNOWN, NOTHING, Evidence, products
from kerasbench.protocol.measurement import Compiler
from tests import made


def layer(kind: str, **attributes: Any) -> Any:
    return type(kind, (), attributes)()


def evidence(*layers: Any, dtypes: set[str] | None = None, platform: str = "cpu", **different: Any) -> Evidence:
    resolved = made.changed(made.measurement().resolved, **different.pop("resolved", {}))
    runner: Any = SimpleNamespace(
        layers=layers,
        compute_dtypes=dtypes or {"float32"},
        request=SimpleNamespace(device=SimpleNamespace(platform=platform)),
        model=SimpleNamespace(weights=different.pop("weights", [])),
    )
    return Evidence(runner, resolved, different.pop("compiler", None), **different)


def said(name: str, of: Evidence) -> str:
    return facts.read(of)[name]


def test_each_model_has_all_facts_and_what_cannot_be_read_is_not_known() -> None:
    assert facts.read(evidence()) == {
        "attention": NOTHING,
        "compiled": "not asked",
        "convolution": NOTHING,
        "executions": "1",
        "products": "float32",
        "quantised": NOTHING,
        "recurrent": NOTHING,
    }
    broken = facts.read(Evidence(SimpleNamespace(), made.measurement().resolved, None))  # type: ignore[arg-type]
    assert {name for name, value in broken.items() if value == NOT_KNOWN} >= {"attention", "products", "quantised"}


ATTENTION = layer("MultiHeadAttention")
SDPA, PREFIX = "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_"


@pytest.mark.parametrize(
    ("names", "value"),
    [
        ([SDPA, f"{PREFIX}flash_attention_for_cpu"], "flash"),
        ([SDPA, f"{PREFIX}efficient_attention", f"{PREFIX}flash_attention"], "flash and efficient"),
        ([SDPA, f"{PREFIX}attention_math"], "math"),
        ([SDPA, f"{PREFIX}cudnn_attention"], "cuDNN"),
        ([SDPA, f"{PREFIX}of_next_year"], NOT_KNOWN),
        (["aten::bmm"], "products of Keras"),
    ],
)
def test_the_kernel_of_attention_is_read_from_what_ran(names: list[str], value: str) -> None:
    assert said("attention", evidence(ATTENTION, operations=list(map(Operation, names)))) == value


@pytest.mark.parametrize(
    ("notes", "value"), [({"": "", "math": ""}, "math"), ({"": ""}, "products of Keras"), ({}, NOT_KNOWN)]
)
def test_where_nothing_is_run_eagerly_the_function_that_was_traced_tells(notes: dict[str, str], value: str) -> None:
    assert said("attention", evidence(ATTENTION, notes={"attention": notes})) == value


def test_images_that_are_copied_before_they_are_pooled_are_counted() -> None:
    pool = type("Pool", (type("BasePooling", (), {}),), {"data_format": "channels_last"})()
    image, copied = (8, 3, 4, 4), Operation("aten::clone", (8, 3, 4, 4))
    last, first = (Operation("aten::convolution", image, strides) for strides in ((48, 1, 12, 3), (48, 16, 4, 1)))
    other = Operation("aten::clone", (8, 3))
    assert said("convolution", evidence(pool, operations=[last, copied, copied, other])) == (
        "channels_last, copied 2 times in a step"
    )
    assert said("convolution", evidence(pool, operations=[first])) == "channels_first, copied 0 times in a step"
    single = Operation("aten::max_pool2d", (8, 1, 4, 4), (16, 1, 4, 1))  # both orders at once
    assert said("convolution", evidence(pool, operations=[single])) == "not known, copied 0 times in a step"
    assert said("convolution", evidence(pool)) == "channels_last as Keras asks for it, copies not known"


@pytest.mark.parametrize(
    ("jit", "compiler", "value"),
    [
        (False, None, "not asked"),
        (True, Compiler(programs=1), "asked and done"),
        (True, Compiler(eager="it has hit its limit"), "asked and not done: it has hit its limit"),
        (True, Compiler(breaks={"a": 2, "b": 1}, given_up=1), "asked and done, 3 graph breaks, 1 piece given up"),
        (True, Compiler(traces=9, while_measured=4), "asked and done, again while it was measured"),
    ],
)
def test_what_was_compiled(jit: bool, compiler: Compiler | None, value: str) -> None:
    assert said("compiled", evidence(resolved={"jit": jit}, compiler=compiler)) == value


@pytest.mark.parametrize(
    ("unrolled", "python_steps", "value"),
    [
        (1, 0, "8 in one program"),
        (4, 0, "8 in one program, 4 of them unrolled"),
        (1, 8, "8 one by one, in a loop of Python"),
        (1, None, "8, fused: not known"),
    ],
)
def test_steps_of_an_execution_may_run_one_by_one(unrolled: int, python_steps: int | None, value: str) -> None:
    resolved = {"steps_per_execution": 8, "unrolled_steps": unrolled}
    assert said("executions", evidence(resolved=resolved, python_steps=python_steps)) == value


@pytest.mark.parametrize(
    ("text", "native"),
    [("flags\t\t: fpu avx512_bf16 sse\n", True), ("Features : fp asimd\n", False), ("nothing\n", None), (None, None)],
)
def test_whether_a_processor_multiplies_bfloat16(tmp_path: Path, text: str | None, native: bool | None) -> None:
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text)
    assert products.has_instructions("bfloat16", file, system="linux") is native


@pytest.mark.parametrize(
    ("native", "value"),
    [
        (True, "bfloat16 and float32"),
        (False, "bfloat16, emulated on this processor and float32"),
        (None, "bfloat16, emulated on this processor: not known and float32"),
    ],
)
def test_what_a_processor_emulates_is_said(monkeypatch: pytest.MonkeyPatch, native: bool | None, value: str) -> None:
    monkeypatch.setattr(products, "has_instructions", lambda dtype: native)
    assert said("products", evidence(dtypes={"bfloat16", "float32"})) == value
    gpu = evidence(dtypes={"bfloat16", "float32"}, platform="cuda", resolved={"fp32": "tf32"})
    assert said("products", gpu) == "bfloat16 and float32, rounded as tf32"


def test_the_share_of_quantised_parameters() -> None:
    weights = [SimpleNamespace(shape=(30, 10), dtype="int8"), SimpleNamespace(shape=(100,), dtype="float32")]
    assert said("quantised", evidence(weights=weights)) == "75 % int8"


def test_a_gate_can_name_each_fact() -> None:
    assert set(FACT_NAMES) == set(BY_NAME)


def test_files_from_before_facts_tell_of_recurrent_layers() -> None:
    earlier = made.changed(made.measurement(), resolved={"recurrent": ["lstm: keras", "gru: cudnn"]})
    assert facts.of(earlier) == {"recurrent": "lstm: keras; gru: cudnn"}
    assert facts.of(dataclasses.replace(earlier, facts={"attention": "flash"})) == {"attention": "flash"}
    assert facts.of(made.measurement()) == {}


@pytest.mark.parametrize(
    ("name", "value", "explains"),
    [
        ("attention", "math", True),
        ("attention", NOTHING, False),
        ("compiled", "asked and done", False),
        ("convolution", "channels_last, copied 0 times in a step", False),
        ("convolution", "channels_last, copied 2 times in a step", True),
        ("convolution", "channels_last as Keras asks for it, copies not known", False),
        ("executions", "8 one by one, in a loop of Python", True),
        ("products", "bfloat16, emulated on this processor", True),
        ("quantised", NOTHING, False),
        ("recurrent", "LSTM: loop", True),
    ],
)
def test_a_page_has_those_that_explain_a_time(name: str, value: str, explains: bool) -> None:
    assert BY_NAME[name].explains(value) is explains
