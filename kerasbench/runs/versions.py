"""Two versions that are to be compared: what a run is asked for, and the interpreters of both."""

import dataclasses
from collections.abc import Callable

from kerasbench import backends
from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.machine.lock import machine_lock
from kerasbench.plan import catalog, request
from kerasbench.results.asked import Asked
from kerasbench.settings import Settings


def asked_for(said: Settings, chosen: Interpreters, say: Callable[[str], None]) -> tuple[Asked, Interpreters]:
    """Return what is asked for, and the interpreters of both sides, which are made where they have to be.

    Without backends: those that the requirements name, ``torch==2.6``, else all that have both sides. The machine is
    held meanwhile: another run may be measuring in an environment that is made again.

    Raises:
        KerasbenchError: a word means nothing, another run holds the machine, or an environment could not be made. The
            words come first.
    """
    asked, base, head = request.versus(said), said.base, said.head
    catalog.require_known(asked.scenarios)
    packages = {backends.get(name).PACKAGE: name for name in backends.names()}
    named = [packages[one] for one in sides.about(base, head, list(packages), chosen.labels())]
    with machine_lock(on_wait=say if said.wait else None):
        found = sides.sides(base, head, chosen, asked.backends or named or backends.names(), say)
    found.interpreters.require(found.columns)
    return dataclasses.replace(asked, versus=found.labels, environments=found.columns), found.interpreters
