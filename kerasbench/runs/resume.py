"""Going on with a run that was interrupted: what of it still counts."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kerasbench.errors import ResultsError, UsageError
from kerasbench.host import Machine
from kerasbench.plan import catalog, live
from kerasbench.plan.cases import Case, Plan, Probes
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.folder import records
from kerasbench.results.record import (
    Record,
    ResumeConfig,
    RunConfig,
    ScenarioRecord,
    TrialRecord,
    completed_rounds,
    measuring_code,
)
from kerasbench.runs.rows import Row, rows_of
from kerasbench.text import complain


@dataclass(frozen=True)
class Interrupted:
    """A run that ended before it had enough, and the file that holds it."""

    file: Path
    record: Record


def find(folder: Path, here: Machine, longer: bool = False) -> Interrupted:
    """Return the newest run of a folder that is not finished and was begun on this machine.

    ``longer``: there is more time now, so that a run which its budget ended is not finished either. Newer runs are
    passed over, and said, if another machine began them, which shares the folder, or if they measured a live model,
    which is gone.

    Raises:
        ResultsError: there is none, or a damaged file is newer, which may be of the one that is meant.
    """
    passed: list[tuple[str, str]] = []  # what it is, and what to do about it
    ended = ""
    for file, record in records(folder, newest_first=True) if folder.is_dir() else ():
        if not (record.unfinished or (longer and record.out_of_time)):
            ended = ended or (f"; {file.name} ran out of time: add --budget TIME" if record.out_of_time else "")
            continue
        if not here.same_as(record.machine):  # trials of two machines must not be paired by round
            advice = f", and this is {here.title}; resume it there, or leave out --resume to begin a new run here"
            passed.append((f"{file}: begun on another machine ({record.machine.title})", advice))
        elif live.is_gone(record.config.scenarios):
            passed.append((f"{file}: measured a model object of a Python process, which is gone", "; measure it again"))
        else:
            for begun, _ in passed:
                complain(f"{begun}; passed over")
            return Interrupted(file, record)
    if passed:
        raise ResultsError("".join(passed[0]))
    raise ResultsError(f"{folder}: no run here was interrupted; leave out --resume to begin a new one{ended}")


def require_named_again(interrupted: Interrupted, named: ResumeConfig) -> None:
    """Raise UsageError where an interrupted run executes other files than its user names again.

    A result file may be anybody's, also one that this machine seems to have begun.
    """
    asked = interrupted.record.config
    if _executed(asked.scenarios, asked.model_config) != _executed(named.scenarios, named.model_config):
        words = to_name_again(asked)
        advice = f"--resume {words}" if words else "this run had none; leave out the files and --trust"
        raise UsageError(f"{interrupted.file}: --resume runs files of a run only if you name them again: {advice}")


def to_name_again(asked: RunConfig) -> str:
    """Return the options that --resume needs besides, because they say which files are executed; mostly none."""
    words = [f"--scenario {shlex.quote(file)}" for file in catalog.own_files(asked.scenarios)]
    words += [f"--custom {shlex.quote(asked.model_config.custom)}"] if asked.model_config.custom else []
    return " ".join([*words, *(["--trust"] if asked.model_config.trust else [])])


def _executed(scenarios: Sequence[str], given: ModelConfig) -> tuple[set[Path], Path | None, bool]:
    """Return the scenarios' files, the one with a model's own layers, and whether a model may run code of its own."""
    custom = Path(given.custom).resolve() if given.custom else None
    return {Path(file).resolve() for file in catalog.own_files(scenarios)}, custom, given.trust


def carry(record: Record, planned: Plan, probes: Probes) -> tuple[list[TrialRecord], list[TrialRecord]]:
    """Split a run's trials into those that count as the new plan's, and those that do not.

    A trial counts where what defines its case is the same: the source of the scenario and of a twin, the workload,
    backend, device, options and the versions of all packages; where the same code of kerasbench measured it; and where
    it was measured beside the others of its row, which goes on after its last round that all of them have. Trials that
    could not be tried at all are made again by the plan.
    """
    cases = {case.key: case for case in planned.cases}
    scenarios = {scenario.description.name: scenario for scenario in record.scenarios}
    tried = [trial for trial in record.trials if trial.round > 0]
    counting = [
        trial
        for trial in tried
        if (case := cases.get(trial.case)) is not None
        and _source(case) == scenarios[trial.scenario].source(trial.backend, trial.options.native)
        and case.device == trial.device
        and trial.code == measuring_code()
        and _same_versions(trial, probes.get(case.column.environment))
    ]
    whole = [trial for row in rows_of(planned) for trial in _whole(row, counting, tried)]
    return [trial for trial in tried if trial in whole], [trial for trial in tried if trial not in whole]


def _source(case: Case) -> tuple[str, str]:
    entry = case.selected.entry
    return ScenarioRecord(entry.file_hash, entry.description, entry.twins).source(case.backend, case.options.native)


def _same_versions(trial: TrialRecord, probe: ProbeReport | Failure | None) -> bool:
    """Tell whether a trial ran with the versions that are there now; a failed one said none, and counts."""
    if trial.measurement is None:
        return True
    ran = trial.measurement.resolved.versions
    if not isinstance(probe, ProbeReport):
        return False
    there = probe.versions | {"python": probe.python}
    return all(ran.get(name) == version for name, version in there.items())


def _whole(row: Row, counting: Sequence[TrialRecord], tried: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return a row's trials of its whole rounds; and what was given up without a block, which stays so.

    That a case computes something else than the others is forgotten where a trial of the row no longer counts.
    """
    own = [trial for trial in counting if trial.case in row.known]
    if len(own) < sum(trial.case in row.known for trial in tried):
        own = [trial for trial in own if trial.failure is None or trial.failure.code is not Code.PARITY]
    last = completed_rounds((case.key for case in row.cases), own)
    return [trial for trial in own if trial.round <= last or not trial.block]
