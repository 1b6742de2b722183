from collections.abc import Sequence
from typing import Any

import pytest

from kerasbench.analysis.parity import deviations, judge_parity
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement, Parity
from kerasbench.protocol.messages import Code
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH

LOSSES = (2.3, 2.2, 2.1, 2.0, 1.9, 1.8)
Case = tuple[str, Measurement]


def case(
    *losses: float,
    kind: str = "cpu",
    computed: str = "float32",
    fp32: str = "ieee",
    layers: Sequence[str] = (),
    outputs: Sequence[list[float]] = (),
) -> Case:
    return kind, made.changed(
        made.measurement(),
        resolved={"compute_dtypes": [computed], "fp32": fp32},
        parity=Parity(list(losses), [], list(outputs), list(layers)),
    )


def off(share: float, step: int = 0, **different: Any) -> Case:
    return case(*[loss * (1 + share * (index == step)) for index, loss in enumerate(LOSSES)], **different)


def judged(**cases: Case) -> list[str]:
    """Return the columns beyond their bounds, whether they fail or are warned of; baselines end in _native."""
    columns = {
        Column(name.removesuffix("_native"), "cpu", Options(native=name.endswith("_native") or None)): measured
        for name, measured in cases.items()
    }
    beyond = judge_parity(columns) | deviations(columns)
    return [name for name, column in zip(cases, columns, strict=True) if column in beyond]


SAME, BATCHED = case(*LOSSES), ["BatchNormalization"]
GROWN = (5e-6, 2e-4, 8e-3, 0.1, 0.5, 0.2)
SUDDEN = (0, 1e-6, 8e-3, 0.1, 0.5, 0.2)


@pytest.mark.parametrize(
    ("odd", "fails"),
    [
        (off(5e-6), False),
        (off(5e-5), True),
        (off(5e-4, 1), False),
        (off(2e-3, 1), True),
        (off(2e-3, 5), True),
        (off(-2e-3, 5), True),
        # Coarser arithmetic is laid beside the finest and allowed more.
        (off(1e-2, computed="bfloat16"), False),
        (off(0.2, computed="bfloat16"), True),
        (off(5e-5, kind="gpu"), False),
        (off(1e-2, kind="gpu", fp32="tf32"), False),
        # Layers by which backends differ more are allowed more, and never less.
        (off(5e-3, 1, layers=["Embedding"]), False),
        (off(5e-2, 1, layers=["Embedding"]), True),
        (off(5e-5, 0, layers=["Embedding"]), True),
        (off(5e-5, 0, layers=["Embedding"], kind="gpu"), False),
        (off(5e-5, 0, layers=BATCHED), False),
        (off(5e-4, 0, layers=BATCHED), True),
        (off(5e-2, 1, layers=[*BATCHED, "Embedding"]), False),
        (off(0.2, 1, layers=BATCHED), True),
        (off(5e-3, 1, layers=["a kind of a later version"]), True),
        # Rounding that grows step by step is chaos, and a sudden difference is not.
        (case(*[loss * (1 + share) for loss, share in zip(LOSSES, GROWN, strict=True)]), False),
        (case(*[loss * (1 + share) for loss, share in zip(LOSSES, SUDDEN, strict=True)]), True),
    ],
)
def test_one_of_three_stands_out(odd: Case, fails: bool) -> None:
    assert judged(jax=SAME, tensorflow=SAME, torch=odd) == ["torch"] * fails


OUTPUTS, BASELINES = case(outputs=[[100.0, 0.0], [1.0]]), ("jax_native", "tensorflow_native", "torch_native")


def far(last: float, **different: Any) -> Case:
    return case(outputs=[[100.0, last], [1.0]], **different)


@pytest.mark.parametrize(
    ("cases", "fails"),
    [
        ({"jax": SAME, "torch": off(0.1)}, ["jax", "torch"]),  # nobody knows which is right
        ({"jax": SAME, "torch": off(1.5e-5)}, ["jax", "torch"]),  # nor by a little, where both are precise
        ({"jax": SAME, "torch": ("cpu", made.changed(made.measurement(), parity=None))}, []),  # one is not judged
        # A precise one is the reference, and not judged by coarser ones.
        ({"jax": SAME, "torch": off(1e-2, computed="bfloat16")}, []),
        ({"jax": SAME, "torch": off(0.5, computed="bfloat16")}, ["torch"]),
        ({"jax": SAME, "tensorflow": off(5e-5, kind="gpu"), "torch": off(5e-5, kind="gpu")}, []),
        ({"jax": case(*[1e-9] * 6), "torch": case(*[2e-9] * 6)}, []),  # a small loss is compared as it stands
        # A baseline is held against Keras and never the other way round, and without Keras against others.
        ({"torch": SAME, "torch_native": SAME}, []),
        ({"torch": SAME, "torch_native": off(0.1, 1)}, ["torch_native"]),
        ({"jax": SAME, "torch": SAME} | dict.fromkeys(BASELINES, off(0.1, 1)), [*BASELINES]),
        ({"jax_native": SAME, "torch_native": off(0.1)}, ["jax_native", "torch_native"]),
        ({"torch": case(*LOSSES, layers=["Embedding"]), "torch_native": off(5e-3, 1)}, []),  # of unknown layers
        # Outputs are compared by their largest number, and do not excuse losses.
        ({"jax": OUTPUTS, "tensorflow": OUTPUTS, "torch": far(0.001)}, []),
        ({"jax": OUTPUTS, "tensorflow": OUTPUTS, "torch": far(0.05)}, ["torch"]),
        ({"jax": OUTPUTS, "tensorflow": OUTPUTS, "torch": far(0.05, kind="gpu")}, []),
        ({"jax": case(*LOSSES, outputs=[[1.0]]), "torch": off(0.1, outputs=[[1.0]])}, ["jax", "torch"]),
        # One on the CPU is the reference of one on a GPU, with such layers too.
        ({"jax": case(outputs=[[1.0005]], kind="gpu", layers=BATCHED), "torch": case(outputs=[[1.0]])}, []),
    ],
)
def test_the_more_precise_is_right(cases: dict[str, Case], fails: list[str]) -> None:
    assert judged(**cases) == fails


@pytest.mark.parametrize("options", [{"control": True}, {"warm_cache": True}, {"malloc": "keep"}])
@pytest.mark.parametrize("repeated", ["jax", "torch"])
def test_what_repeats_a_column_has_no_voice_of_its_own(repeated: str, options: dict[str, Any]) -> None:
    """Of two backends that differ nobody knows which is right, also where one of them was measured twice."""
    differ = {JAX: SAME, TORCH: off(0.05)}
    again = {Column(repeated, "cpu", Options(**options)): differ[Column(repeated, "cpu")]}
    assert judge_parity(differ | again).keys() == (differ | again).keys()
    assert judge_parity(again | differ).keys() == (differ | again).keys()


def test_a_version_is_held_against_the_first_which_was_measured_twice() -> None:
    base, head = (Column("jax", "cpu", Options(environment=label)) for label in ("base", "head"))
    again = base.with_options(control=True)
    assert judge_parity({base: SAME, again: SAME, head: off(0.05)}).keys() == {head}


def test_a_control_is_held_against_its_column_where_there_is_no_other() -> None:
    again = JAX.with_options(control=True)
    assert judge_parity({JAX: SAME, again: SAME}) == {}
    assert judge_parity({JAX: SAME, again: off(0.05)}).keys() == {again}


def test_the_failure_says_what_differs_and_by_how_much() -> None:
    for jax, torch, parts in (
        (SAME, off(1.0, 2), ("the loss of step 3 is 4.2, that of the other configuration 2.1", "(bound: 0.001)")),
        (case(outputs=[[2.0]]), case(outputs=[[1.0]]), ("output 1 differs by 1 from", "(bound: 2e-05 of it)")),
    ):
        failure = judge_parity({JAX: jax, TORCH: torch})[TORCH]
        assert failure.code is Code.PARITY and all(part in failure.cause for part in parts)


@pytest.mark.parametrize(
    ("share", "fails", "warned"), [(5e-6, 0, 0), (5e-5, 0, 1), (9.9e-3, 0, 1), (1.1e-2, 1, 0), (1.0, 1, 0)]
)
def test_a_small_deviation_is_a_warning_and_a_larger_one_a_failure(share: float, fails: int, warned: int) -> None:
    cases = {JAX: SAME, TENSORFLOW: SAME, TORCH: off(share)}
    assert [*judge_parity(cases)] == [TORCH] * fails
    beyond = deviations(cases)
    assert [*beyond] == [TORCH] * warned
    assert all(deviation.step == 1 and deviation.share == pytest.approx(share) for deviation in beyond.values())


def test_each_column_is_named_by_the_one_other_column_of_keras_and_none_is_blamed() -> None:
    pair, baseline = {JAX: SAME, TORCH: off(0.002)}, {JAX.with_options(native=True): SAME}
    by_each_other = {JAX: TORCH, TORCH: JAX}
    for cases, beside in ((pair, by_each_other), (pair | baseline, by_each_other | dict.fromkeys(baseline))):
        assert {column: deviation.beside for column, deviation in deviations(cases).items()} == beside
