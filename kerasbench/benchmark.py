"""A whole run, from what was asked for to tables on disk."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from kerasbench import backends, catalog, history, machine, plan, results, trial
from kerasbench.errors import ResultsError, UnusableScenario
from kerasbench.gate import Gate, product_canary
from kerasbench.lock import machine_lock
from kerasbench.machine.state import observe
from kerasbench.options import DEFAULT as DEFAULT_OPTIONS
from kerasbench.options import Options
from kerasbench.plan import Effort, Plan
from kerasbench.report import markdown
from kerasbench.report.console import ConsoleProgress
from kerasbench.results import Record, Store
from kerasbench.run import Run
from kerasbench.summary import summarize
from kerasbench.watch import Watch
from kerasbench.wire import DataKind, Failure, ProbeReport

BEFORE_RUN_S = 2.0  # how long to look whether the machine is busy (METHOD)


@dataclass(frozen=True)
class Ended:
    """How a run ended: the tables for a terminal, the files, and what the exit code says."""

    brief: str
    tables: Path
    data: Path
    failed_cells: int
    interrupted: bool
    unsaved: str


@dataclass(frozen=True)
class Wanted:
    """What a user asks for. Empty lists mean everything; ``folder`` is where the results go."""

    scenarios: Sequence[str] = ()
    backends: Sequence[str] = ()
    devices: Sequence[str] = ()
    options: Sequence[Options] = (DEFAULT_OPTIONS,)
    effort: Effort = plan.DEFAULT
    seed: int = 0
    data: DataKind = "synthetic"
    timeout_s: float = 300.0
    folder: Path = Path("results")


def measure(wanted: Wanted) -> Ended:
    """Select, probe, plan, run, save and draw.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine. Nothing has
            been measured then.
    """
    names = plan.parse_backends(wanted.backends, backends.names())
    labels = plan.parse_devices(wanted.devices)
    with machine_lock():  # first of all: probing starts every framework, which would disturb the other run
        return _measure(wanted, names, labels)


def _measure(wanted: Wanted, names: list[str], labels: list[str]) -> Ended:
    python, effort, folder = sys.executable, wanted.effort, wanted.folder
    state = observe(BEFORE_RUN_S)  # before the first child: what others do, not what we do
    probes = probe_all(names or backends.names(), python)
    installed = [name for name, report in probes.items() if isinstance(report, ProbeReport)]
    selected = catalog.select(wanted.scenarios, python, installed[0] if installed else None)
    planned = plan.make(
        selected, probes, labels, hints(probes), effort, wanted.seed, wanted.data, bool(names), wanted.options
    )
    if wanted.data == "real":
        fetch_all(planned, python)
    known = history.recall(folder, machine.fingerprint(), planned)
    store = Store(folder, results.now())
    progress = ConsoleProgress(Console(stderr=True, highlight=False), known)
    launch = partial(trial.launch, python, wanted.timeout_s)
    record = Run(planned, store, launch, Watch(Gate(product_canary())), progress, state).execute()
    summary = summarize(record)
    return Ended(
        brief=markdown.brief(summary),
        tables=store.tables,
        data=store.data,
        failed_cells=len(summary.failures),
        interrupted=record.stopped_because == results.INTERRUPTED,
        unsaved=_save(store, record, markdown.document(summary)),
    )


def _save(store: Store, record: Record, tables: str) -> str:
    """Save a run that is over; return why that failed, so that its tables are shown all the same."""
    try:
        store.save(record)
        store.save_tables(tables)
    except ResultsError as error:
        return str(error)
    return ""


def probe_all(names: Sequence[str], python: str) -> dict[str, ProbeReport | Failure]:
    """Ask every backend, in children side by side, what it sees. Nothing is being measured yet."""
    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(lambda name: trial.probe(name, python), names), strict=True))


def fetch_all(planned: Plan, python: str) -> None:
    """Have every data set's real rows downloaded and checked; raise UnusableScenario where one cannot be had."""
    regimes = {one.regime.data: (cell, one) for cell in planned.cells if (one := cell.selected).regime.has_real_data}
    for cell, one in regimes.values():
        said = trial.fetch(str(one.entry.file.resolve()), one.regime.name, cell.backend, python)
        if isinstance(said, Failure):
            raise UnusableScenario(f"{one.label}: {said.cause}")


def hints(probes: dict[str, ProbeReport | Failure]) -> dict[str, str]:
    """Return, per backend, how a device that it does not see is brought back."""
    return {
        name: backends.get(name).hint(report.versions if isinstance(report, ProbeReport) else {})
        for name, report in probes.items()
    }
