"""Blocks of columns that a benchmark chooses, in place of a plan's rows: the same case twice, or beside a slowed copy.

What is measured and how is the package's own (processes/block.py, runs/turns.py, analysis/ratios.py).
"""

import math
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from children import installed

from kerasbench.analysis.cases import STEADY, Measured
from kerasbench.analysis.estimates import LogEstimate, variance
from kerasbench.analysis.ratios import divide_blocks, estimate_ratio
from kerasbench.host import load
from kerasbench.plan import catalog
from kerasbench.plan.cases import Case
from kerasbench.plan.catalog import Selected
from kerasbench.plan.stages import shares_of, stages_of
from kerasbench.processes import block
from kerasbench.processes.block import BlockMember
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.protocol.columns import CPU, Device, processors
from kerasbench.protocol.measurement import Measurement, Slice
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results.run import RunConfig, Trial
from kerasbench.runs import sizes, turns
from kerasbench.runs.launcher import BriefPolicy
from kerasbench.runs.records import trial_record, trial_request

LIMITS = Limits(300.0, "this benchmark's limit of 300 s")
STEPS = TrialPlan().of_kind("sweep")  # steps alone, for as long as a whole block's slices may take


@dataclass(frozen=True)
class Column:
    """One column: a workload of a scenario on a backend's CPU."""

    name: str
    selected: Selected
    backend: str

    def case(self, plan: TrialPlan) -> Case:
        return Case(self.selected, self.backend, Device(CPU), plan=plan)


def chosen(pattern: str) -> list[Selected]:
    """Return a scenario's workloads by its name, or those of a file."""
    return catalog.select([pattern], sys.executable, installed()[0])


def blocks(
    columns: list[Column], count: int, plan: TrialPlan = STEPS, before: Callable[[], None] = lambda: None
) -> dict[str, Measured]:
    """Measure so many blocks of all columns and return what each column's trials amount to, by its name.

    ``before`` is called before each block.
    """
    trials: dict[str, list[tuple[Trial, Measurement]]] = {column.name: [] for column in columns}
    plans = dict.fromkeys(trials, plan)
    for index in range(1, count + 1):
        before()
        orders = turns.draw_orders(f"0/{index}")
        for column, (outcome, measured) in zip(
            columns, launched(columns, plans, orders, 1 if index <= 3 else len(columns)), strict=True
        ):
            trial = trial_record(column.case(plans[column.name]), index, outcome, index)
            trials[column.name].append((trial, measured))
            plans[column.name] = sizes.freeze(plans[column.name], measured)
    return {name: Measured(measured, None) for name, measured in trials.items()}


def launched(
    columns: Sequence[Column],
    plans: Mapping[str, TrialPlan],
    orders: turns.Orders,
    at_once: int,
) -> list[tuple[Outcome, Measurement]]:
    """Run one block, which ends as a run's blocks do, and return what columns measured.

    Raises:
        RuntimeError: a column has failed: a benchmark has no use for half of a block.
    """
    workload = columns[0].selected.workload
    plan = replace(plans[columns[0].name], stages=stages_of(plans[columns[0].name], workload))
    cases = [column.case(plans[column.name]) for column in columns]
    in_full = [replace(case.plan, stages=stages_of(case.plan, workload)) for case in cases]
    requests = [trial_request(case, whole, RunConfig()) for case, whole in zip(cases, in_full, strict=True)]
    members = [BlockMember(sys.executable, request, LIMITS) for request in requests]
    shares = shares_of(plan, workload)
    load_limits = [load.limit_of(Device(CPU), None, 0.0, processors(), os.cpu_count() or 1)] * len(columns)

    class Policy(BriefPolicy):
        def orders(self, columns: int) -> Iterator[Sequence[int]]:
            return orders(columns)

        def enough(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> bool:
            return turns.enough(plan, shares, stage, load.judged(stage, slices, load_limits))

    policy = Policy(plan, workload)
    outcomes, measured = [], {}
    for place, outcome in enumerate(block.measure(members, policy, lambda event: None, at_once, {})):
        if outcome is None or outcome.measurement is None:
            raise RuntimeError(f"{columns[place].name}: {outcome and outcome.failure}")
        outcomes.append(outcome)
        measured[place] = outcome.measurement
    return list(zip(outcomes, load.mark(measured, load_limits).values(), strict=True))


def step_ms(column: Column, plan: TrialPlan) -> float:
    """Return the step that a trial by itself reads, in ms."""
    ((_, measured),) = launched([column], {column.name: plan}, turns.draw_orders("0"), 1)
    return measured.median_ns["train"] / 1e6


def by_block(a: Measured, b: Measured) -> list[LogEstimate]:
    """Return the ratio of the steps of two columns in each block, as if there were no other block."""
    ratios = (
        estimate_ratio(Measured([mine], None), Measured([other], None), STEADY)
        for mine, other in zip(a.trials, b.trials, strict=True)
    )
    return [found for found in ratios if found is not None]


def spread(a: Measured, b: Measured, metric: str) -> tuple[float, float] | None:
    """Return by what a ratio's logarithm scatters within blocks, as slices explain, and between them.

    Standard deviations; None for fewer than two blocks, or where they have no slices.
    """
    blocks = divide_blocks(a, b, metric)
    errors = [block.error for block in blocks if block.error is not None]
    if len(blocks) < 2 or len(errors) < len(blocks):
        return None
    within = statistics.fmean(error**2 for error in errors)
    return math.sqrt(within), math.sqrt(max(0.0, variance([block.log for block in blocks]) - within))
