"""A whole run, from what was asked for to tables on disk."""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from kerasbench import backends, catalog, plan, results, run, trial
from kerasbench.errors import ResultsError, UnusableScenario
from kerasbench.plan import Effort, Plan
from kerasbench.report import markdown
from kerasbench.report.console import ConsoleProgress
from kerasbench.results import Record, Store
from kerasbench.summary import summarize
from kerasbench.wire import DataKind, Failure, ProbeReport


@dataclass(frozen=True)
class Ended:
    """How a run ended: the tables for a terminal, the files, and what the exit code says."""

    brief: str
    tables: Path
    data: Path
    failed_cells: int
    interrupted: bool
    unsaved: str


def measure(
    scenarios: Sequence[str],
    backend_names: Sequence[str],
    devices: Sequence[str],
    effort: Effort,
    seed: int,
    data: DataKind,
    timeout_s: float,
    folder: Path,
) -> Ended:
    """Select, probe, plan, run, save and draw. Empty lists mean everything.

    Raises:
        KerasbenchError: something that was asked for does not exist. Nothing has been measured then.
    """
    python = sys.executable
    wanted = plan.parse_backends(backend_names, backends.names())
    labels = plan.parse_devices(devices)
    probes = probe_all(wanted or backends.names(), python)
    installed = [name for name, report in probes.items() if isinstance(report, ProbeReport)]
    selected = catalog.select(scenarios, python, installed[0] if installed else None)
    planned = plan.make(selected, probes, labels, hints(probes), effort, seed, data, backends_were_named=bool(wanted))
    if data == "real":
        fetch_all(planned, python)
    store = Store(folder, results.now())
    console = Console(stderr=True, highlight=False)
    launch = partial(trial.launch, python, timeout_s)
    record = run.execute(planned, store, launch, ConsoleProgress(console))
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
