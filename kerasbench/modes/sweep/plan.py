"""What a sweep measures: one workload at many sizes, and more of them where one series overtakes another."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import replace

from kerasbench import variants
from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.errors import UsageError
from kerasbench.modes.sweep import MODE, SweepConfig, SweepSettings
from kerasbench.modes.sweep.series import swept
from kerasbench.plan import configure, parse
from kerasbench.plan.cases import Plan, with_controls
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.columns import Column, Options, Size
from kerasbench.protocol.requests import TrialKind
from kerasbench.results.run import Run, RunConfig
from kerasbench.runs.planner import Planner

DEFAULT_BATCHES = ["1..4096"]
MORE_SIZES = 2  # inside the bracket of a crossover (validation/METHOD.md): thirds of an octave


def config_of(settings: SweepSettings) -> RunConfig:
    batches = parse.batches(settings.batch_sizes or ([] if settings.widths else DEFAULT_BATCHES))
    options = configure.options_of(settings)
    kind: TrialKind = "sweep"
    if any(variants.has(choice, "exports") for choice in options):
        configure.require_exporters(options, settings.backends)
        kind = "sweep_predictions"
    options = crossed(options, batches, parse.widths(settings.widths))
    return MODE.configured(configure.configured(settings, kind, options), SweepConfig(refine=True))


class SweepPlanner(Planner[SweepConfig]):
    def require(self, scenarios: Sequence[Selected]) -> None:
        if len(scenarios) > 1:
            names = ", ".join(selected.word for selected in scenarios)
            raise UsageError(
                f"a sweep measures one workload, and this names {len(scenarios)}: {names}; name one of them"
            )
        for selected in scenarios:
            if selected.workload.streams and any("batch" in options for options in self.config.options):
                raise UsageError(
                    f"{selected.label} is given a stream, which decides the batch size: --batch-size takes a script "
                    "that gives arrays to fit()"
                )
            if not selected.entry.description.scalable and any("width" in options for options in self.config.options):
                raise UsageError(
                    f"{selected.label} has no --width: its hidden layers cannot be scaled; kerasbench docs "
                    "your-model shows how to make a scenario scalable"
                )

    def more(self, planned: Plan, record: Run, spent_s: float) -> Plan | None:
        """Return the plan with more sizes, on both columns of each crossing with an interval; None if it has them."""
        rounds, budget_s = record.rounds_completed, planned.effort.budget_s
        if not self.settings.refine or record.unfinished or rounds < MIN_TRIALS_FOR_INTERVAL:
            return None
        wanted = more_sizes(summarize(record))
        bases = {case.column: case for case in planned.cases if not case.options.control}
        cases = [
            replace(base, options=base.options.at(size)).resized()
            for size, columns in wanted.items()
            for column, base in bases.items()
            if column in columns
        ]
        cases = with_controls(cases) if planned.config.control else cases
        if not cases:
            return None
        each_s = statistics.fmean(trial.own_ns / 1e9 for trial in record.trials if trial.measurement is not None)
        if budget_s is not None and spent_s + len(cases) * rounds * each_s > budget_s:
            return None
        # Options are asked for whichever interpreter runs them, and a control is asked for once, for all rows.
        options = [case.options.but(environment=None, control=None) for case in cases]
        # At most as many rounds as there are: what was measured then has enough, for the reasons that it had.
        least = min(planned.effort.min_rounds, rounds)
        effort = replace(planned.effort, min_rounds=least, max_rounds=rounds, budget_s=None)
        of_run = list(dict.fromkeys([*planned.config.options, *options]))
        config = MODE.configured(replace(planned.config, options=of_run, effort=effort), SweepConfig(refine=False))
        warning = f"more sizes near the crossover: {', '.join(size.label for size in wanted)}"
        return Plan(config, planned.machine, [*planned.cases, *cases], planned.absent, [warning])

    @property
    def is_second_part(self) -> bool:
        return not self.settings.refine


def crossed(options: Sequence[Options], batches: Sequence[int], widths: Sequence[float]) -> list[Options]:
    """Return all options at each size; raise UsageError where there is only one size, which is no sweep."""
    sizes = list(itertools.starmap(Size, itertools.product(batches or (None,), widths or (None,))))
    if len(sizes) < 2:
        raise UsageError("a sweep needs two sizes or more, such as --batch-size 1..4096 or --width 0.5,1,2")
    return [choices.at(size) for size in sizes for choices in options]


def sizes_between(low: float, high: float, whole: bool) -> list[float]:
    """Return MORE_SIZES sizes that divide a bracket evenly on a logarithmic scale; fewer where there is no room."""
    parts = MORE_SIZES + 1
    even = [low * (high / low) ** (part / parts) for part in range(1, parts)]
    rounded = [float(round(size)) if whole else float(f"{size:.3g}") for size in even]
    return [size for size in dict.fromkeys(rounded) if low < size < high]


def more_sizes(summary: Summary) -> dict[Size, set[Column]]:
    """Return the sizes inside the brackets of crossings, each with the columns that cross.

    Of crossings that have an interval, and of which one column is the fastest of all on a side.
    """
    fastest = {row.label: ranking.fastest for row, ranking in summary.sized.ranked}
    wanted: dict[Size, set[Column]] = {}
    for series in swept(summary):
        base = next(iter(series.rows.values())).size or Size()
        is_batch = series.axis == "batch"
        for crossing in [crossing for crossing in series.crossings if crossing.has_interval]:
            if not {crossing.winner, crossing.loser} & {fastest[series.rows[size].label] for size in crossing.bracket}:
                continue
            for value in sizes_between(*crossing.bracket, whole=is_batch):
                size = Size(int(value), base.width) if is_batch else Size(base.batch, value)
                wanted.setdefault(size, set()).update((crossing.winner, crossing.loser))
    return {size: wanted[size] for size in sorted(wanted, key=lambda size: size.order)}
