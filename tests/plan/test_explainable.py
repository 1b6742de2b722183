import dataclasses

import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import cases
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES
from tests import made


def of_steps(steps: int, name: str = "default") -> Selected:
    return Selected(made.entry(), made.workload(name, steps))


def test_an_epoch_that_holds_slices_can_be_taken_apart_and_one_step_fewer_cannot() -> None:
    assert cases.refusal(of_steps(MIN_STEPS_FOR_SLICES)) is None
    failure = cases.refusal(of_steps(MIN_STEPS_FOR_SLICES - 1, "short"))
    assert failure is not None
    assert failure.code is Code.UNSUPPORTED
    assert f"has {MIN_STEPS_FOR_SLICES - 1} of the {MIN_STEPS_FOR_SLICES} steps" in failure.cause
    assert failure.remedy == "`kerasbench run --scenario dense/short` measures its epochs"


def test_one_workload_that_can_be_explained_is_enough() -> None:
    cases.require_one([of_steps(1), of_steps(MIN_STEPS_FOR_SLICES)])


def test_where_none_can_be_explained_each_is_named_with_its_steps() -> None:
    with pytest.raises(
        UsageError, match=r"fewer: dense/one \(1\), dense/two \(2\); `kerasbench run --scenario dense/one"
    ):
        cases.require_one([of_steps(1, "one"), of_steps(2, "two")])


def test_a_model_that_is_not_trained_has_no_step_to_be_taken_apart() -> None:
    failure = cases.refusal(Selected(made.entry(), dataclasses.replace(made.workload(), predicts_only=True)))
    assert failure is not None
    assert failure.cause == "dense is not trained, so it has no step to be taken apart"
