"""A whole run, from its configuration to a record on disk: look at what there is, plan, measure, save."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kerasbench import events, files, host, sources, text
from kerasbench.environments.interpreters import MADE, OPTION, Interpreters
from kerasbench.errors import MissingBackend, ResultsError, UnusableScenario, UsageError
from kerasbench.events import Notice, OnEvent
from kerasbench.host import awake, linux, lock
from kerasbench.host.noise import MachineState, observe
from kerasbench.plan import cases, catalog, configure, duration
from kerasbench.processes import block, questions, variables
from kerasbench.protocol.columns import CPU, Environment, parse_label, processors
from kerasbench.protocol.messages import Failure, ProbeReport
from kerasbench.results.code import measuring_code
from kerasbench.results.run import ResumeConfig, Run, RunConfig
from kerasbench.results.store import JOURNAL, Store, clear_leftovers, is_held, require_writable
from kerasbench.runs import resume, rows
from kerasbench.runs.launcher import BlockLauncher
from kerasbench.runs.machine import MachineMonitor
from kerasbench.runs.planner import Planner
from kerasbench.runs.rounds import Rounds

BEFORE_RUN_S = 0.5  # how long to look whether the machine is busy
SUPERSEDED = "superseded when it was resumed"  # why a file ends that holds trials which no longer count
PlannerOf = Callable[[RunConfig], Planner[Any]]


@dataclass(frozen=True)
class FinishedRun:
    record: Run
    store: Store
    unsaved: str = ""  # why the data could not be written


@contextmanager
def measured(
    config: RunConfig | ResumeConfig,
    folder: Path,
    interpreters: Interpreters,
    planner_of: PlannerOf,
    on_event: OnEvent,
    wait: bool = False,
) -> Iterator[FinishedRun]:
    """Hold the machine until the block ends: drawing would disturb others. KerasbenchError: nothing can be measured."""
    if isinstance(config, RunConfig):
        config = with_environments(config, interpreters)
        require_possible(config, interpreters, planner_of)
        require_writable(folder)
        _say_interpreters(config, interpreters, on_event)
    elif not any(map(is_held, folder.glob(f"*{JOURNAL}"))):  # a run that is waited for may leave one to go on with
        resume.find(folder, host.fingerprint(), config.more_s is not None, lambda _: None)
    with lock.machine_lock(on_wait=(lambda line: on_event(Notice(line))) if wait else None), awake.kept_awake():
        files.remove_abandoned()
        yield _measure(config, folder, interpreters, planner_of, on_event)


def _measure(
    config: RunConfig | ResumeConfig, folder: Path, interpreters: Interpreters, planner_of: PlannerOf, on_event: OnEvent
) -> FinishedRun:
    """Measure on a machine that is held. Each step may refuse; the file is reserved when none can any more."""
    here = host.fingerprint()
    file, begun, more_s = folder, None, None
    if isinstance(config, ResumeConfig):
        more_s = config.more_s
        file, begun = resume.find(folder, here, longer=more_s is not None)
        resume.require_named_again(file, begun.config, config)
        config = _config_to_resume(file, begun.config, interpreters)

    planner = planner_of(config)
    state, probes, selected = survey(config, interpreters, on_event)
    planned = cases.make(planner, selected, probes, here, interpreters.named)
    if config.data == "real":
        planned = with_real_rows(planned, interpreters, on_event)
    planned = planner.prepare(planned, interpreters, on_event)
    if begun is not None:
        planned = resume.as_started(planned, begun, planner.is_second_part)
    history = duration.recall(folder, here, planned)
    clear_leftovers(folder)
    earlier = None
    if begun is None:
        store = Store.create(folder, text.now())
    else:
        carried, superseded = resume.carry(begun, planned, probes)
        keep_superseded(folder, replace(begun, trials=superseded))
        earlier = replace(begun, trials=carried, resumed=[*begun.resumed, text.now()])
        store = Store(file.with_suffix(JOURNAL))
        if more_s is not None:
            effort = replace(planned.effort, budget_s=rows.seconds(earlier.trials) + more_s)
            planned = replace(planned, config=replace(planned.config, effort=effort))

    launch, monitor = partial(block.measure, kept=planned.config.keep_env), MachineMonitor()

    def execute(planned: cases.Plan, earlier: Run | None) -> Run:
        launcher = BlockLauncher(planned, planner, launch, monitor, on_event, state, interpreters.of)
        return Rounds(planned, planner, store, launcher, on_event, state, earlier, history).execute()

    started_s = time.monotonic() - (rows.seconds(earlier.trials) if earlier else 0.0)
    record = execute(planned, earlier)
    more = planner.more(planned, record, time.monotonic() - started_s)
    return save(store, resume.with_more(more, record, execute))


def with_environments(config: RunConfig, interpreters: Interpreters) -> RunConfig:
    environments = interpreters.environments(config.backends or interpreters.usual())
    if config.environments or not any(environment.label for environment in environments):
        return config
    return replace(config, environments=list(map(str, environments)))


def _say_interpreters(config: RunConfig, interpreters: Interpreters, on_event: OnEvent) -> None:
    """Say which interpreters a file has named: it may lie above this folder, and be of long ago."""
    by_file: dict[str, list[str]] = {}
    for environment in environments_of(config, interpreters):
        if (source := interpreters.source(environment)) not in ("", OPTION, MADE):
            by_file.setdefault(source, []).append(f"{environment}={interpreters.of(environment)}")
    for file, named in by_file.items():
        on_event(Notice(f"interpreters by {file}: {', '.join(named)}"))


def _require_present(config: RunConfig, interpreters: Interpreters) -> None:
    catalog.require_known(config.scenarios, config.model_config, config.suite)
    interpreters.require(environments_of(config, interpreters))


def require_possible(config: RunConfig, interpreters: Interpreters, planner_of: PlannerOf) -> None:
    """Raise KerasbenchError for what cannot be measured, as far as that shows without a lock and without a backend."""
    environments = environments_of(config, interpreters)
    _require_present(config, interpreters)
    devices = config.devices or ([] if _sees_more() else [CPU])
    if not _sees_more() and not any(parse_label(label)[0] == CPU for label in devices):
        why = "no driver of a GPU is loaded (there is no /dev/nvidia*, /dev/kfd or /dev/dri)"
        raise MissingBackend(f"no {' or '.join(devices)} here: {why}; leave out --device, or say --device cpu")
    python = interpreters.of(environments[0])
    try:
        selected = catalog.select(
            config.scenarios, python, None, config.keep_env, config.model_config, config.suite, bare=True
        )
    except catalog.BackendNeeded:
        return
    cases.require_possible(planner_of(replace(config, devices=devices)), selected, environments, processors())


def _sees_more() -> bool:
    """Tell whether backends may see more than the CPU here; to import them takes seconds."""
    return sys.platform != "linux" or linux.has_accelerator()


def _config_to_resume(file: Path, begun: RunConfig, interpreters: Interpreters) -> RunConfig:
    variables.require_same(begun.keep_env)
    config = configure.validated(begun)
    for environment in map(Environment.parse, config.environments):
        if environment.label and environment not in interpreters.named:
            again = f"name its interpreter again, --python {environment}=PATH"
            raise UsageError(f"{file} measured {environment}: {again}")
    _require_present(config, interpreters)
    return config


def survey(
    config: RunConfig, interpreters: Interpreters, on_event: OnEvent
) -> tuple[MachineState, cases.Probes, list[catalog.Selected]]:
    state = observe(BEFORE_RUN_S)  # before the first child: what others do, not what we do
    environments = environments_of(config, interpreters)

    sees_more = _sees_more()

    def probed(environment: Environment, tick: questions.Tick) -> ProbeReport | Failure:
        return questions.probe(environment.backend, interpreters.of(environment), tick, config.keep_env, sees_more)

    with events.step(on_event, events.asking(list(map(str, environments)))):
        probes = dict(
            zip(environments, questions.together(probed, environments, at_once=len(environments)), strict=True)
        )
    describer = next((place for place, report in probes.items() if isinstance(report, ProbeReport)), None)
    python, backend = (interpreters.of(describer), describer.backend) if describer else (sys.executable, None)
    others = [(interpreters.of(place), place.backend) for place in probes if place != describer]
    found = {file: sources.of(Path(file)) for file in catalog.own_files(config.scenarios)}
    runs = " and ".join(source.runs.format(file) for file, source in found.items() if source.runs)
    running = f"{runs}: once to look at it, then in each process that measures it"
    with events.step(on_event, running) if runs else nullcontext():
        selected = catalog.select(
            config.scenarios, python, backend, config.keep_env, config.model_config, config.suite, others
        )
    return state, probes, selected


def environments_of(config: RunConfig, interpreters: Interpreters) -> list[Environment]:
    return list(map(Environment.parse, config.environments or config.backends or interpreters.usual()))


def with_real_rows(planned: cases.Plan, interpreters: Interpreters, on_event: OnEvent) -> cases.Plan:
    """Have every data set's real rows downloaded and checked; raise UnusableScenario for all that cannot."""
    by_title = {case.selected.workload.data: case for case in planned.cases if case.selected.workload.has_real_data}
    complaints = []
    for title, case in by_title.items():
        selected, python = case.selected, interpreters.of(case.column.environment)
        with events.step(on_event, f"{title}: loading its real data, which are downloaded the first time"):
            place, workload = selected.entry.place, selected.workload.name
            answer = questions.fetch(place, workload, case.backend, python, planned.config.keep_env)
        if isinstance(answer, Failure):
            complaints.append(f"{selected.label}: {answer.cause}")
    if complaints:
        raise UnusableScenario("\n".join(complaints))
    without = dict.fromkeys(case.selected.label for case in planned.cases if not case.selected.workload.has_real_data)
    if not without:
        return planned
    warning = f"--data real changes nothing for {', '.join(without)}: their data are always the same"
    return replace(planned, warnings=[*planned.warnings, warning])


def keep_superseded(folder: Path, left: Run) -> None:
    if not left.trials:
        return
    store = Store.create(folder, text.now())
    store.finish(replace(left, stopped_because=SUPERSEDED))
    other = sum(trial.code != measuring_code(trial.column) for trial in left.trials)
    why = f", {other} of them because other code of kerasbench measured them" if other else ""
    trials = text.count(len(left.trials), "trial")
    text.complain(f"{trials} no longer counted{why}; kept in {store.data}")


def save(store: Store, record: Run) -> FinishedRun:
    """Before anything is drawn: a second Ctrl-C ends that. If the disk refuses, what there is can still be shown."""
    try:
        store.finish(record)
    except ResultsError as error:
        return FinishedRun(record, store, str(error))
    return FinishedRun(record, store)
