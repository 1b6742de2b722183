"""What a mode measures otherwise than a plain run: the ``Planner`` of ``modes/<name>/plan.py``. Here: a plain run."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kerasbench.analysis.cases import headline_of
from kerasbench.environments.interpreters import Interpreters
from kerasbench.events import OnEvent
from kerasbench.plan.cases import Case, Choices, Plan
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.stages import BATCH, ONE, TRAIN
from kerasbench.results.run import ResumeConfig, Run, RunConfig
from kerasbench.runs import schedule
from kerasbench.runs.rows import RowProgress


class Planner(Choices):
    def configured(self, asked: Any) -> RunConfig | ResumeConfig:
        """Take the settings of the mode; raise UsageError for a setting that means nothing."""
        raise NotImplementedError

    def with_interpreters(
        self, config: RunConfig | ResumeConfig, asked: Any, chosen: Interpreters, on_event: OnEvent
    ) -> tuple[RunConfig | ResumeConfig, Interpreters]:
        """Return it with the interpreters that run it; raise KerasbenchError where they could not be made."""
        return config, chosen

    def prepare(self, planned: Plan, interpreters: Interpreters, on_event: OnEvent) -> Plan:
        return planned

    def announce(self, planned: Plan) -> list[str] | None:
        """Return what to say of a run before it starts; None: which differences it will be able to see."""
        return None

    def stage(self, config: RunConfig, workload: WorkloadDescription) -> str:
        return (BATCH if workload.predicts_batches else ONE) if workload.predicts_only else TRAIN

    def metric(self, row: RowProgress, config: RunConfig) -> str:
        return headline_of(row.trials)

    def first_block(self, config: RunConfig, cases: Sequence[Case]) -> schedule.NextBlock:
        return schedule.first_block(config, cases)

    def decide(self, row: RowProgress, config: RunConfig) -> None:
        """Decide after a round whether the row goes on, with which cases, and what its next block measures."""

    def leaving(
        self, config: RunConfig, cases: Sequence[Case], stage: str, slices: Mapping[int, Sequence[Slice]]
    ) -> Collection[int]:
        """Return which columns of a block measure nothing more, by their slices of a stage so far."""
        return ()

    def more(self, planned: Plan, record: Run, spent_s: float) -> Plan | None:
        return None

    def has_more(self, config: RunConfig) -> bool:
        return False
