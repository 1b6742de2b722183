"""Which code ran: facts that a child reads from its backend beside the time, one file each. A new one is one more file.

Each measurement of a Keras model has all of them: ``NOTHING`` where the model has no such part, ``NOT_KNOWN`` where
nothing tells. The parent imports these modules too, for what they are called.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from kerasbench.facts.fact import NOT_KNOWN, NOTHING, Evidence, Fact, Notes
from kerasbench.protocol.measurement import Measurement
from kerasbench.runners.layers import Layers

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
ALL: tuple[Fact, ...] = tuple(sorted((kind() for kind in Fact.__subclasses__()), key=lambda fact: fact.name))
BY_NAME: Mapping[str, Fact] = {fact.name: fact for fact in ALL}


@contextmanager
def watch(layers: Layers, backend: str) -> Iterator[dict[str, Notes]]:
    """Take notes while a model is traced or run for the first time, by the names of facts that need them."""
    with ExitStack() as stack:
        yield {fact.name: stack.enter_context(fact.watch(layers, backend)) for fact in ALL}


def read(evidence: Evidence) -> dict[str, str]:
    """Return all facts of a model that was measured."""
    return {fact.name: _read(fact, evidence) for fact in ALL}


def _read(fact: Fact, evidence: Evidence) -> str:
    try:
        return fact.read(evidence)
    except Exception:  # Keras or a backend calls something otherwise: no reason to lose what was measured
        return NOT_KNOWN


def of(measurement: Measurement) -> dict[str, str]:
    """Return the facts of a measurement. Before there were others, files told of recurrent layers alone."""
    earlier = "; ".join(measurement.resolved.recurrent)
    return measurement.facts or ({"recurrent": earlier} if earlier else {})


__all__ = ["ALL", "BY_NAME", "NOTHING", "NOT_KNOWN", "Evidence", "Fact", "Notes", "of", "read", "watch"]
