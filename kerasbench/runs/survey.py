"""Before anything is measured: the machine as it is, what each backend sees, the scenarios chosen; then the plan."""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol as Interface

from kerasbench import backends
from kerasbench.children import questions, variables
from kerasbench.children.parallel import Tick, together
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UnusableScenario
from kerasbench.exchange.messages import Failure, ProbeReport
from kerasbench.exchange.options import parted
from kerasbench.exchange.requests import CountRequest
from kerasbench.machine import Machine
from kerasbench.machine.state import State, observe
from kerasbench.plan import catalog, cells, sizes
from kerasbench.plan.catalog import Selected
from kerasbench.plan.cells import Plan
from kerasbench.results.asked import Asked, Counted
from kerasbench.scenario import is_saved

BEFORE_RUN_S = 2.0  # how long to look whether the machine is busy (METHOD)


class Telling(Interface):
    """Who is told what goes on before the first trial."""

    def asking(self, names: Sequence[str], /) -> AbstractContextManager[None]: ...
    def step(self, what: str, /) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Surveyed:
    """What there is. ``state`` is the machine's before the first child: what others do, not what we do.

    ``probes`` has what each interpreter said, by whom it is for: ``torch``, or ``torch@LABEL``.
    """

    here: Machine
    state: State
    probes: dict[str, ProbeReport | Failure]
    selected: list[Selected]


def survey(asked: Asked, here: Machine, interpreters: Interpreters, telling: Telling) -> Surveyed:
    """Look at the machine, ask the backends what they see, and select the scenarios.

    Raises:
        UsageError, UnusableScenario: a scenario that was asked for is not there, or does not load.
    """
    state = observe(BEFORE_RUN_S)
    names = columns(asked)
    _refuse_models(asked, interpreters.of(names[0]))
    with telling.asking(names):
        probes = probe_all(names, interpreters, asked.keep_env)
    describer = next((name for name, report in probes.items() if isinstance(report, ProbeReport)), None)
    backend = parted(describer)[0] if describer else None
    python = interpreters.of(describer or "")
    selected = catalog.select(asked.scenarios, python, backend, asked.keep_env, asked.given, asked.suite)
    return Surveyed(here, state, probes, selected)


def _refuse_models(asked: Asked, python: str) -> None:
    """Raise UnusableScenario for a saved model that no backend can load, as far as its file tells without loading it.

    By one child, before any backend is asked for anything. What another interpreter might still describe passes.
    """
    for file in (Path(one) for one in catalog.own_files(asked.scenarios) if is_saved(Path(one))):
        try:
            catalog.describe(file, python, given=asked.given)
        except UnusableScenario as error:
            if error.is_final:
                raise


def columns(asked: Asked) -> list[str]:
    """Return whom a run asks what they see: backends, or those of their interpreters that have a label."""
    return asked.environments or asked.backends or backends.names()


def plan(asked: Asked, found: Surveyed, interpreters: Interpreters, telling: Telling) -> Plan:
    """Plan what was asked for out of what there is, and get ready all that its trials need.

    Raises:
        KerasbenchError: nothing of it can be measured here.
    """
    if asked.effort.protocol.kind == "sweep":
        sizes.require_sweepable(found.selected, asked.options)
    planned = cells.make(asked, found.selected, found.probes, found.here, interpreters.named)
    if asked.data == "real":
        fetch_all(planned, interpreters, telling)
    if asked.explain:
        with telling.step("counting the operations of a step"):
            planned = dataclasses.replace(planned, flops=count_all(planned, interpreters))
    return planned


def probe_all(
    names: Sequence[str], interpreters: Interpreters, kept: Mapping[str, str] = variables.NOTHING
) -> dict[str, ProbeReport | Failure]:
    """Ask every backend, in children side by side, what it sees. Nothing is being measured yet."""

    def probed(whom: str, tick: Tick) -> ProbeReport | Failure:
        return questions.probe(parted(whom)[0], interpreters.of(whom), tick, kept)

    return dict(zip(names, together(probed, names, at_once=len(names)), strict=True))


def count_all(planned: Plan, interpreters: Interpreters) -> list[Counted]:
    """Have the operations of each regime's training step counted; none where the backend that can is not there."""
    found: list[Counted] = []
    counting = interpreters.columns([backends.counting()])[0]
    for one in {cell.selected.label: cell.selected for cell in planned.cells}.values():
        request = CountRequest(one.entry.place, one.entry.file_hash, one.regime.name, one.entry.given)
        said = questions.count(request, interpreters.of(counting), planned.asked.keep_env)
        if not isinstance(said, Failure):
            found.append(Counted(one.entry.name, one.regime.name, said))
    return found


def fetch_all(planned: Plan, interpreters: Interpreters, telling: Telling) -> None:
    """Have every data set's real rows downloaded and checked; raise UnusableScenario for all that cannot."""
    regimes = {one.regime.data: (cell, one) for cell in planned.cells if (one := cell.selected).regime.has_real_data}
    complaints = []
    for title, (cell, one) in regimes.items():
        with telling.step(f"{title}: getting its real rows, which are downloaded where they are not here yet"):
            python = interpreters.of(cell.subject)
            said = questions.fetch(one.entry.place, one.regime.name, cell.backend, python, planned.asked.keep_env)
        if isinstance(said, Failure):
            complaints.append(f"{one.label}: {said.cause}")
    if complaints:
        raise UnusableScenario("\n".join(complaints))
