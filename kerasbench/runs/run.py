"""Two versions that are to be compared: what a run is asked for, and the interpreters of both.

Before anything is measured: the machine as it is, what each backend sees, the scenarios chosen; then the plan.

A whole run, from what was asked for to a record on disk: survey, plan, run, save. Who called it draws.
"""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol as Interface

from kerasbench import backends, files, host, text
from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import ResultsError, UnusableScenario, UsageError
from kerasbench.host import Machine
from kerasbench.host.lock import machine_lock
from kerasbench.host.noise import State, observe
from kerasbench.plan import cases, catalog, duration, request
from kerasbench.plan.cases import Plan
from kerasbench.plan.catalog import Selected
from kerasbench.plan.duration import History
from kerasbench.processes import block, questions, variables
from kerasbench.processes.questions import Tick, together
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Failure, ProbeReport
from kerasbench.protocol.requests import CountRequest
from kerasbench.results import record
from kerasbench.results import store as results_store
from kerasbench.results.record import Counted, Record, ResumeConfig, RunConfig
from kerasbench.results.store import Store
from kerasbench.runs import resume, schedule
from kerasbench.runs.resume import Interrupted
from kerasbench.runs.rounds import Launch, Observer, Run
from kerasbench.runs.rows import seconds
from kerasbench.runs.surroundings import Watch, Watcher
from kerasbench.scenario import is_saved
from kerasbench.settings import Settings


def asked_for(said: Settings, chosen: Interpreters, say: Callable[[str], None]) -> tuple[RunConfig, Interpreters]:
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
    return dataclasses.replace(
        asked, versus=found.labels, environments=list(map(str, found.columns))
    ), found.interpreters


BEFORE_RUN_S = 2.0  # how long to look whether the machine is busy


class Telling(Interface):
    """Who is told what goes on before the first trial."""

    def asking(self, names: Sequence[str], /) -> AbstractContextManager[None]: ...
    def step(self, what: str, /) -> AbstractContextManager[None]: ...


@dataclass(frozen=True)
class Inventories:
    """What there is. ``state`` is the machine's before the first child: what others do, not what we do."""

    here: Machine
    state: State
    probes: dict[Environment, ProbeReport | Failure]
    selected: list[Selected]


def survey(asked: RunConfig, here: Machine, interpreters: Interpreters, telling: Telling) -> Inventories:
    """Look at the machine, ask the backends what they see, and select the scenarios.

    Raises:
        UsageError, UnusableScenario: a scenario that was asked for is not there, or does not load.
    """
    state = observe(BEFORE_RUN_S)
    environments = environments_of(asked)
    _refuse_models(asked, interpreters.of(environments[0]))
    with telling.asking(list(map(str, environments))):
        probes = probe_all(environments, interpreters, asked.keep_env)
    describer = next((one for one, report in probes.items() if isinstance(report, ProbeReport)), None)
    python = interpreters.of(describer) if describer else sys.executable
    backend = describer.backend if describer else None
    selected = catalog.select(asked.scenarios, python, backend, asked.keep_env, asked.model_config, asked.suite)
    return Inventories(here, state, probes, selected)


def _refuse_models(asked: RunConfig, python: str) -> None:
    """Raise UnusableScenario for a saved model that no backend can load, as far as its file tells without loading it.

    By one child, before any backend is asked for anything. What another interpreter might still describe passes.
    """
    for file in (Path(one) for one in catalog.own_files(asked.scenarios) if is_saved(Path(one))):
        try:
            catalog.describe(file, python, model_config=asked.model_config)
        except UnusableScenario as error:
            if error.is_final:
                raise


def environments_of(asked: RunConfig) -> list[Environment]:
    """Return what a run measures in: the interpreters of backends, or those of them that have a label."""
    return list(map(Environment.parse, asked.environments or asked.backends or backends.names()))


def plan(asked: RunConfig, found: Inventories, interpreters: Interpreters, telling: Telling) -> Plan:
    """Plan what was asked for out of what there is, and get ready all that its trials need.

    Raises:
        KerasbenchError: nothing of it can be measured here.
    """
    if asked.effort.protocol.kind == "sweep":
        request.require_sweepable(found.selected, asked.options)
    planned = cases.make(asked, found.selected, found.probes, found.here, interpreters.named)
    if asked.data == "real":
        fetch_all(planned, interpreters, telling)
    if asked.explain:
        with telling.step("counting the operations of a step"):
            planned = dataclasses.replace(planned, flops=count_all(planned, interpreters))
    return planned


def probe_all(
    environments: Sequence[Environment], interpreters: Interpreters, kept: Mapping[str, str] = variables.NOTHING
) -> dict[Environment, ProbeReport | Failure]:
    """Ask every backend, in children side by side, what it sees. Nothing is being measured yet."""

    def probed(environment: Environment, tick: Tick) -> ProbeReport | Failure:
        return questions.probe(environment.backend, interpreters.of(environment), tick, kept)

    reports = together(probed, environments, at_once=len(environments))
    return dict(zip(environments, reports, strict=True))


def count_all(planned: Plan, interpreters: Interpreters) -> list[Counted]:
    """Have the operations of each workload's training step counted; none where the backend that can is not there."""
    found: list[Counted] = []
    counting = interpreters.columns([backends.counting()])[0]
    for one in {case.selected.label: case.selected for case in planned.cases}.values():
        request = CountRequest(one.entry.place, one.entry.file_hash, one.workload.name, one.entry.model_config)
        said = questions.count(request, interpreters.of(counting), planned.config.keep_env)
        if not isinstance(said, Failure):
            found.append(Counted(one.entry.name, one.workload.name, said))
    return found


def fetch_all(planned: Plan, interpreters: Interpreters, telling: Telling) -> None:
    """Have every data set's real rows downloaded and checked; raise UnusableScenario for all that cannot."""
    workloads = {
        one.workload.data: (case, one) for case in planned.cases if (one := case.selected).workload.has_real_data
    }
    complaints = []
    for title, (case, one) in workloads.items():
        with telling.step(f"{title}: getting its real rows, which are downloaded where they are not here yet"):
            python = interpreters.of(case.column.environment)
            said = questions.fetch(one.entry.place, one.workload.name, case.backend, python, planned.config.keep_env)
        if isinstance(said, Failure):
            complaints.append(f"{one.label}: {said.cause}")
    if complaints:
        raise UnusableScenario("\n".join(complaints))


Execute = Callable[[Plan, Record | None], Record]


class Audience(Telling, Interface):
    """Who hears how a run goes: what it waits for, what it prepares, and then each trial."""

    def say(self, line: str, /) -> None: ...
    def observer(self, known: History, /) -> Observer: ...


@dataclass(frozen=True)
class FinishedRun:
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
    interpreter: Callable[[Environment], str]

    def execute(self, store: Store, planned: Plan, earlier: Record | None) -> Record:
        run = Run(planned, store, self.launch, self.watch, self.observer, self.state, earlier, self.interpreter)
        return run.execute()


@contextmanager
def measured(
    asked: RunConfig | ResumeConfig, folder: Path, interpreters: Interpreters, audience: Audience, wait: bool = False
) -> Iterator[FinishedRun]:
    """Survey, plan, run and save; then hold the machine until the block ends, because drawing would disturb others.

    ``ResumeConfig``: go on with the newest run of the folder that was begun on this machine and did not finish.
    ``interpreters`` run the backends. ``wait``: begin when no other run holds the machine any more.

    Raises:
        KerasbenchError: something that was asked for does not exist, or another run holds the machine. Nothing has
            been measured then.
    """
    if isinstance(asked, RunConfig):
        asked = with_columns(asked, interpreters)
        _require_there(asked, interpreters)  # before it waits
    with machine_lock(on_wait=audience.say if wait else None):
        files.remove_abandoned()
        here = host.fingerprint()
        interrupted, more_s = None, None
        if isinstance(asked, ResumeConfig):
            more_s = asked.more_s
            interrupted = resume.find(folder, here, more_s is not None)  # not before: it may have held the machine
            resume.require_named_again(interrupted, asked)
            asked = _asked_again(interrupted, interpreters)
        yield _measured(asked, here, folder, interpreters, audience, interrupted, more_s)


def with_columns(asked: RunConfig, interpreters: Interpreters) -> RunConfig:
    """Return what is asked for with its environments, where interpreters have labels and it does not say."""
    found = interpreters.columns(asked.backends or backends.names())
    if asked.environments or not any(environment.label for environment in found):
        return asked
    return dataclasses.replace(asked, environments=list(map(str, found)))


def _require_there(asked: RunConfig, interpreters: Interpreters) -> None:
    """Raise at once where a scenario's name means nothing or an interpreter cannot be started; start no child."""
    catalog.require_known(asked.scenarios, asked.model_config, asked.suite)
    interpreters.require(environments_of(asked))


def _asked_again(interrupted: Interrupted, interpreters: Interpreters) -> RunConfig:
    """Return what an interrupted run was asked for, if all of it still is as it was."""
    variables.require_same(interrupted.record.config.keep_env)
    asked = request.known(interrupted.record.config)
    for one in map(Environment.parse, asked.environments):
        if one.label and one not in interpreters.named:
            raise UsageError(f"{interrupted.file} measured {one}: name its interpreter again, --python {one}=PATH")
    _require_there(asked, interpreters)
    return asked


def _measured(
    asked: RunConfig,
    here: Machine,
    folder: Path,
    interpreters: Interpreters,
    audience: Audience,
    interrupted: Interrupted | None,
    more_s: float | None,
) -> FinishedRun:
    """Measure on a machine that is held. Each step may refuse; the name is reserved when nothing else can."""
    found = survey(asked, here, interpreters, audience)
    planned = plan(asked, found, interpreters, audience)
    if interrupted is not None:
        planned = schedule.as_begun(planned, interrupted.record)
    session = _session(planned, found.state, folder, interpreters, audience)
    store, earlier = _reserved(folder, planned, found, interrupted)
    if earlier is not None and more_s is not None:
        planned = _with_more_time(planned, earlier, more_s)
    record = _executed(planned, earlier, partial(session.execute, store))
    return _saved(store, record)


def _with_more_time(planned: Plan, earlier: Record, more_s: float) -> Plan:
    """Return the plan with so much more time than those trials took that still count."""
    effort = dataclasses.replace(planned.effort, budget_s=seconds(earlier.trials) + more_s)
    return dataclasses.replace(planned, config=dataclasses.replace(planned.config, effort=effort))


def _session(planned: Plan, state: State, folder: Path, interpreters: Interpreters, audience: Audience) -> Session:
    """Get ready what runs the trials."""
    watch = Watch()
    observer = audience.observer(duration.recall(folder, planned.machine, planned))
    launch = partial(block.measure, kept=planned.config.keep_env)
    return Session(launch, watch, observer, state, interpreters.of)


def _reserved(
    folder: Path, planned: Plan, found: Inventories, interrupted: Interrupted | None
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
    other = sum(trial.code != record.measuring_code() for trial in left.trials)
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
    finer = schedule.finer(planned, record, spent_s)
    if finer is None:
        return record
    try:
        return schedule.joined(record, execute(finer, schedule.earlier(record)))
    except ResultsError:
        return record  # the disk takes no more, and what was measured stands


def _saved(store: Store, record: Record) -> FinishedRun:
    """Save at once, before anything is drawn: a second Ctrl-C ends whatever goes on then.

    Where the disk refuses, what was measured can still be shown.
    """
    try:
        store.finish(record)
    except ResultsError as error:
        return FinishedRun(record, store, str(error))
    return FinishedRun(record, store)
