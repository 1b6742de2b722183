"""Prove where a model really ran: the weights, the optimizer's state, an output, and the backend's own view."""

from typing import Any

from kerasbench.backends import Backend
from kerasbench.exchange.devices import CPU, CUDA, Device
from kerasbench.exchange.measurement import Proof
from kerasbench.exchange.messages import Code, Failure
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.nested import leaves
from kerasbench.worker.trial import cards


def gather(backend: Backend, device: Device, model: Any, output: Any) -> Proof:
    """Ask every floating-point weight and optimizer variable, an output, and the backend where they live.

    Integer variables (step counters, seeds) are left out: TensorFlow keeps them in host memory by design.
    """
    return Proof(
        weights=_places(backend, model.variables),
        optimizer=_places(backend, getattr(getattr(model, "optimizer", None), "variables", [])),
        output=sorted({backend.placement(tensor) for _, tensor in leaves(output)}),
        runtime=backend.runtime_view(),
        cards=cards.shown() if device.platform == CUDA else [],
    )


def check(asked: Device, got: Proof) -> None:
    """Raise TrialFailure (wrong-device) unless everything lives on the one device that was asked for.

    Which of several NVIDIA cards that is, the parent knows: it compares the one that CUDA shows with the one that it
    asked for.
    """
    for what in ("weights", "optimizer", "output", "runtime"):
        strays = [place for place in getattr(got, what) if place.startswith(CPU) != (asked.platform == CPU)]
        if strays:
            raise _failure(f"asked for {asked.platform}:{asked.index}, but {what} lived on {', '.join(strays)}")
    if asked.platform != CPU and len(got.runtime) > 1:
        raise _failure(f"asked for {asked.platform}:{asked.index} alone, but the process sees {', '.join(got.runtime)}")
    if len(got.cards) > 1:
        raise _failure(f"asked for {asked.platform}:{asked.index} alone, but CUDA shows {', '.join(got.cards)}")


def _failure(cause: str) -> TrialFailure:
    remedy = f"--device {CPU} measures the CPU; no row is shown for a device that was not used"
    return TrialFailure(Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))


def _places(backend: Backend, variables: list[Any]) -> list[str]:
    floating = [variable for variable in variables if "float" in str(variable.dtype)]
    return sorted({backend.placement(variable.value) for variable in floating})
