import dataclasses

import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import cells
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.messages import Code
from kerasbench.protocol.requests import MIN_STEPS_FOR_BLOCKS
from tests import made


def of_steps(steps: int, name: str = "default") -> Selected:
    return Selected(made.entry(), made.regime(name, steps))


def test_an_epoch_that_holds_blocks_can_be_taken_apart_and_one_step_fewer_cannot() -> None:
    assert cells.refusal(of_steps(MIN_STEPS_FOR_BLOCKS)) is None
    failure = cells.refusal(of_steps(MIN_STEPS_FOR_BLOCKS - 1, "short"))
    assert failure is not None
    assert failure.code is Code.UNSUPPORTED
    assert f"has {MIN_STEPS_FOR_BLOCKS - 1} of the {MIN_STEPS_FOR_BLOCKS} steps" in failure.cause
    assert failure.remedy == "`kerasbench run --scenario dense/short` measures its epochs"


def test_one_regime_that_can_be_explained_is_enough() -> None:
    cells.require_one([of_steps(1), of_steps(MIN_STEPS_FOR_BLOCKS)])


def test_where_none_can_be_explained_each_is_named_with_its_steps() -> None:
    with pytest.raises(
        UsageError, match=r"fewer: dense/one \(1\), dense/two \(2\); `kerasbench run --scenario dense/one"
    ):
        cells.require_one([of_steps(1, "one"), of_steps(2, "two")])


def test_a_model_that_is_not_trained_has_no_step_to_be_taken_apart() -> None:
    failure = cells.refusal(Selected(made.entry(), dataclasses.replace(made.regime(), predicts_only=True)))
    assert failure is not None
    assert failure.cause == "dense is not trained, so it has no step to be taken apart"
