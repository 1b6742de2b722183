from types import SimpleNamespace

import pytest

from kerasbench.protocol.messages import Code
from kerasbench.scenario import ScenarioError
from kerasbench.worker.failure import TrialFailure, is_own, own_step


class Own:
    def train_step(self, data: object) -> None: ...


def test_a_step_of_its_own_that_fails_is_for_another_backend() -> None:
    class Evaluated:
        def test_step(self, data: object) -> None: ...

    with pytest.raises(TrialFailure, match="own test_step does not run"), own_step(Evaluated(), "jax", "learn"):
        raise TypeError
    said = "own train_step does not run on jax: TypeError: two arguments"
    with pytest.raises(TrialFailure, match=said) as raised, own_step(Own(), "jax", "learn"):
        raise TypeError("two arguments")
    assert (raised.value.failure.code, raised.value.failure.phase) == (Code.UNSUPPORTED, "learn")


def test_a_want_of_memory_is_no_other_backend_s() -> None:
    with pytest.raises(RuntimeError, match="out of memory"), own_step(Own(), "jax", "learn"):
        raise RuntimeError("CUDA out of memory")


@pytest.mark.parametrize("error", [ScenarioError("no loss"), TypeError("a bug")])
def test_what_else_fails_is_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)), own_step(SimpleNamespace(), "jax", "learn"):
        raise error


def test_a_method_is_its_own_where_it_is_not_keras_s() -> None:
    of_keras = SimpleNamespace(__module__="keras.src.trainers.trainer")
    assert [is_own(one) for one in (Own.train_step, of_keras, None)] == [True, False, False]
