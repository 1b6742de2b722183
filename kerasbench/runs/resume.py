"""Going on with a record: a run that was interrupted, or a sweep with more sizes where its series cross."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from kerasbench import variants
from kerasbench.analysis.names import name_of
from kerasbench.errors import ResultsError, UsageError
from kerasbench.host import Machine
from kerasbench.plan import catalog, live
from kerasbench.plan.cases import Plan, Probes, with_controls
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code, ProbeReport
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import measuring_code
from kerasbench.results.run import ResumeConfig, Run, RunConfig, ScenarioFacts, Trial, completed_rounds
from kerasbench.results.store import is_held, records
from kerasbench.runs.rows import RowProgress, rows_of
from kerasbench.text import complain

WHOLE = 0.95  # of a long block: the last slice may end a little early


def find(folder: Path, here: Machine, longer: bool = False, say: Callable[[str], None] = complain) -> tuple[Path, Run]:
    """Return a folder's newest run that can go on here, saying which are passed over; ``longer``: beyond its budget."""
    passed_over: list[tuple[str, str]] = []  # why, and what to do about it
    out_of_time = ""
    for file, record in records(folder, newest_first=True) if folder.is_dir() else ():
        if not record.unfinished and not (longer and record.out_of_time):
            if record.out_of_time and not out_of_time:
                out_of_time = f"; {file.name} ran out of time: add --budget TIME"
            continue
        if is_held(file):
            passed_over.append((f"{file}: another process is still measuring this run", "; wait until it ends"))
        elif record.carried is not None:
            host = shlex.quote(record.carried.host)
            passed_over.append((f"{file}: measured on {host}", f"; to continue there: --hosts {host}, or --cluster"))
        elif here.identity != record.machine.identity:  # trials of two machines must not be paired by round
            advice = f", and this is {here.title}; resume it there, or leave out --resume to start a new run here"
            passed_over.append((f"{file}: started on another machine ({record.machine.title})", advice))
        elif live.is_gone(record.config.scenarios):
            why = f"{file}: measured a model object of a Python process that has ended"
            passed_over.append((why, "; measure it again"))
        else:
            for why, _ in passed_over:
                say(f"{why}; skipped")
            return file, record
    if passed_over:
        raise ResultsError("".join(passed_over[0]))
    raise ResultsError(f"{folder}: no run here was interrupted; leave out --resume to start a new one{out_of_time}")


def require_named_again(file: Path, config: RunConfig, named: ResumeConfig) -> None:
    """Raise UsageError: a result file may be anybody's, also one that this machine seems to have begun."""
    differ = executed(config.scenarios, config.model_config) != executed(named.scenarios, named.model_config)
    if differ or not set(variants.words_to_repeat(config.options)) <= set(variants.words_to_repeat(named.options)):
        words = to_name_again(config.scenarios, config.model_config, config.options)
        advice = f"--resume {words}" if words else "this run had none; leave out the files and --trust"
        raise UsageError(
            f"{file}: --resume runs files and sets variables of a run only if you name them again: {advice}"
        )


def to_name_again(scenarios: Sequence[str], config: ModelConfig, options: Sequence[Options]) -> str:
    """Return the options that --resume needs besides, because they say which files are executed; mostly none."""
    words = [f"--scenario {shlex.quote(file)}" for file in catalog.own_files(scenarios)]
    if config.custom:
        words.append(f"--custom {shlex.quote(config.custom)}")
    if config.trust:
        words.append("--trust")
    parts = [(flag, part) for flag, value in variants.words_to_repeat(options) for part in value.split(",")]
    words += dict.fromkeys(f"{flag} {shlex.quote(part)}" for flag, part in parts)
    return " ".join([*words, *map(shlex.quote, config.script_words)])


def executed(scenarios: Sequence[str], config: ModelConfig) -> tuple[set[str], str, bool, list[str]]:
    # No file is looked at: a result may name what is none.
    custom = os.path.abspath(config.custom) if config.custom else ""
    return {os.path.abspath(file) for file in catalog.own_files(scenarios)}, custom, config.trust, config.script_words


def carry(record: Run, planned: Plan, probes: Probes) -> tuple[list[Trial], list[Trial]]:
    """Split a run's trials: those count that the new plan would repeat, where the rest of their row has the round."""
    cases = {case.key: case for case in planned.cases}
    scenarios = {scenario.description.name: scenario for scenario in record.scenarios}
    cut = _cut_blocks(record)

    def counts(trial: Trial) -> bool:
        case = cases.get(trial.case)
        if case is None or case.device != trial.device or trial.block in cut:
            return False
        entry = case.selected.entry
        now, then = ScenarioFacts(entry.file_hash, entry.description, entry.baselines), scenarios[trial.scenario]
        same_source = then.source(trial.column) == now.source(trial.column)
        same_code = trial.code == measuring_code(trial.column)
        if trial.measurement is None or not (same_source and same_code):
            return same_source and same_code  # what has failed has reported no versions
        probe, ran = probes.get(case.column.environment), trial.measurement.resolved.versions
        return isinstance(probe, ProbeReport) and all(
            ran.get(name) == version for name, version in (probe.versions | {"python": probe.python}).items()
        )

    tried = [trial for trial in record.trials if trial.round > 0]
    counting = [trial for trial in tried if counts(trial)]
    rounds = record.rounds_completed
    whole = [trial for row in rows_of(planned) for trial in _whole(row, counting, tried, rounds)]
    return [trial for trial in tried if trial in whole], [trial for trial in tried if trial not in whole]


def _cut_blocks(record: Run) -> set[int]:
    """Return the long blocks that did not last: the control rests most of the time, what has failed ended by itself."""
    plan = record.config.effort.plan
    least_ns = WHOLE * plan.slices_max_ns if plan.fixed_time else 0.0
    return {
        trial.block
        for trial in record.trials
        if not trial.options.control and trial.measurement is not None and sum(trial.measurement.slices.ns) < least_ns
    }


def _whole(row: RowProgress, counting: Sequence[Trial], tried: Sequence[Trial], rounds: int) -> list[Trial]:
    """Return a row's trials of its whole rounds, and what was given up without a block, which stays so."""
    trials = [trial for trial in counting if trial.case in row.calibrations]
    # Where some no longer count, who computes something else than the others has to be found anew.
    if len(trials) < sum(trial.case in row.calibrations for trial in tried):
        trials = [trial for trial in trials if trial.failure is None or trial.failure.code is not Code.PARITY]
    last = completed_rounds((case.key for case in row.cases), trials, rounds)
    return [trial for trial in trials if trial.round <= last or not trial.block]


def as_started(planned: Plan, record: Run, is_second_part: bool) -> Plan:
    """Leave out the columns of a backend that was installed only since."""
    tried = {trial.case for trial in record.trials if trial.round > 0}
    plain, warnings = [case for case in planned.cases if not case.options.control], planned.warnings
    if is_second_part:  # rows have some of the columns; nothing but what was tried tells which
        started = {case.row for case in plain if case.key in tried}
        cases = [case for case in plain if case.key in tried or case.row not in started]
    else:
        columns = {trial.column for trial in record.trials}
        cases = [case for case in plain if case.column in columns]
        new = dict.fromkeys(name_of(case.column) for case in plain if case.column not in columns)
        if not new or not 0 < record.cases < len(planned.cases):  # or they had no turn before the run was killed
            return planned
        warnings = [*warnings, f"left out, because the run began without them: {', '.join(new)}"]
    cases = with_controls(cases) if planned.config.control else cases
    return replace(planned, cases=cases, warnings=warnings)


def with_more(plan: Plan | None, record: Run, execute: Callable[[Plan, Run], Run]) -> Run:
    """Go on with the second part of a run, where it has one; the record of both is one run to its reader."""
    if plan is None:
        return record
    # What could not be tried is found again.
    tried = replace(record, trials=[trial for trial in record.trials if trial.round > 0])
    try:
        both = execute(plan, tried)
    except ResultsError:  # the disk takes no more, and what was measured stands
        return record
    last = both if both.unfinished else record  # an interruption takes no round of the first
    both.config = replace(both.config, effort=last.config.effort)
    both.rounds_completed, both.stopped_because = record.rounds_completed, last.stopped_because
    return both
