"""What cannot be in a result file, which may have been edited: types do not say all, above all those of a child."""

from collections.abc import Callable, Iterator, Sized
from datetime import datetime
from typing import Any

import msgspec

from kerasbench import backends, text
from kerasbench.errors import ResultsError
from kerasbench.host import FIT
from kerasbench.protocol.columns import Environment, Options
from kerasbench.protocol.measurement import Measurement, Samples
from kerasbench.protocol.stages import ALL, EPOCH, PARTS_OF_STEP, STAGES, TRAIN
from kerasbench.results.run import MAX_COLUMNS, Run, RunConfig, Trial
from kerasbench.results.times import step_ns

AGAIN = "restore the file, or measure again"
SHOWN = 40  # characters of what cannot be
MAX_WHOLE = 10**18  # of ns (thirty years), samples or bytes: what a float still tells from its neighbours, by and large
MAX_REAL = 1e100  # of a loss or a rate: sums and products are still numbers
NUMBERS, NO_NUMBERS = (int, float), (str, bool, type(None))
# By the name of a field; numbers in lists are checked like the field that has the list.
ONE_OR_MORE = """
    ns calls_ns passes_ns times_ns counts first_step_ns again_ns total_ns epochs_ns predict_ns count batch samples steps
    steps_per_epoch train_samples peak_flops
"""
ZERO_OR_MORE = "wall_ns epoch_steps full_steps_per_epoch operations peak_rss_bytes peak_device_bytes memory_bytes"
LEAST = dict.fromkeys(ONE_OR_MORE.split(), 1) | dict.fromkeys(ZERO_OR_MORE.split(), 0) | {"width": 1e-9}
# By a mode, what raises ValidationError for what it cannot have been asked; filled in by ``kerasbench.modes``, if used.
MODES: dict[str, Callable[[RunConfig], object]] = {}
# By which a slice's processor time may be more than its time on every logical CPU: the kernel counts it in ticks, of
# 10 ms at most (Linux with HZ=100). Of the 45,000 slices of the first 38 published runs, none is above by 3.5 ms.
TICK_NS = 10_000_000


def problems(record: Run) -> Iterator[str]:
    for name in sorted(_backends_of(record).difference(backends.names())):
        there = ", ".join(backends.names())
        yield f"{name[:SHOWN]!r} is none of the backends {there}; if a newer kerasbench wrote the file, update this one"
    for index, trial in enumerate(record.trials, start=1):
        for problem in trial_problems(trial):
            yield f"trial {index} ({trial.scenario}, {trial.backend}): {problem}"
    if field := _out_of_range([record.machine, record.scenarios, record.flops]):
        yield f"{field} is out of range"
    names = {scenario.description.name for scenario in record.scenarios}
    if unknown := sorted({trial.scenario for trial in record.trials} - names):
        yield f"trials of {', '.join(unknown[:3])}, which is not one of its scenarios"
    if (columns := len({trial.column for trial in record.trials})) > MAX_COLUMNS:
        yield f"{columns} configurations, and a run has {MAX_COLUMNS} at most"
    if not 0 < record.minimal_effect < 1:
        yield "minimal_effect is out of range"
    measured = (trial.measurement for trial in record.trials if trial.measurement is not None)
    parts = ({*part.samples, *part.calls, *part.texts} for part in measured)
    if unknown := sorted({*record.config.effort.plan.stages}.union(*parts).difference(STAGES, PARTS_OF_STEP)):
        yield f"it measured {unknown[0][:SHOWN]!r}, which is no stage of a trial"
    yield from _unfit_words(record)


def _backends_of(record: Run) -> set[str]:
    config = record.config
    of_environments = (Environment.parse(text).backend for text in config.environments)
    return {*(trial.backend for trial in record.trials), *config.backends, *of_environments}


def _unfit_words(record: Run) -> Iterator[str]:
    config = record.config
    if MODES and config.mode not in MODES:
        yield f"its mode is unknown: {config.mode[:SHOWN]!r}"
    else:
        try:
            MODES.get(config.mode, repr)(config)
        except msgspec.ValidationError as error:
            yield f"the options of its mode are not allowed: {error}"
    if not _is_time(record.started):  # files are named after it
        yield f"its start, {record.started[:SHOWN]!r}, is not a time"
    for time in (record.finished, *record.resumed, *(trial.ended for trial in record.trials)):
        if time and not _is_time(time):
            yield f"{time[:SHOWN]!r} is not a time"
    if record.machine.identifier and not FIT.fullmatch(record.machine.identifier):
        yield f"the name of its machine is not allowed: {record.machine.identifier[:SHOWN]!r}"


def _is_time(text: str) -> bool:
    try:  # as ``text.now`` gives it
        return datetime.fromisoformat(text).strftime("%Y-%m-%dT%H:%M:%SZ") == text
    except ValueError:
        return False


def trial_problems(trial: Trial) -> Iterator[str]:
    """Say what a trial cannot be: a file that holds such a one is not read again."""
    measured = trial.measurement
    if (measured is None) == (trial.failure is None):
        yield "a trial has either a measurement or a failure"
    if field := _out_of_range(trial):
        yield f"{field} is out of range"
    if measured is None:
        return
    if not all(_needed(measured)):
        yield "a list from which results are computed is empty"
    elif measured.usage.wall_ns < 1:
        yield "its steps took no time"
    elif measured.full_steps_per_epoch > measured.steps_per_epoch:
        yield "an epoch has more full steps than steps in all"
    elif not step_ns(measured) > 0:
        yield "an epoch takes no time"


def _out_of_range(value: object) -> str:
    """Return the name of a field that has a number out of range; empty if all are in range."""
    left: list[tuple[str, Any]] = [("", value)]
    while left:  # a report looks at a million numbers
        field, part = left.pop()
        kind = type(part)
        if kind is int:
            if not LEAST.get(field, -MAX_WHOLE) <= part <= MAX_WHOLE:
                return field
        elif kind is float:
            if not LEAST.get(field, -MAX_REAL) <= part <= MAX_REAL:
                return field
        elif kind is list:
            left += [(field, inner) for inner in _ends(part) or part]
        elif kind is dict:
            left += [(field, inner) for inner in part.values()]
        elif kind is Options:
            left += part.items()
        elif kind not in NO_NUMBERS and hasattr(kind, "__dataclass_fields__"):
            left += vars(part).items()
    return ""


def _ends(values: list[Any]) -> tuple[Any, ...]:
    """Return the least and the largest: a trial has thousands of numbers. None of a list that has others, too."""
    try:
        return (min(values), max(values)) if values and type(values[0]) in NUMBERS else ()
    except TypeError:
        return ()


def _needed(measured: Measurement) -> Iterator[Sized]:
    """Yield the lists that figures are computed from: each has an entry at least."""
    published = measured.published
    yield measured.slices  # empty, too, where no prediction is one of a way that stands for the trial
    yield from measured.samples.values()
    facts: dict[str, object] = {TRAIN: measured.training, EPOCH: measured.short_epoch, ALL: measured.passes}
    facts |= dict.fromkeys(PARTS_OF_STEP, measured.peak_flops) | measured.calls | measured.texts
    for stage in (stage for stage, has in facts.items() if has):
        yield measured.samples.get(stage, ())
    if measured.passes is not None:
        yield measured.passes.passes_ns
    if published is not None:
        yield published.epochs_ns
        yield from published.history.values()


def require_possible_times(record: Run, name: str) -> None:
    """Raise ResultsError for a slice that used more processor time than the machine's logical CPUs have in it.

    So it looks if somebody has made times shorter. It is asked of files that others send, and not on every reading.
    """
    cores = record.machine.cores
    for index, trial in enumerate(record.trials, start=1):
        for samples in _all_samples(trial.measurement) if trial.measurement else ():
            for ns, cpu_ns in zip(samples.ns, samples.cpu_ns or (), strict=False):
                if cpu_ns is not None and cpu_ns > cores * (ns + TICK_NS):
                    slice_ = f"a slice of {ns / 1e6:.1f} ms used {cpu_ns / 1e6:.1f} ms of processor time"
                    where = f"{name}: trial {index} ({trial.scenario}, {trial.backend})"
                    raise ResultsError(
                        f"{where}: {slice_}, more than {text.count(cores, 'logical CPU')} can give; {AGAIN}"
                    )


def _all_samples(measured: Measurement) -> Iterator[Samples]:
    yield from measured.samples.values()
    if measured.training is not None:
        yield measured.training.warmup
