"""One framework per child."""

import sys

from kerasbench import backends


def refuse_other_frameworks(backend: str) -> None:
    """Make every framework but one look as if it were not installed.

    Keras imports jax in every backend where it is installed, and ``set_random_seed`` imports TensorFlow: both
    would be charged to a backend that has nothing to do with them (seconds of start-up, hundreds of MiB).
    """
    for other in backends.names():
        if other != backend:
            sys.modules[backends.get(other).PACKAGE] = None  # type: ignore[assignment]
