"""How much the columns of a row do besides their slices, by its first steps, and what later trials take over."""

import dataclasses
import math
from collections.abc import Mapping, Sequence

from kerasbench.plan.stages import has_short_epochs, stages_of
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import OUTPACED, Code, Failure
from kerasbench.protocol.requests import Sizes, TrialPlan, counts_epochs
from kerasbench.protocol.stages import ALL, BATCH, EPOCH, ONE, PILOT, STAGES, TRAIN, standing

NS_PER_S = 1e9
Steps = Mapping[int, Sequence[int]]  # of each column, its place among the members: what its first steps took, in ns

# What a row has whose steps are quick.
PARITY_STEPS = 6  # enough to see another gradient, too few for chaos at aggressive learning rates
LEARN_STEPS = 65  # the same for every backend, so that losses can be laid side by side
LEARN_SAMPLES = 16_384  # at most this many samples in those steps, so that a full batch of 52,500 takes 6 steps
WARMUP_CALLS = 8  # of each sort of prediction: one of each input
EVALUATED, TESTED = 1000, 1000  # samples; a pass may have as many as the publication tested

# Shares of the time that a column may take (TrialPlan.column_max_ns). The rest is for its start and slices of steps.
LEARN = SILENCED = 1 / 8
EVALUATE = 1 / 12
LEAST_SILENCED = 2  # a second model is built and compiled for more than one loss

# What phases have of steps, where they have least.
BY_ITSELF_NS = 30_000_000  # what a step by itself takes, at the end of a `fit` and after a wait, and none of an epoch's
FORWARD = 0.4  # of a step is its prediction: a third of the operations, with some margin
FORWARD_NS = 1_000_000  # and so much has one at least, of Python and the framework
SINGLE = 4.0  # a sample by itself takes so many times its share of a batch, at most all of it
EPOCH_STEPS = 2  # of a short epoch
PARTS_STEPS = 8  # a cycle of three ways, each with what warms it up

PILOTS = 5  # steps of each column, where the first one seems slow: a hiccup shall not make a row do less
SLOW_NS = 1_000_000_000  # so long is no hiccup


Units = Mapping[str, float]  # in ns, by Stage.unit; at most


def units_of(workload: WorkloadDescription, step_ns: float, pass_batches: int = 1) -> Units:
    """By a column's step; of a model that is not trained, by a prediction."""
    step_ns = max(0.0, step_ns - BY_ITSELF_NS)
    size = workload.predicted
    forward = step_ns if workload.predicts_only else FORWARD * step_ns * min(1.0, size / workload.batch)
    forward = max(FORWARD_NS, forward)
    validation = max(FORWARD_NS, FORWARD * step_ns) * math.ceil(workload.validation / workload.batch)
    partial = step_ns * (workload.train % workload.batch) / workload.batch
    return {
        "step": step_ns,
        "train": step_ns * workload.steps + validation if counts_epochs(workload.steps) else step_ns,
        "epoch": EPOCH_STEPS * step_ns + partial + validation,
        "single": forward * min(1.0, SINGLE / size),
        "forward": forward,  # of a batch
        "whole": pass_batches * forward,
        "parts": PARTS_STEPS * step_ns,
        "text": forward * workload.new_tokens,
    }


def lead_ns(stage: str, units: Units, calls: int) -> float:
    """``calls``: how many of them warm a prediction up."""
    lead = STAGES[stage].lead
    return (calls if lead is None else lead) * units[STAGES[stage].unit]


def sizes_of(plan: TrialPlan, workload: WorkloadDescription, steps_ns: Steps, least: int = 1) -> Sizes | None:
    """None: one more step would show more. ``least``: of how many steps a column's quickest is taken."""
    slowest_ns = max(min(of_column) for of_column in steps_ns.values())
    sizes = _sizes(plan, workload, slowest_ns)
    does_all = dataclasses.replace(sizes, step_ns=0) == _sizes(plan, workload, 0)
    steps = min(map(len, steps_ns.values()))
    is_enough = does_all or (slowest_ns >= SLOW_NS and steps >= least) or steps >= PILOTS
    return sizes if is_enough else None


def left_behind(called: Sequence[str], least: Sequence[int], steps_ns: Steps) -> dict[int, Failure]:
    """Return the columns that another has outpaced by then: they would cost a quick look more than they tell."""
    quickest_ns = {index: min(of_column) for index, of_column in steps_ns.items()}
    first = min(quickest_ns, key=quickest_ns.__getitem__)
    left = {}
    for index, ns in quickest_ns.items():
        if len(steps_ns[index]) >= least[index] and ns >= SLOW_NS and ns > OUTPACED * quickest_ns[first]:
            cause = f"a step takes {ns / NS_PER_S:.1f} s, more than {OUTPACED} times as long as on {called[first]}"
            left[index] = Failure(Code.SLOW, cause, "leave --quick out: it is measured then", PILOT)
    return left


def _sizes(plan: TrialPlan, workload: WorkloadDescription, step_ns: int) -> Sizes:
    def fit(share: float, unit_ns: float, most: int, least: int = 1) -> int:
        return max(least, min(most, int(share * plan.column_max_ns / unit_ns))) if unit_ns else most

    units, cycles = units_of(workload, step_ns), plan.min_cycles
    roomier = 2 if workload.predicts_only else 1
    predict, passes = roomier * STAGES[ALL].room, (STAGES[ALL].lead or 0) + cycles
    learned = max(PARITY_STEPS - 1, min(LEARN_STEPS - 1, LEARN_SAMPLES // workload.batch))
    learned = fit(LEARN, units["step"], learned)
    silenced = fit(SILENCED, units["step"], PARITY_STEPS, least=0)
    calls = fit(predict / 2, units["forward"], WARMUP_CALLS, least=2)
    size = workload.predicted
    stages, room_ns = stages_of(plan, workload), roomier * plan.column_max_ns
    kept = {standing(stages)}
    if TRAIN in stages and EPOCH not in stages and has_short_epochs(workload):
        kept |= {ONE, BATCH}  # what a run for predictions alone is about
    return Sizes(
        step_ns=step_ns,
        parity_steps=1 + min(PARITY_STEPS - 1, learned),
        learn_steps=1 + learned,
        silenced_steps=silenced if silenced >= LEAST_SILENCED else 0,
        evaluated_batches=fit(EVALUATE / 2, units["forward"], math.ceil(EVALUATED / workload.batch)),
        pass_batches=fit(predict / passes, units["forward"], math.ceil((workload.test or TESTED) / size)),
        warmup_calls=calls,
        left_out=[
            name
            for name, stage in STAGES.items()
            if name in stages
            and name not in kept
            and lead_ns(name, units, calls) + cycles * units[stage.unit] > stage.room * room_ns
        ],
    )


# Of the warm-up of the first: what kept that one from being steady was mostly the machine, which no warm-up changes.
WARMUP_SHARE = 0.5


def freeze(plan: TrialPlan, measurement: Measurement) -> TrialPlan:
    training = measurement.training
    if plan.steps_per_slice is not None or training is None:
        return plan
    counts, steps = training.warmup.count, training.steps_per_slice
    largest = max(counts, default=0)  # K, before it was corrected
    slices = math.ceil(WARMUP_SHARE * largest * counts.count(largest) / steps)
    return dataclasses.replace(plan, steps_per_slice=steps, warmup_slices=slices)
