"""One framework per child."""

import sys

from kerasbench import backends


def refuse_other_frameworks(backend: str) -> None:
    """Make every framework but one look as if it were not installed.

    Keras imports jax in every backend where it is installed, and ``set_random_seed`` imports TensorFlow: both
    would be charged to a backend that has nothing to do with them (seconds of start-up, hundreds of MiB).
    """
    others = {backends.get(other).PACKAGE for other in backends.names()} - {backends.get(backend).PACKAGE}
    for package in others:
        sys.modules[package] = None  # type: ignore[assignment]
