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
    """A case of which one loss is so far off."""
    return case(*[loss * (1 + share * (index == step)) for index, loss in enumerate(LOSSES)], **different)


def judged(**cases: Case) -> list[str]:
    """Return the columns beyond their bounds, whether they fail or are warned of; baselines end in _native."""
    columns = {
        Column(name.removesuffix("_native"), "cpu", Options(native=name.endswith("_native"))): measured
        for name, measured in cases.items()
    }
    beyond = judge_parity(columns) | deviations(columns)
    return [name for name, column in zip(cases, columns, strict=True) if column in beyond]


SAME, NORMALIZED = case(*LOSSES), ["BatchNormalization"]
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
        # Rounding that grows step by step is chaos, and a sudden difference is not.
        (case(*[loss * (1 + share) for loss, share in zip(LOSSES, GROWN, strict=True)]), False),
        (case(*[loss * (1 + share) for loss, share in zip(LOSSES, SUDDEN, strict=True)]), True),
    ],
)
def test_one_of_three_stands_out(odd: Case, fails: bool) -> None:
    assert judged(jax=SAME, tensorflow=SAME, torch=odd) == ["torch"] * fails


@pytest.mark.parametrize(
    ("jax", "torch", "fails"),
    [
        (SAME, off(0.1), ["jax", "torch"]),  # nobody knows which is right
        (SAME, off(1.5e-5), ["jax", "torch"]),  # nor by a little, where both are precise
        (SAME, ("cpu", made.changed(made.measurement(), parity=None)), []),  # one alone is not judged
        (SAME, off(1e-2, computed="bfloat16"), []),  # a precise one is the reference, and not judged by a coarser one
        (SAME, off(0.5, computed="bfloat16"), ["torch"]),
        (case(*[1e-9] * 6), case(*[2e-9] * 6), []),  # a small loss is compared as it stands
        # Outputs that agree do not excuse losses that do not.
        (case(*LOSSES, outputs=[[1.0]]), off(0.1, outputs=[[1.0]]), ["jax", "torch"]),
        # One on the CPU is the reference of one on a GPU, with such layers too.
        (case(outputs=[[1.0005]], kind="gpu", layers=NORMALIZED), case(outputs=[[1.0]], layers=NORMALIZED), []),
    ],
)
def test_of_two_the_more_precise_is_right(jax: Case, torch: Case, fails: list[str]) -> None:
    assert judged(jax=jax, torch=torch) == fails


def test_one_precise_case_is_not_judged_by_several_coarser_ones() -> None:
    assert judged(jax=SAME, tensorflow=off(5e-5, kind="gpu"), torch=off(5e-5, kind="gpu")) == []


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
        (
            case(outputs=[[2.0]]),
            case(outputs=[[1.0]]),
            ("output 1 differs by 1 from", "(bound: 2e-05 of it)"),
        ),
    ):
        failure = judge_parity({JAX: jax, TORCH: torch})[TORCH]
        assert failure.code is Code.PARITY and all(part in failure.cause for part in parts)


def test_a_baseline_is_held_against_keras_and_never_the_other_way_round() -> None:
    assert judged(torch=SAME, torch_native=SAME) == []
    assert judged(torch=SAME, torch_native=off(0.1, 1)) == ["torch_native"]
    wrong = dict.fromkeys(("jax_native", "torch_native", "tensorflow_native"), off(0.1, 1))
    assert judged(jax=SAME, torch=SAME, **wrong) == [*wrong]
    assert judged(jax_native=SAME, torch_native=off(0.1)) == ["jax_native", "torch_native"]  # beside each other
    known = case(*LOSSES, layers=["Embedding"])
    assert judged(torch=known, torch_native=off(5e-3, 1)) == []  # a baseline's code does not tell its layers


@pytest.mark.parametrize(("last", "kind", "fails"), [(0.001, "cpu", False), (0.05, "cpu", True), (0.05, "gpu", False)])
def test_outputs_are_compared_by_their_largest_number(last: float, kind: str, fails: bool) -> None:
    same, odd = case(outputs=[[100.0, 0.0], [1.0]]), case(outputs=[[100.0, last], [1.0]], kind=kind)
    assert judged(jax=same, tensorflow=same, torch=odd) == ["torch"] * fails


@pytest.mark.parametrize(
    ("layers", "share", "step", "fails"),
    [
        (["Embedding"], 5e-3, 1, False),
        (["Embedding"], 5e-2, 1, True),
        (["Embedding"], 5e-5, 0, True),
        (NORMALIZED, 5e-5, 0, False),
        (NORMALIZED, 5e-4, 0, True),
        (["BatchNormalization", "Embedding"], 5e-2, 1, False),
        (NORMALIZED, 0.2, 1, True),
        (["a kind of a later version"], 5e-3, 1, True),
    ],
)
def test_layers_that_differ_more_are_allowed_more(layers: list[str], share: float, step: int, fails: bool) -> None:
    good, odd = case(*LOSSES, layers=layers), off(share, step, layers=layers)
    assert judged(jax=good, tensorflow=good, torch=odd) == ["torch"] * fails
    on_gpu = off(5e-5, layers=layers, kind="gpu")
    assert judged(jax=good, tensorflow=good, torch=on_gpu) == []  # what layers add never allows less


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
