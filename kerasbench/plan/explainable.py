"""Which regimes can be explained: a step is taken apart inside an epoch, so the epoch has to hold blocks of steps."""

from collections.abc import Sequence

from kerasbench.errors import UsageError
from kerasbench.exchange.messages import Code, Failure
from kerasbench.exchange.requests import MIN_STEPS_FOR_BLOCKS, counts_epochs
from kerasbench.plan.catalog import Selected


def refusal(selected: Selected) -> Failure | None:
    """Return why a regime's epochs cannot be taken apart, None where they can."""
    steps = selected.regime.steps
    if selected.regime.predicts_only:
        cause = f"{selected.label} is not trained, so it has no step to be taken apart"
        return Failure(Code.UNSUPPORTED, cause, "compile the model, and save it again")
    if not counts_epochs(steps):
        return None
    cause = f"too short to be taken apart: an epoch has {steps} of the {MIN_STEPS_FOR_BLOCKS} steps that it takes"
    return Failure(Code.UNSUPPORTED, cause, _instead(selected))


def require_one(scenarios: Sequence[Selected]) -> None:
    """Raise UsageError where none of the regimes can be explained."""
    if all(counts_epochs(one.regime.steps) for one in scenarios):
        named = ", ".join(f"{one.label} ({one.regime.steps})" for one in scenarios)
        raise UsageError(
            f"nothing here can be explained: it takes epochs of {MIN_STEPS_FOR_BLOCKS} steps or more, and these have "
            f"fewer: {named}; {_instead(scenarios[0])}"
        )


def _instead(selected: Selected) -> str:
    return f"`kerasbench run --scenario {selected.label}` measures its epochs"
