"""What a mode measures otherwise than a plain run: its ``Planner``, in ``modes/<name>/plan.py``. Here: a plain run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from kerasbench.analysis.cases import PREDICTED, PREDICTED_ONE, headline_of
from kerasbench.environments.interpreters import Interpreters
from kerasbench.events import OnEvent
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.requests import TrialPlan
from kerasbench.protocol.stages import FEED
from kerasbench.results.run import Run, RunConfig
from kerasbench.runs.rows import Decision, RowProgress
from kerasbench.variants.variant import Refusal

Own = TypeVar("Own")


class Planner(Generic[Own]):
    def __init__(self, config: RunConfig, settings: Own) -> None:
        self.config = config
        self.settings = settings  # what its mode alone was asked

    def with_interpreters(self, words: Any, chosen: Interpreters, on_event: OnEvent) -> tuple[RunConfig, Interpreters]:
        """Return the configuration with the interpreters that run it; KerasbenchError: they could not be made.

        ``words``: the mode's settings as they were given.
        """
        return self.config, chosen

    def require(self, scenarios: Sequence[Selected]) -> None:
        """Raise UsageError where nothing of it can be measured in this mode."""

    def options(self, case: Case, devices: Sequence[Device], processors: int) -> list[Options]:
        """Return those with which a case is measured; ``devices``: all that its backend is measured on."""
        return list(self.config.options)

    def plan(self, options: Options) -> TrialPlan:
        """Where feeds are compared, each is measured by itself, too."""
        plan = self.config.effort.plan
        compares = any("feed" in other for other in self.config.options) and plan.agenda.usual
        return replace(plan, stages=(*plan.stages, FEED)) if compares else plan

    def refusal(self, selected: Selected) -> Refusal:
        """Return why this mode cannot measure a workload, and what to do."""
        return None

    def prepare(self, planned: Plan, interpreters: Interpreters, on_event: OnEvent) -> Plan:
        return planned

    def metric(self, row: RowProgress) -> str:
        """Return the metric that a row goes on for."""
        workload = row.cases[0].selected.workload
        if not row.trials and workload.predicts_only:
            return PREDICTED if workload.predicts_batches else PREDICTED_ONE
        return headline_of(row.trials)

    def leaves(
        self, row: RowProgress, cases: Sequence[Case], stage: str, slices: Mapping[int, Sequence[Slice]]
    ) -> Collection[int]:
        """Return which columns of a block measure nothing more, by their slices of a stage so far."""
        return ()

    def decide(self, row: RowProgress, usual: Decision) -> Decision:
        """Decide before the first round and after each: whether a row goes on, with which cases, measuring what."""
        return usual

    def more(self, planned: Plan, record: Run, spent_s: float) -> Plan | None:
        """Return the plan of the second part of a run, if there is one."""
        return None

    @property
    def is_second_part(self) -> bool:
        return False
