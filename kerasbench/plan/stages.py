"""Which stages the trials of a case measure: decided here, once, for parent and child."""

from collections.abc import Collection

from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.protocol.requests import TrialPlan, counts_epochs
from kerasbench.protocol.stages import EPOCH, FEED, ONE, OWN, PARTS, STAGES, TRAIN, Agenda, Stage


def stages_of(plan: TrialPlan, workload: WorkloadDescription, left_out: Collection[str] = ()) -> tuple[str, ...]:
    """Return the stages of a plan that a workload has, in the order of a trial.

    A model that is not trained has all predictions in their place. ``left_out``: what a trained model's next block does
    not measure.
    """
    agenda = plan.agenda.of(trains=not workload.predicts_only)
    if agenda is not plan.agenda:
        return tuple(stage for stage in agenda.shares if _has(agenda, workload, STAGES[stage]))
    left_out = left_out if agenda.trains else ()
    present = (stage for stage in plan.stages if _has(agenda, workload, STAGES[stage]))
    return tuple(stage for stage in present if stage not in left_out)


def shares_of(plan: TrialPlan, workload: WorkloadDescription) -> dict[str, float]:
    """Return the shares of a column's time: what a workload lacks is left to the steps, or without these to all.

    What a plan leaves out of its kind keeps its share: steps are as precise without it.
    """
    agenda = plan.agenda.of(trains=not workload.predicts_only)
    chosen = agenda.shares if agenda.trains else stages_of(plan, workload)
    present = {stage: agenda.shares[stage] for stage in chosen if _has(agenda, workload, STAGES[stage])}
    whole = sum(present.values())
    if TRAIN in present:
        return present | {TRAIN: present[TRAIN] + 1 - whole}
    return {stage: share / whole for stage, share in present.items()}


def has_short_epochs(workload: WorkloadDescription) -> bool:
    return not counts_epochs(workload.steps) and not workload.streams


def _has(agenda: Agenda, workload: WorkloadDescription, stage: Stage) -> bool:
    if workload.loops and stage.name != TRAIN:
        return False
    if stage.phase == "generate":
        return workload.new_tokens > 0 and workload.own_generate == (stage.way == OWN)
    if stage.name == EPOCH:
        return has_short_epochs(workload)
    if stage.name == PARTS:
        return not counts_epochs(workload.steps)
    if stage.name == FEED:
        return has_short_epochs(workload)
    # At a size of its own a model predicts batches of that size alone.
    return (
        workload.predicts_batches
        if stage.batched
        else not (agenda.sized and stage.name == ONE and workload.predicts_batches)
    )
