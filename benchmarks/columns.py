"""Blocks of columns that a benchmark chooses, in place of a plan's rows: the same case twice, or beside a slowed copy.

What is measured and how is the package's own (processes/block.py, runs/schedule.py, analysis/ratios.py).
"""

import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kerasbench.analysis.cases import CaseSummary
from kerasbench.plan import catalog
from kerasbench.plan.catalog import Selected
from kerasbench.processes import block
from kerasbench.processes.block import BlockMember, BlockPolicy
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.protocol.columns import CPU, Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.results.record import TrialRecord
from kerasbench.runs import schedule, sizes
from kerasbench.runs.rounds import freeze

LIMITS = Limits(300.0, "this benchmark's limit of 300 s")
STEPS = Protocol(kind="sweep")  # steps alone, for as long as a whole block's slices may take


@dataclass(frozen=True)
class Column:
    """One column: a workload of a scenario on a backend's CPU."""

    name: str
    selected: Selected
    backend: str

    def request(self, protocol: Protocol) -> TrialRequest:
        entry = self.selected.entry
        return TrialRequest(
            scenario=entry.name,
            file=str(entry.file.resolve()),
            file_hash=entry.file_hash,
            workload=self.selected.workload.name,
            backend=self.backend,
            device=Device(CPU),
            seed=0,
            data="synthetic",
            protocol=protocol,
        )


def chosen(pattern: str) -> list[Selected]:
    """Return a scenario's workloads by its name, or those of a file."""
    return catalog.select([pattern], sys.executable, "jax")


def blocks(
    columns: list[Column],
    count: int,
    protocol: Protocol = STEPS,
    seed: int = 0,
    before: Callable[[], None] = lambda: None,
) -> dict[str, CaseSummary]:
    """Measure so many blocks of all columns and return what each column's trials amount to, by its name.

    ``before`` is called before each block.
    """
    *_, found = itertools.islice(growing(columns, protocol, seed, before), count)
    return found


def growing(
    columns: list[Column], protocol: Protocol = STEPS, seed: int = 0, before: Callable[[], None] = lambda: None
) -> Iterator[dict[str, CaseSummary]]:
    """Measure one block after another; after each, yield what each column's trials amount to by then, by its name."""
    trials: dict[str, list[tuple[TrialRecord, Measurement]]] = {column.name: [] for column in columns}
    protocols = dict.fromkeys(trials, protocol)
    for index in itertools.count(1):
        before()
        for name, trial, measured in held(columns, protocols, index, f"{seed}/{index}"):
            trials[name].append((trial, measured))
            protocols[name] = freeze(protocols[name], measured)
        yield {name: CaseSummary(list(known), None) for name, known in trials.items()}


def held(
    columns: list[Column], protocols: Mapping[str, Protocol], index: int, seed: str
) -> Iterator[tuple[str, TrialRecord, Measurement]]:
    """Hold one block; raise RuntimeError where a column fails, for a benchmark has no use for half of one."""
    for column, outcome in zip(columns, launched(columns, protocols, seed, index <= 3), strict=True):
        if outcome is None or outcome.measurement is None:
            raise RuntimeError(f"{column.name}: {outcome and outcome.failure}")
        trial = TrialRecord(
            round=index,
            scenario=column.selected.entry.name,
            workload=column.selected.workload.name,
            backend=column.backend,
            device=Device(CPU),
            wall_ns=outcome.wall_ns,
            phases=outcome.phases,
            measurement=outcome.measurement,
            protocol=protocols[column.name].kind,
            block=index,
        )
        yield column.name, trial, outcome.measurement


def launched(
    columns: Sequence[Column], protocols: Mapping[str, Protocol], seed: str, alone: bool
) -> Sequence[Outcome | None]:
    """Run one block and return what became of each column."""
    entrants = [BlockMember(sys.executable, column.request(protocols[column.name]), LIMITS) for column in columns]
    protocol = protocols[columns[0].name]
    workload = columns[0].selected.workload
    rules = BlockPolicy(
        schedule.draw_orders(seed),
        partial(schedule.enough, protocol, schedule.shares(protocol, workload)),
        partial(sizes.sizes_of, protocol, workload),
        lambda: True,
    )
    return block.measure(entrants, rules, lambda event: None, alone)


def one(column: Column, protocol: Protocol) -> Outcome:
    """Run one trial by itself; raise RuntimeError where it fails."""
    (outcome,) = launched([column], {column.name: protocol}, "0", True)
    if outcome is None or outcome.measurement is None:
        raise RuntimeError(f"{column.name}: {outcome and outcome.failure}")
    return outcome


def alone(column: Column, count: int, protocol: Protocol = STEPS) -> list[float]:
    """Return the steps, in ms, of so many trials of one column, each by itself."""
    summary = blocks([column], count, protocol)[column.name]
    return [measured.training.median_ns / 1e6 for _, measured in summary.trials if measured.training]


def shorter(protocol: Protocol, slices_s: float) -> Protocol:
    """Return the protocol with slices that take so long in all."""
    return dataclasses.replace(protocol, slices_max_ns=int(slices_s * 1e9))
