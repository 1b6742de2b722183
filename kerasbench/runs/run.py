"""A whole run, from what was asked for to a record on disk: survey, plan, run, save. Who called it draws."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol as Interface

from kerasbench import backends, machine, text
from kerasbench.children import bout, scratch, variables
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import ResultsError, UsageError
from kerasbench.exchange.options import parted
from kerasbench.machine import Machine
from kerasbench.machine.lock import machine_lock
from kerasbench.machine.state import State
from kerasbench.plan import catalog, duration, request
from kerasbench.plan.cells import Plan
from kerasbench.plan.duration import History
from kerasbench.quiet.gate import Gate, product_canary
from kerasbench.results import code
from kerasbench.results import store as results_store
from kerasbench.results.asked import Asked, Resumed
from kerasbench.results.record import Record
from kerasbench.results.store import Store
from kerasbench.runs import crossings, resume
from kerasbench.runs.bouts import Launch, Observer
from kerasbench.runs.resume import Interrupted
from kerasbench.runs.rounds import Run
from kerasbench.runs.rows import seconds
from kerasbench.runs.surroundings import Watch, Watcher
from kerasbench.runs.survey import Surveyed, Telling, columns, plan, survey

Execute = Callable[[Plan, Record | None], Record]


class Audience(Telling, Interface):
    """Who hears how a run goes: what it waits for, what it prepares, and then each trial."""

    def say(self, line: str, /) -> None: ...
    def observer(self, known: History, /) -> Observer: ...


@dataclass(frozen=True)
class Ended:
    """A run that is over: what it measured, and its files. ``unsaved`` says why the data could not be written."""

    record: Record
    store: Store
    unsaved: str = ""


@dataclass(frozen=True)
class Session:
    """What runs the trials of a plan: the same for the further sizes of a sweep as for the first."""

    launch: Launch
    watch: Watcher
    observer: Observer
    state: State
    interpreter: Callable[[str], str]

    def execute(self, store: Store, planned: Plan, earlier: Record | None) -> Record:
        run = Run(planned, store, self.launch, self.watch, self.observer, self.state, earlier, self.interpreter)
        return run.execute()


@contextmanager
def measured(
    asked: Asked | Resumed, folder: Path, interpreters: Interpreters, audience: Audience, wait: bool = False
) -> Iterator[Ended]:
    """Survey, plan, run and save; then hold the machine until the block ends, because drawing would disturb others.

    ``Resumed``: go on with the newest run of the folder that was begun on this machine and did not finish.
    ``interpreters`` run the backends. ``wait``: begin when no other run holds the machine any more.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine. Nothing has
            been measured then.
    """
    if isinstance(asked, Asked):
        asked = with_columns(asked, interpreters)
        _require_there(asked, interpreters)  # before it waits
    with machine_lock(on_wait=audience.say if wait else None):
        scratch.remove_abandoned()
        here = machine.fingerprint()
        interrupted, more_s = None, None
        if isinstance(asked, Resumed):
            more_s = asked.more_s
            interrupted = resume.find(folder, here, more_s is not None)  # not before: it may have held the machine
            resume.require_named_again(interrupted, asked)
            asked = _asked_again(interrupted, interpreters)
        yield _measured(asked, here, folder, interpreters, audience, interrupted, more_s)


def with_columns(asked: Asked, interpreters: Interpreters) -> Asked:
    """Return what is asked for with whom its columns are for, where interpreters have labels and it does not say."""
    found = interpreters.columns(asked.backends or backends.names())
    if asked.environments or not any(parted(whom)[1] for whom in found):
        return asked
    return dataclasses.replace(asked, environments=found)


def _require_there(asked: Asked, interpreters: Interpreters) -> None:
    """Raise at once where a scenario's name means nothing or an interpreter cannot be started; start no child."""
    catalog.require_known(asked.scenarios, asked.given, asked.suite)
    interpreters.require(columns(asked))


def _asked_again(interrupted: Interrupted, interpreters: Interpreters) -> Asked:
    """Return what an interrupted run was asked for, if all of it still is as it was."""
    variables.require_same(interrupted.record.asked.keep_env)
    asked = request.known(interrupted.record.asked)
    for whom in asked.environments:
        if parted(whom)[1] and whom not in interpreters.named:
            raise UsageError(f"{interrupted.file} measured {whom}: name its interpreter again, --python {whom}=PATH")
    _require_there(asked, interpreters)
    return asked


def _measured(
    asked: Asked,
    here: Machine,
    folder: Path,
    interpreters: Interpreters,
    audience: Audience,
    interrupted: Interrupted | None,
    more_s: float | None,
) -> Ended:
    """Measure on a machine that is held. Each step may refuse; the name is reserved when nothing else can."""
    found = survey(asked, here, interpreters, audience)
    planned = plan(asked, found, interpreters, audience)
    if interrupted is not None:
        planned = crossings.as_begun(planned, interrupted.record)
    session = _session(planned, found.state, folder, interpreters, audience)
    store, earlier = _reserved(folder, planned, found, interrupted)
    if earlier is not None and more_s is not None:
        planned = _with_more_time(planned, earlier, more_s)
    record = _executed(planned, earlier, partial(session.execute, store))
    return _saved(store, record)


def _with_more_time(planned: Plan, earlier: Record, more_s: float) -> Plan:
    """Return the plan with so much more time than those trials took that still count."""
    effort = dataclasses.replace(planned.effort, budget_s=seconds(earlier.trials) + more_s)
    return dataclasses.replace(planned, asked=dataclasses.replace(planned.asked, effort=effort))


def _session(planned: Plan, state: State, folder: Path, interpreters: Interpreters, audience: Audience) -> Session:
    """Get ready what runs the trials.

    The canary first: it loads NumPy as a gate needs it, and the statistics of earlier results load it too.
    """
    watch = Watch(Gate(product_canary(), planned.effort.gate_s))
    observer = audience.observer(duration.recall(folder, planned.machine, planned))
    launch = partial(bout.measure, kept=planned.asked.keep_env)
    return Session(launch, watch, observer, state, interpreters.of)


def _reserved(
    folder: Path, planned: Plan, found: Surveyed, interrupted: Interrupted | None
) -> tuple[Store, Record | None]:
    """Return where the run goes, and the interrupted one with the trials that still count.

    What no longer counts (a changed scenario, another version) is kept in a file of its own.
    """
    results_store.clear_leftovers(folder)
    if interrupted is None:
        return Store.create(folder, text.now()), None
    carried, superseded = resume.carry(interrupted.record, planned, found.probes)
    if superseded:
        _keep_superseded(folder, dataclasses.replace(interrupted.record, trials=superseded))
    resumed = [*interrupted.record.resumed, text.now()]
    earlier = dataclasses.replace(interrupted.record, trials=carried, resumed=resumed)
    return Store(interrupted.file.with_suffix(results_store.JOURNAL)), earlier


def _keep_superseded(folder: Path, left: Record) -> None:
    """Keep the trials of a run that no longer count in a file of their own, and say so."""
    store = Store.create(folder, text.now())
    store.finish(dataclasses.replace(left, stopped_because="superseded when it was resumed"))
    other = sum(trial.code != code.measuring() for trial in left.trials)
    why = f"; other code of kerasbench measured {other} of them" if other else ""
    trials = text.count(len(left.trials), "trial")
    text.complain(f"{trials} measured again: not counted any more{why}; kept in {store.data}")


def _executed(planned: Plan, earlier: Record | None, execute: Execute) -> Record:
    """Run the plan, and the further sizes that a sweep then wants."""
    began_s = time.monotonic()
    record = execute(planned, earlier)
    earlier_s = seconds(earlier.trials) if earlier else 0.0
    return _refined(planned, record, earlier_s + time.monotonic() - began_s, execute)


def _refined(planned: Plan, record: Record, spent_s: float, execute: Execute) -> Record:
    """Go on with further sizes where a sweep wants them; return the record of all."""
    finer = crossings.finer(planned, record, spent_s)
    if finer is None:
        return record
    try:
        return crossings.joined(record, execute(finer, crossings.earlier(record)))
    except ResultsError:
        return record  # the disk takes no more, and what was measured stands


def _saved(store: Store, record: Record) -> Ended:
    """Save at once, before anything is drawn: a second Ctrl-C ends whatever goes on then.

    Where the disk refuses, what was measured can still be shown.
    """
    try:
        store.finish(record)
    except ResultsError as error:
        return Ended(record, store, str(error))
    return Ended(record, store)
