"""Real trials in real children, as short as they can be, by themselves or side by side."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kerasbench import sources, variants
from kerasbench.analysis.parity import judge_parity
from kerasbench.plan import catalog
from kerasbench.plan.stages import shares_of, stages_of
from kerasbench.processes import block
from kerasbench.processes.block import BlockMember
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.processes.variables import NOTHING
from kerasbench.protocol.columns import DEFAULT, Column, Device, Options
from kerasbench.protocol.measurement import Measurement, Slice
from kerasbench.protocol.messages import Failure
from kerasbench.protocol.requests import ModelConfig, TrialPlan, TrialRequest
from kerasbench.protocol.stages import PARTS
from kerasbench.runs import turns
from kerasbench.runs.launcher import BriefPolicy
from tests import made

# Another keras than the tests themselves have, so that what was measured tells which environment it was measured in.
OTHER_KERAS = "keras==3.15.0"
# Two slices of at least a millisecond in each stage: enough to go through every phase, and to measure nothing.
SHORTEST = TrialPlan(
    slice_ns=1_000_000, warmup_min_ns=0, warmup_max_ns=1, predict_warmup_ns=0, slices_max_ns=1, min_cycles=2
)
STEPS_ALONE = SHORTEST.of_kind("sweep")


def fitted(plan: TrialPlan, **workload: Any) -> TrialPlan:
    """Return a plan with those of its stages that a workload has, of which this is said, as a run has them measured."""
    return dataclasses.replace(plan, stages=stages_of(plan, made.changed(made.workload(), **workload)))


CALLS = fitted(SHORTEST.of_kind("calls"))
TAKEN_APART = dataclasses.replace(SHORTEST, stages=(*SHORTEST.stages, PARTS))


def member(
    file: Path, backend: str, python: str = sys.executable, memory_bytes: int | None = None, **different: Any
) -> BlockMember:
    file_hash = different.pop("file_hash", "") or sources.of(file).hash()
    request = TrialRequest(file.stem, str(file), file_hash, "default", backend, Device("cpu"), 0, "synthetic", SHORTEST)
    limits = Limits(120.0, "--timeout 120 s", memory_bytes)
    return BlockMember(python, dataclasses.replace(request, **different), limits)


def run(
    file: Path,
    backend: str,
    options: Options = DEFAULT,
    memory_bytes: int | None = None,
    python: str = sys.executable,
    kept: Mapping[str, str] = NOTHING,
    model_config: ModelConfig | None = None,
    **different: Any,
) -> Outcome:
    """Run one trial: a block of a single column. ``model_config`` is said of a saved model, which has one workload."""
    if model_config is not None:
        source = sources.of(file)
        config = source.config(model_config)
        different |= {"model_config": config, "workload": config.workload, "file_hash": source.hash(config)}
        file = Path(source.place)
    if variants.has(options, "replaces"):
        different["baseline_hash"] = catalog.baselines(file)[backend]
    (outcome,) = together([member(file, backend, python, memory_bytes, options=options, **different)], kept=kept)
    return outcome


def together(entrants: Sequence[BlockMember], at_once: int = 1, kept: Mapping[str, str] = NOTHING) -> list[Outcome]:
    policy = LeastPolicy(entrants[0].request.plan, made.workload())
    return [made.known(outcome) for outcome in block.measure(entrants, policy, lambda event: None, at_once, kept)]


class LeastPolicy(BriefPolicy):
    """Stages end as soon as they may, unless they are to last."""

    def orders(self, columns: int) -> Iterator[Sequence[int]]:
        return turns.draw_orders("real")(columns)

    def enough(self, stage: str, slices: Mapping[int, Sequence[Slice]]) -> bool:
        shares = shares_of(self.plan, self.workload) if self.plan.fixed_time else {}
        return turns.enough(self.plan, shares, stage, [*slices.values()])


def builtin(
    scenario: str, workload: str, backend: str, options: Options = DEFAULT, plan: TrialPlan = SHORTEST
) -> Outcome:
    file = catalog.builtin_folder() / f"{scenario}.py"
    return run(file, backend, options=options, workload=workload, plan=plan)


def measured(outcome: Outcome) -> Measurement:
    assert outcome.failure is None, outcome.failure
    return made.known(outcome.measurement)


def disagreements(measured: Mapping[str, Measurement] | Mapping[Column, Measurement]) -> dict[Column, Failure]:
    """What parity says of columns, or of backends on the CPU."""
    columns = {Column(key, "cpu") if isinstance(key, str) else key: trial for key, trial in measured.items()}
    return judge_parity({column: ("cpu", trial) for column, trial in columns.items()})
