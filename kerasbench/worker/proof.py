"""Prove where a model really ran: the weights, the optimizer's state, an output, and the backend's own view."""

from typing import Any

from kerasbench.backends import Backend
from kerasbench.devices import CPU, Device
from kerasbench.wire import Code, Failure, Proof
from kerasbench.worker.failure import TrialFailure


def gather(backend: Backend, model: Any, output: Any) -> Proof:
    """Ask every floating-point weight and optimizer variable, an output, and the backend where they live.

    Integer variables (step counters, seeds) are left out: TensorFlow keeps them in host memory by design.
    """
    return Proof(
        weights=_places(backend, model.variables),
        optimizer=_places(backend, model.optimizer.variables),
        output=[backend.placement(output)],
        runtime=backend.runtime_view(),
    )


def check(asked: Device, got: Proof) -> None:
    """Raise TrialFailure (wrong-device) unless everything lives on the kind of device that was asked for."""
    for what in ("weights", "optimizer", "output", "runtime"):
        strays = [place for place in getattr(got, what) if place.startswith(CPU) != (asked.platform == CPU)]
        if strays:
            cause = f"asked for {asked.platform}:{asked.index}, but {what} lived on {', '.join(strays)}"
            remedy = f"--device {CPU} measures the CPU; no row is shown for a device that was not used"
            raise TrialFailure(Failure(Code.WRONG_DEVICE, cause, remedy, "finish"))


def _places(backend: Backend, variables: list[Any]) -> list[str]:
    floating = [variable for variable in variables if "float" in str(variable.dtype)]
    return sorted({backend.placement(variable.value) for variable in floating})
