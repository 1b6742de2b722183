"""A whole run, from what was asked for to tables on disk."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from kerasbench import backends, machine, text
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.children import questions, trial, variables
from kerasbench.children.limits import Limits
from kerasbench.children.parallel import Tick, together
from kerasbench.children.scratch import sweep
from kerasbench.children.trial import Outcome
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import ResultsError, UnusableScenario
from kerasbench.exchange.messages import Failure, ProbeReport
from kerasbench.exchange.requests import CountRequest, TrialRequest
from kerasbench.machine.lock import machine_lock
from kerasbench.machine.state import observe
from kerasbench.plan import arguments, catalog, cells, duration, sizes
from kerasbench.plan.cells import Plan
from kerasbench.quiet.gate import Gate, product_canary
from kerasbench.quiet.surroundings import Watch
from kerasbench.report import curve, page, plot
from kerasbench.report.preparation import Preparation, asking
from kerasbench.report.progress import ConsoleProgress, to_stderr
from kerasbench.results import atomic
from kerasbench.results import store as results_store
from kerasbench.results.asked import Asked, Counted
from kerasbench.results.record import INTERRUPTED, Record
from kerasbench.results.store import Store
from kerasbench.runs import crossings, resume
from kerasbench.runs.resume import Interrupted
from kerasbench.runs.rounds import Run

Content = TypeVar("Content", Record, str)
BEFORE_RUN_S = 2.0  # how long to look whether the machine is busy (METHOD)


@dataclass(frozen=True)
class Ended:
    """How a run ended: what it measured, the tables for a terminal, the files, and what the exit code says.

    The summary is there also where the files could not be written. ``plot`` is the figure of a sweep, None where there
    is none.
    """

    summary: Summary
    brief: str
    tables: Path
    data: Path
    failed_cells: int
    interrupted: bool
    unsaved: str
    plot: Path | None = None


def measure(asked: Asked, folder: Path, interpreters: Interpreters, resumed: bool = False, wait: bool = False) -> Ended:
    """Select, probe, plan, run, save and draw.

    ``interpreters`` run the backends. ``resumed``: go on with the newest run of the folder that was begun on this
    machine and interrupted, as that one was asked for. ``wait``: begin when no other run holds the machine any more.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine. Nothing has
            been measured then.
    """
    console = to_stderr()
    asked = asked if resumed else _checked(asked, interpreters)  # before it waits, and before frameworks are started
    with machine_lock(on_wait=Preparation(console).say if wait else None):  # first of all: probing would disturb it
        sweep()
        interrupted = resume.find(folder, machine.fingerprint()) if resumed else None  # not before: it may have held it
        if interrupted:
            variables.require_same(interrupted.record.asked.keep_env)
            asked = _checked(interrupted.record.asked, interpreters)
        return _measure(asked, folder, interpreters, interrupted, console)


def _checked(asked: Asked, interpreters: Interpreters) -> Asked:
    """Return what was asked for with names that are known; raise at once for a slip of the pen."""
    arguments.require_time(asked.timeout_s)
    arguments.require_seed(asked.seed)
    catalog.require_known(asked.scenarios)
    names = arguments.parse_backends(asked.backends, backends.names())
    interpreters.require(names or backends.names())
    return dataclasses.replace(asked, backends=names, devices=arguments.parse_devices(asked.devices))


def _measure(
    asked: Asked, folder: Path, interpreters: Interpreters, interrupted: Interrupted | None, console: Console
) -> Ended:
    state = observe(BEFORE_RUN_S)  # before the first child: what others do, not what we do
    probes, planned = _planned(asked, interpreters, Preparation(console))
    # Before history, whose statistics load NumPy, and before the store, which reserves the run's name.
    watch = Watch(Gate(product_canary(), asked.effort.gate_s))
    known = duration.recall(folder, machine.fingerprint(), planned)
    store, earlier = _store(folder, planned, probes, interrupted)
    progress = ConsoleProgress(console, known)

    def launch(request: TrialRequest, limited: Limits, on_phase: Callable[[str], None], on_tick: Tick) -> Outcome:
        python = interpreters.of(request.backend)
        return trial.launch(python, request, limited, on_phase, on_tick, asked.keep_env)

    def execute(planned: Plan, earlier: Record | None) -> Record:
        return Run(planned, store, launch, watch, progress, state, earlier).execute()

    began_s = time.monotonic()
    record = execute(planned, earlier)
    record = _refined(planned, record, time.monotonic() - began_s, execute)
    unsaved = _saved(store.finish, record)  # before the tables: a second Ctrl-C may come while they are computed
    summary = summarize(record)
    unsaved = unsaved or _saved(store.save_tables, page.document(summary))
    return Ended(
        summary=summary,
        brief=page.brief(summary),
        tables=store.tables,
        data=store.data,
        failed_cells=len(summary.failures),
        interrupted=record.stopped_because == INTERRUPTED,
        unsaved=unsaved,
        plot=_plot(store, summary),
    )


def _planned(
    asked: Asked, interpreters: Interpreters, telling: Preparation
) -> tuple[dict[str, ProbeReport | Failure], Plan]:
    """Return what the backends see and what will be measured; have everything that this needs ready."""
    names = asked.backends or backends.names()
    with telling.step(asking(names)):
        probes = probe_all(names, interpreters, asked.keep_env)
    installed = [name for name, report in probes.items() if isinstance(report, ProbeReport)]
    describer = installed[0] if installed else None
    selected = catalog.select(asked.scenarios, interpreters.of(describer or ""), describer, asked.keep_env)
    if asked.effort.protocol.kind == "sweep":
        sizes.require_sweepable(selected, asked.options)
    planned = cells.make(asked, selected, probes, interpreters.named)
    if asked.data == "real":
        fetch_all(planned, interpreters, telling)
    if asked.explain:
        with telling.step("having torch count the operations of a step"):
            planned = dataclasses.replace(planned, flops=count_all(planned, interpreters))
    return probes, planned


def _refined(planned: Plan, record: Record, spent_s: float, execute: Callable[[Plan, Record | None], Record]) -> Record:
    """Go on with further sizes where a sweep wants them; return the record of all."""
    finer = crossings.finer(planned, record, spent_s)
    if finer is None:
        return record
    try:
        return crossings.joined(record, execute(finer, crossings.earlier(record)))
    except ResultsError:
        return record  # the disk takes no more, and what was measured stands


def _plot(store: Store, summary: Summary) -> Path | None:
    """Draw a sweep beside its tables, where matplotlib is installed and the disk takes it."""
    picture = curve.step_over_size(summary, "png") if plot.is_available() else None
    if picture is None:
        return None
    file = store.data.with_suffix(".png")
    try:
        atomic.replace(file, picture)
    except ResultsError:
        return None  # the tables have said more
    return file


def _store(
    folder: Path, planned: Plan, probes: dict[str, ProbeReport | Failure], interrupted: Interrupted | None
) -> tuple[Store, Record | None]:
    """Return where the run goes, and the interrupted one with the trials that still count.

    What no longer counts (a changed scenario, another version) is kept in a file of its own.
    """
    results_store.sweep(folder)
    if interrupted is None:
        return Store.create(folder, text.now()), None
    carried, superseded = resume.carry(interrupted.record, planned, probes)
    if superseded:
        left = dataclasses.replace(
            interrupted.record, trials=superseded, stopped_because="superseded when it was resumed"
        )
        Store.create(folder, text.now()).finish(left)
    resumed = [*interrupted.record.resumed, text.now()]
    earlier = dataclasses.replace(interrupted.record, trials=carried, resumed=resumed)
    return Store(interrupted.file.with_suffix(results_store.JOURNAL)), earlier


def _saved(save: Callable[[Content], None], content: Content) -> str:
    """Save what a run that is over has left; return why that failed, so that its tables are shown all the same."""
    try:
        save(content)
    except ResultsError as error:
        return str(error)
    return ""


def probe_all(
    names: Sequence[str], interpreters: Interpreters, kept: Mapping[str, str] = variables.NOTHING
) -> dict[str, ProbeReport | Failure]:
    """Ask every backend, in children side by side, what it sees. Nothing is being measured yet."""

    def probed(name: str, tick: Tick) -> ProbeReport | Failure:
        return questions.probe(name, interpreters.of(name), tick, kept)

    return dict(zip(names, together(probed, names, at_once=len(names)), strict=True))


def count_all(planned: Plan, interpreters: Interpreters) -> list[Counted]:
    """Have the operations of each regime's training step counted; none where the backend that can is not there."""
    found: list[Counted] = []
    for one in {cell.selected.label: cell.selected for cell in planned.cells}.values():
        request = CountRequest(str(one.entry.file.resolve()), one.entry.file_hash, one.regime.name)
        said = questions.count(request, interpreters.of(backends.counting()), planned.asked.keep_env)
        if not isinstance(said, Failure):
            found.append(Counted(one.entry.name, one.regime.name, said))
    return found


def fetch_all(planned: Plan, interpreters: Interpreters, telling: Preparation) -> None:
    """Have every data set's real rows downloaded and checked; raise UnusableScenario for all that cannot."""
    regimes = {one.regime.data: (cell, one) for cell in planned.cells if (one := cell.selected).regime.has_real_data}
    complaints = []
    for title, (cell, one) in regimes.items():
        with telling.step(f"{title}: getting its real rows, which are downloaded where they are not here yet"):
            file, python = str(one.entry.file.resolve()), interpreters.of(cell.backend)
            said = questions.fetch(file, one.regime.name, cell.backend, python, planned.asked.keep_env)
        if isinstance(said, Failure):
            complaints.append(f"{one.label}: {said.cause}")
    if complaints:
        raise UnusableScenario("\n".join(complaints))
