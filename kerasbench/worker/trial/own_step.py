"""A model's own ``train_step`` and ``test_step``: which there are, and what it means that one fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kerasbench.exchange.messages import Code, Failure
from kerasbench.scenario import ScenarioError
from kerasbench.worker.failure import TrialFailure, failure_of


@contextmanager
def own_step(model: Any, backend: str, phase: str) -> Iterator[None]:
    """Say of a model whose own ``train_step`` or ``test_step`` fails that it is for another backend.

    Each backend has another form of it.

    Raises:
        TrialFailure: it failed (unsupported).
    """
    try:
        yield
    except (TrialFailure, ScenarioError):
        raise
    except Exception as error:
        own = [name for name in ("train_step", "test_step") if is_own(getattr(type(model), name, None))]
        if not own or failure_of(error, phase).code is not Code.ERROR:  # a want of memory is no other backend's
            raise
        said = " ".join(str(error).split())[:200]
        cause = f"the model's own {' or '.join(own)} does not run on {backend}: {type(error).__name__}: {said}"
        remedy = "measure it on the backend that it is written for"
        raise TrialFailure(Failure(Code.UNSUPPORTED, cause, remedy, phase)) from error


def is_own(step: Any) -> bool:
    """Tell whether a method of a model is not Keras' own."""
    return step is not None and not step.__module__.startswith("keras.")
