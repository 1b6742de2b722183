"""From trials to what a table says: cases in rows, who is fastest, and under which terms."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from itertools import compress
from typing import Any, TypeVar

from kerasbench import variants
from kerasbench.analysis.cases import Measured, summarize_case
from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.rankings import Ranking, beside, rank, speed_ups
from kerasbench.analysis.ratios import RunRatios
from kerasbench.analysis.rows import Row, judge_cases
from kerasbench.protocol.columns import CPU, CaseKey, Column, Size
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Group, Run, RunConfig, Trial, completed_rounds
from kerasbench.settings import RUN
from kerasbench.text import count

T = TypeVar("T")


@dataclass(frozen=True)
class Summary:
    """The cases of a run in rows; what follows from them is computed when it is first asked for."""

    record: Run
    columns: list[Column]  # of the tables: not the controls, which repeat one of them, nor what shows a cause
    rows: list[Row]
    rankings: list[Ranking]  # one for each row
    terms: dict[Column, list[str]]
    cache: dict[object, Any] = field(init=False, default_factory=dict, repr=False, compare=False)  # see ``derived``

    @property
    def effect(self) -> float:
        return self.record.minimal_effect

    @property
    def ranked(self) -> list[tuple[Row, Ranking]]:
        return list(zip(self.rows, self.rankings, strict=True))

    @cached_property
    def plain(self) -> "Summary":
        return self._only(is_sized=False)

    @cached_property
    def sized(self) -> "Summary":
        return self._only(is_sized=True)

    @cached_property
    def mode(self) -> str:
        """In which all of its rows were measured; ``run`` where they are of several."""
        modes = {config.mode for config in self._configs}
        return modes.pop() if len(modes) == 1 else RUN

    @cached_property
    def is_ranked(self) -> bool:
        """Whether it says who is fastest on some of its rows, column against column."""
        return any(config.ranks for config in self._configs)

    @property
    def _configs(self) -> list[RunConfig]:
        return [row.origin.config for row in self.rows] or [self.record.config]

    @cached_property
    def speed_ups(self) -> list[Contrast]:
        return speed_ups(self.plain.rows, self.effect)

    @cached_property
    def besides(self) -> dict[str, list[Contrast]]:
        """By the name of a variant, the cases with it beside the same without."""
        return {
            variant.name: beside(variant, self.plain.rows, self.effect) for variant in variants.ALL if variant.beside
        }

    def _only(self, is_sized: bool) -> "Summary":
        chosen = [(row.size is not None) is is_sized for row in self.rows]
        rankings = list(compress(self.rankings, chosen))
        return replace(self, rows=list(compress(self.rows, chosen)), rankings=rankings)

    @property
    def cases(self) -> Iterator[tuple[Row, Column, Measured]]:
        return ((row, column, case) for row in self.rows for column, case in row.cases.items())

    @property
    def unmeasured(self) -> list[tuple[Row, Column, Failure]]:
        unmeasured = [(row, column, case.failure) for row, column, case in self.cases if case.failure is not None]
        return [case for case in unmeasured if not variants.has(case[1].options, "explains")]

    @property
    def failures(self) -> list[tuple[Row, Column, Failure]]:
        """What a mode tries of its own accord, and cannot have, is none."""

        def was_asked_for(row: Row, column: Column) -> bool:
            return column.options.choices in [options.choices for options in row.origin.config.options]

        return [
            (row, column, failure)
            for row, column, failure in self.unmeasured
            if failure.code is not Code.SLOW and (failure.code is not Code.UNSUPPORTED or was_asked_for(row, column))
        ]


def derived(compute: Callable[[Summary], T]) -> Callable[[Summary], T]:
    """Have what is worked out of a summary computed when it is first asked for, and kept with it."""

    @wraps(compute)
    def derive(summary: Summary) -> T:
        if compute not in summary.cache:
            summary.cache[compute] = compute(summary)
        result: T = summary.cache[compute]
        return result

    return derive


def summarize(record: Run, measured: Mapping[CaseKey, Measured] | None = None) -> Summary:
    """Sum up a run; ``measured`` are cases that were summed up already."""
    record = _without_open_round(record)
    shown = {trial.column for trial in record.trials if not variants.is_aside(trial.options)}
    columns = sorted(shown, key=lambda column: column.order)
    runs: dict[str, RunRatios[Column]] = defaultdict(RunRatios)
    rows = [
        Row(
            scenario.description,
            _at(size, workload),
            cases,
            runs[origin.started].add_row(cases),
            origin,
            size,
            of_user=scenario.suite == "",
        )
        for scenario in record.scenarios
        for workload in scenario.description.workloads
        for size, cases in _cases(record, measured or {}, scenario.description.name, workload.name)
        for origin in (record.origin(Group(scenario.description.name, workload.name, size is not None)),)
    ]
    published = [row for row in rows if row.size is None]
    sized = [row for row in rows if row.size is not None]
    # Two tables: each one's verdicts are judged together.
    rankings = [*rank(published, record.minimal_effect), *rank(sized, record.minimal_effect)]
    return Summary(record, columns, [*published, *sized], rankings, _terms(record))


def _at(size: Size | None, workload: WorkloadDescription) -> WorkloadDescription:
    """Return the workload that a row predicts with: how many samples is what its headline goes by."""
    if size is None or size.batch is None or not workload.predicts_only:
        return workload
    return workload.of_batch(size.batch)


def _without_open_round(record: Run) -> Run:
    """Leave out what a round that was not completed has measured, unless there is no other."""

    def row_of(trial: Trial) -> tuple[object, ...]:
        pair = trial.column.paired if record.origin(trial.group).config.paired else None
        return trial.scenario, trial.workload, trial.options.size, pair

    rows: dict[tuple[object, ...], list[Trial]] = {}
    for trial in record.trials:
        rows.setdefault(row_of(trial), []).append(trial)
    rounds_of_run = {row: record.origin(trials[0].group).rounds for row, trials in rows.items()}
    completed = {  # of columns in turns
        row: completed_rounds({trial.case for trial in trials}, trials, rounds_of_run[row])
        for row, trials in rows.items()
    }

    def counts(trial: Trial) -> bool:
        rounds = (completed if trial.block and not trial.agenda.in_full else rounds_of_run)[row_of(trial)]
        return not rounds or trial.failure is not None or trial.round <= rounds

    return replace(record, trials=list(filter(counts, record.trials)))


def _cases(
    record: Run, measured: Mapping[CaseKey, Measured], scenario: str, workload: str
) -> list[tuple[Size | None, dict[Column, Measured]]]:
    """Return the cases of a workload by column, for each size; those that compute something else have failed."""
    grouped: dict[Size | None, dict[Column, list[Trial]]] = {}
    for trial in record.trials:
        if (trial.scenario, trial.workload) == (scenario, workload):
            grouped.setdefault(trial.options.size, {}).setdefault(trial.column, []).append(trial)
    rows = []
    for size, by_column in sorted(grouped.items(), key=lambda row: row[0].order if row[0] else (0, 0.0)):
        cases = {
            column: measured.get(CaseKey(scenario, workload, column, size)) or summarize_case(trials)
            for column, trials in sorted(by_column.items(), key=lambda case: case[0].order)
        }
        for column, failure in judge_cases(cases).items():
            cases[column] = Measured(cases[column].trials, failure)
        rows.append((size, cases))
    return rows


WITHOUT_IMAGES = ("dense", "recurrent", "transformer")  # kinds of models to which the order of channels is nothing


def _terms(record: Run) -> dict[Column, list[str]]:
    """Return the settings in force of each configuration, as the children found them: all different ones."""
    terms: dict[Column, dict[str, None]] = {}
    has_images = any(scenario.description.kind not in WITHOUT_IMAGES for scenario in record.scenarios)
    for trial in sorted(record.trials, key=lambda trial: trial.column.order):
        if trial.measurement is None:
            continue
        resolved = trial.measurement.resolved
        computed = " and ".join(resolved.compute_dtypes)
        threads = "threads unknown" if resolved.threads is None else count(resolved.threads, "thread")
        if variants.pinned(trial.options) and resolved.processors:  # some processors share a core
            threads += f" on CPU {resolved.processors}"
        words = [
            trial.device.title,
            "compiled" if resolved.jit else "not jit-compiled",
            resolved.dtype_policy + ("" if computed == resolved.dtype_policy else f" (layers in {computed})"),
            "" if trial.device.kind == CPU else f"float32 matrix multiplications {resolved.fp32}",
            f"subnormal numbers {resolved.subnormals}" if resolved.subnormals else "",
            resolved.image_data_format if has_images else "",
            threads,
        ]
        terms.setdefault(trial.column, {})[", ".join(filter(None, words))] = None
    return {column: list(of_column) for column, of_column in terms.items()}
