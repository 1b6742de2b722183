"""One framework per child."""

import sys
from importlib.machinery import ModuleSpec
from typing import Any

from kerasbench import backends


class Hiding:
    """A finder of modules that finds some packages no more, and is otherwise the one that it stands for."""

    def __init__(self, finder: Any, hidden: set[str]) -> None:
        self._finder = finder
        self.hidden = hidden

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in self.hidden:
            return None
        found: ModuleSpec | None = self._finder.find_spec(name, path, target)
        return found

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._finder, attribute)


def refuse_other_frameworks(backend: str) -> None:
    """Make every framework but one look as if it were not installed.

    Keras imports jax in every backend where it is installed, and ``set_random_seed`` imports TensorFlow: both
    would be charged to a backend that has nothing to do with them (seconds of start-up, hundreds of MiB). They are
    hidden, not None in ``sys.modules``: Keras' Rescaling and its kin ask whether TensorFlow is in there.
    """
    others = {backends.get(other).PACKAGE for other in backends.names()} - {backends.get(backend).PACKAGE}
    sys.meta_path[:] = [Hiding(finder, others) for finder in sys.meta_path]
