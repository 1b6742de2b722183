import dataclasses
from typing import Any

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.parity import deviations, judge_parity
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Measurement, Parity
from kerasbench.protocol.messages import Code
from kerasbench.results.run import Trial
from tests import made

LOSSES = (2.3, 2.2, 2.1, 2.0, 1.9, 1.8)
Case = tuple[str, Measurement]


def case(*losses: float, kind: str = "cpu", computed: str = "float32", fp32: str = "ieee") -> Case:
    found = made.measurement(losses=losses or LOSSES)
    return kind, made.changed(found, resolved={"compute_dtypes": [computed], "fp32": fp32})


def sensitive(one: Case, *kinds: str) -> Case:
    return one[0], made.changed(one[1], parity={"sensitive": list(kinds)})


def shifted(share: float, step: int) -> tuple[float, ...]:
    return tuple(loss * (1 + share) if index == step else loss for index, loss in enumerate(LOSSES))


def judged(**cases: Case) -> list[str]:
    """Return the columns that lie beyond their bounds, whether they fail or are warned of."""
    columns = {Column(name, "cpu"): one for name, one in cases.items()}
    return sorted(column.backend for column in judge_parity(columns) | deviations(columns))


@pytest.mark.parametrize(
    ("share", "step", "fails"),
    [(5e-6, 0, False), (5e-5, 0, True), (5e-4, 1, False), (2e-3, 1, True), (2e-3, 5, True), (-2e-3, 5, True)],
)
def test_one_of_three_stands_out(share: float, step: int, fails: bool) -> None:
    assert judged(jax=case(), tensorflow=case(), torch=case(*shifted(share, step))) == ["torch"] * fails


@pytest.mark.parametrize("share", [0.1, 1.5e-5])  # or by a little, where both are precise
def test_of_two_that_differ_nobody_knows_which_is_right(share: float) -> None:
    assert judged(jax=case(), torch=case(*shifted(share, 0))) == ["jax", "torch"]


@pytest.mark.parametrize("options", [{"control": True}, {"warm_cache": True}, {"malloc": "keep"}])
@pytest.mark.parametrize("repeated", ["jax", "torch"])
def test_what_repeats_a_column_has_no_voice_of_its_own(repeated: str, options: dict[str, Any]) -> None:
    """Of two backends that differ nobody knows which is right, also where one of them was measured twice."""
    differ = {Column("jax", "cpu"): case(), Column("torch", "cpu"): case(*shifted(0.05, 0))}
    again = {Column(repeated, "cpu", Options(**options)): differ[Column(repeated, "cpu")]}
    assert judge_parity(differ | again).keys() == (differ | again).keys()
    assert judge_parity(again | differ).keys() == (differ | again).keys()


def test_a_version_is_held_against_the_first_which_was_measured_twice() -> None:
    base, head = (Column("jax", "cpu", Options(environment=label)) for label in ("base", "head"))
    again = base.with_options(control=True)
    assert judge_parity({base: case(), again: case(), head: case(*shifted(0.05, 0))}).keys() == {head}


def test_a_control_is_held_against_its_column_where_there_is_no_other() -> None:
    column = Column("jax", "cpu")
    again = column.with_options(control=True)
    assert judge_parity({column: case(), again: case()}) == {}
    assert judge_parity({column: case(), again: case(*shifted(0.05, 0))}).keys() == {again}


def test_one_case_alone_is_not_judged() -> None:
    assert judged(jax=case()) == []
    without = dataclasses.replace(made.measurement(), parity=None)
    assert judged(jax=case(), torch=("cpu", without)) == []


def test_coarser_arithmetic_is_laid_beside_the_finest_and_allowed_more() -> None:
    assert judged(a=case(), b=case(), c=case(*shifted(1e-2, 0), computed="bfloat16")) == []
    assert judged(a=case(), b=case(), c=case(*shifted(0.2, 0), computed="bfloat16")) == ["c"]
    assert judged(a=case(), b=case(), c=case(*shifted(5e-5, 0), kind="gpu")) == []
    assert judged(a=case(), b=case(), c=case(*shifted(1e-2, 0), kind="gpu", fp32="tf32")) == []


def test_one_precise_case_is_the_reference_and_not_judged_by_coarser_ones() -> None:
    assert judged(a=case(), b=case(*shifted(1e-2, 0), computed="bfloat16")) == []
    assert judged(a=case(), b=case(*shifted(5e-5, 0), kind="gpu"), c=case(*shifted(5e-5, 0), kind="gpu")) == []
    assert judged(a=case(), b=case(*shifted(0.5, 0), computed="bfloat16")) == ["b"]


def test_rounding_that_grows_step_by_step_is_chaos_and_a_sudden_difference_is_not() -> None:
    grown = [loss * (1 + share) for loss, share in zip(LOSSES, (5e-6, 2e-4, 8e-3, 0.1, 0.5, 0.2), strict=True)]
    assert judged(a=case(), b=case(), c=case(*grown)) == []
    sudden = [loss * (1 + share) for loss, share in zip(LOSSES, (0, 1e-6, 8e-3, 0.1, 0.5, 0.2), strict=True)]
    assert judged(a=case(), b=case(), c=case(*sudden)) == ["c"]
    tiny = (1e-9,) * 6
    assert judged(a=case(*tiny), b=case(*tiny), c=case(*(2e-9,) * 6)) == []  # a small loss is compared as it stands


def test_the_failure_says_which_step_and_by_how_much() -> None:
    (failure, _) = judge_parity({Column("a", "cpu"): case(), Column("b", "cpu"): case(*shifted(1.0, 2))}).values()
    assert failure.code is Code.PARITY
    assert "the loss of step 3" in failure.cause
    assert "(bound: 0.001)" in failure.cause
    assert "that of the other configuration" in failure.cause


def native(**cases: Case) -> list[tuple[str, str]]:
    """Judge cases of Keras beside baselines, whose names end in _native; return the columns that fail."""
    columns = {
        Column(name.removesuffix("_native"), "cpu", Options(native=name.endswith("_native"))): one
        for name, one in cases.items()
    }
    return sorted((column.backend, column.options.label) for column in judge_parity(columns) | deviations(columns))


def test_a_baseline_is_held_against_keras_and_never_the_other_way_round() -> None:
    assert native(torch=case(), torch_native=case()) == []
    assert native(torch=case(), torch_native=case(*shifted(0.1, 1))) == [("torch", "native=on")]
    wrong = case(*shifted(0.1, 1))
    assert native(jax=case(), torch=case(), jax_native=wrong, torch_native=wrong, tensorflow_native=wrong) == [
        ("jax", "native=on"),
        ("tensorflow", "native=on"),
        ("torch", "native=on"),
    ]
    alone = native(jax_native=case(), torch_native=case(*shifted(0.1, 0)))  # laid beside each other
    assert alone == [("jax", "native=on"), ("torch", "native=on")]


def predicting(*outputs: list[float], losses: tuple[float, ...] = (), kind: str = "cpu") -> Case:
    found = made.measurement()
    return kind, dataclasses.replace(found, parity=Parity(list(losses), [], list(outputs)))


def test_outputs_are_compared_by_their_largest_number() -> None:
    near, far = [[100.0, 0.001], [1.0]], [[100.0, 0.05], [1.0]]
    same = predicting([100.0, 0.0], [1.0])
    assert judged(jax=same, tensorflow=same, torch=predicting(*near)) == []
    assert judged(jax=same, tensorflow=same, torch=predicting(*far)) == ["torch"]
    assert judged(jax=same, tensorflow=same, torch=predicting(*far, kind="gpu")) == []


def test_outputs_that_agree_do_not_excuse_losses_that_do_not() -> None:
    one = predicting([1.0], losses=LOSSES)
    assert judged(jax=one, torch=predicting([1.0], losses=shifted(0.1, 0))) == ["jax", "torch"]


def test_what_is_said_of_outputs_names_the_bound() -> None:
    cases = {Column("jax", "cpu"): predicting([2.0]), Column("torch", "cpu"): predicting([1.0])}
    failure = judge_parity(cases)[Column("torch", "cpu")]
    assert failure.code is Code.PARITY
    assert failure.cause.startswith("output 1 differs by 1 from the other backends' (largest number: 2)")
    assert "(bound: 2e-05 of it)" in failure.cause


@pytest.mark.parametrize(
    ("kinds", "share", "step", "fails"),
    [
        (["Embedding"], 5e-3, 1, False),
        (["Embedding"], 5e-2, 1, True),
        (["Embedding"], 5e-5, 0, True),
        (["BatchNormalization"], 5e-5, 0, False),
        (["BatchNormalization"], 5e-4, 0, True),
        (["BatchNormalization", "Embedding"], 5e-2, 1, False),
        (["BatchNormalization"], 0.2, 1, True),
        (["a kind of a later version"], 5e-3, 1, True),
    ],
)
def test_layers_by_which_backends_differ_more_are_allowed_more(
    kinds: list[str], share: float, step: int, fails: bool
) -> None:
    good, odd = sensitive(case(), *kinds), sensitive(case(*shifted(share, step)), *kinds)
    assert judged(jax=good, tensorflow=good, torch=odd) == ["torch"] * fails


def test_a_case_on_the_cpu_is_the_reference_of_one_on_a_gpu_with_such_layers_too() -> None:
    gpu = sensitive(predicting([1.0005], kind="gpu"), "BatchNormalization")
    assert judged(a=gpu, b=sensitive(predicting([1.0]), "BatchNormalization")) == []


def test_what_the_layers_add_holds_for_the_whole_row_and_never_allows_less() -> None:
    known = sensitive(case(), "Embedding")
    assert native(torch=known, torch_native=case(*shifted(5e-3, 1))) == []  # a baseline's code does not tell its layers
    on_gpu = sensitive(case(*shifted(5e-5, 0), kind="gpu"), "Embedding")
    assert judged(a=known, b=known, c=on_gpu) == []


@pytest.mark.parametrize(
    ("share", "fails", "warned"),
    [(5e-6, [], []), (5e-5, [], ["torch"]), (9.9e-3, [], ["torch"]), (1.1e-2, ["torch"], []), (1.0, ["torch"], [])],
)
def test_a_small_deviation_is_a_warning_and_a_larger_one_a_failure(
    share: float, fails: list[str], warned: list[str]
) -> None:
    cases = {Column(name, "cpu"): case() for name in ("jax", "tensorflow")} | {
        Column("torch", "cpu"): case(*shifted(share, 0))
    }
    assert [column.backend for column in judge_parity(cases)] == fails
    found = deviations(cases)
    assert [column.backend for column in found] == warned
    assert all(one.step == 1 and one.share == pytest.approx(share, rel=1e-3) for one in found.values())


def test_what_computes_nearly_the_same_has_its_figure_and_a_mark_with_the_size() -> None:
    def trial(backend: str, share: float) -> Trial:
        found = made.measurement(losses=shifted(share, 0))
        return made.trial(backend=backend, found=made.changed(found, parity={"sensitive": ["BatchNormalization"]}))

    found = Findings.of(made.record(trial("jax", 0.0), trial("torch", 0.0), trial("tensorflow", 0.0015)))
    assert not found.summary.failures
    (concern,) = [one for one in concerns(found.summary) if one.what is WarningKind.DEVIATES]
    assert concern.columns == [Column("tensorflow", "cpu")]
    assert concern.detail == (
        "by 0.15 % from the median of all configurations in step 1; batch normalisation in small batches does that"
    )


def test_each_column_is_named_by_the_one_other_column_of_keras_and_none_is_blamed() -> None:
    pair = [
        made.trial(backend=name, found=made.measurement(losses=shifted(share, 0)))
        for name, share in (("jax", 0.0), ("torch", 0.002))
    ]
    by_each_other = {"by 0.2 % from torch cpu", "by 0.2 % from jax cpu"}
    baseline = made.trial(backend="jax", options=Options(native=True))
    for trials, said in (
        (pair, by_each_other),
        ([*pair, baseline], by_each_other | {"by 0.1 % from the median of all configurations"}),
    ):
        summary = Findings.of(made.record(*trials)).summary
        details = [one.detail for one in concerns(summary) if one.what is WarningKind.DEVIATES]
        assert {detail.split(" in ")[0] for detail in details} == said
