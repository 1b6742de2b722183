"""What is asked of a child, and the records of a run and of its trials."""

import dataclasses

import psutil

from kerasbench import text, variants
from kerasbench.analysis.estimates import MINIMAL_EFFECT, MINIMAL_EFFECT_ON_BATTERY
from kerasbench.host import commit, load
from kerasbench.host.noise import MachineState, of_machine
from kerasbench.plan.cases import Case, Plan
from kerasbench.processes.outcome import Outcome
from kerasbench.protocol.columns import CPU, GPU, Device
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import TrialPlan, TrialRequest
from kerasbench.results.checks import trial_problems
from kerasbench.results.code import measuring_code
from kerasbench.results.run import Run, RunConfig, ScenarioFacts, Trial

SESSION_ENDS_S = 3_600.0  # after so long the machine may be another: what else it does, how warm it is


def new_record(planned: Plan, state: MachineState) -> Run:
    cases = [*planned.cases, *(case for case, _ in planned.absent)]
    entries = {case.selected.entry.name: case.selected.entry for case in cases}.values()
    scenarios = [ScenarioFacts(entry.file_hash, entry.description, entry.baselines, entry.suite) for entry in entries]
    return Run(
        config=planned.config,
        machine=planned.machine,
        started=text.now(),
        minimal_effect=MINIMAL_EFFECT_ON_BATTERY if state.on_battery else MINIMAL_EFFECT,
        scenarios=scenarios,
        cases=len(planned.cases),
        trials=[trial_record(case, 0, Outcome([], 0, failure=failure)) for case, failure in planned.absent],
        noise=of_machine(state, planned.machine.cores),
        load=limit_on(Device(CPU), None, planned, state),
        flops=planned.flops,
        commit=commit(),
    )


def limit_on(device: Device, threads: int | None, planned: Plan, state: MachineState) -> load.LoadLimit:
    processors = psutil.cpu_count() or 1  # those included that this process may not use: counters are of all
    return load.limit_of(device, threads, state.busy_share, planned.machine.cores, processors)


def resumed_record(earlier: Run, new: Run) -> Run:
    return dataclasses.replace(
        new,
        started=earlier.started,
        minimal_effect=max(earlier.minimal_effect, new.minimal_effect),  # some of it was measured on battery
        resumed=earlier.resumed,
        noise=list(dict.fromkeys([*earlier.noise, *new.noise])),
        trials=[*new.trials, *earlier.trials],
        parent_cpu_ns=earlier.parent_cpu_ns,
    )


def session_of(record: Run, now_s: float, booted_s: float) -> int:
    """Both times in s since 1970."""
    measured = [trial for trial in record.trials if trial.measurement]
    if not measured:
        return 1
    ended = max((trial.ended for trial in record.trials if trial.round), default="")  # 0: it could not be tried
    ended_s = text.seconds(ended or record.finished or record.started)
    is_another = now_s - ended_s > SESSION_ENDS_S or booted_s > ended_s
    return max(trial.session for trial in measured) + is_another


def trial_request(case: Case, plan: TrialPlan, config: RunConfig, caches: str = "") -> TrialRequest:
    """``caches``: the folder of a case that finds what was compiled before."""
    entry = case.selected.entry
    return TrialRequest(
        scenario=entry.name,
        file=entry.place,
        file_hash=entry.file_hash,
        workload=case.selected.workload.name,
        backend=case.backend,
        device=case.device,
        seed=config.seed,
        data=config.data,
        plan=plan,
        options=case.options,
        baseline_hash=entry.baselines[case.backend] if variants.has(case.options, "replaces") else "",
        model_config=entry.model_config,
        caches=caches,
    )


def trial_record(case: Case, index: int, outcome: Outcome, block: int = 0, beside_others: bool = False) -> Trial:
    # What ran out of memory may not do so by itself; on a GPU, so may whatever failed before it could be measured.
    failure, crowded = outcome.failure, False
    if beside_others and failure is not None and not failure.own_limit:
        crowded = failure.code is Code.OOM or (case.device.kind == GPU and not outcome.had_turn)
    trial = Trial(
        round=index,
        scenario=case.selected.entry.name,
        workload=case.selected.workload.name,
        backend=case.backend,
        device=case.device,
        wall_ns=outcome.wall_ns,
        phases=outcome.phases,
        measurement=outcome.measurement,
        failure=failure,
        options=case.options,
        protocol=case.plan.kind,
        block=block,
        started_alone=outcome.started_alone,
        code=measuring_code(case.column),
        ended=text.now(),
        crowded=crowded,
    )
    if problem := next(trial_problems(trial), ""):  # its numbers would make the run's file unreadable
        remedy = "this is a bug in kerasbench: please report it, with `kerasbench doctor --json`"
        failure = Failure(Code.INVALID, f"what it measured cannot be: {problem}", remedy)
        trial = dataclasses.replace(trial, measurement=None, failure=failure)
    return trial
