"""What the tests of all backends share."""

from collections.abc import Callable

import pytest


@pytest.fixture
def never() -> Callable[[], None]:
    """A training step that must not be run."""

    def step() -> None:
        pytest.fail("the step was run")

    return step
