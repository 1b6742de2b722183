"""What only torch's module does, with a torch that is made of a few functions."""

import sys
import types
import warnings
from collections.abc import Callable

import pytest

from kerasbench.backends import torch
from kerasbench.protocol.columns import DEFAULT, Device

# pytorch issues 77764 and 106594, and a warning of torch's that is about something else (roboflow/rf-detr issue 29).
CHOLESKY = (
    "The operator 'aten::linalg_cholesky_ex.L' is not currently supported on the MPS backend and will fall back to run "
    "on the CPU. This may have performance implications. (Triggered internally at "
    "/Users/runner/pytorch/aten/src/ATen/mps/MPSFallback.mm:11.)"
)
SGN = (
    "The operator 'aten::sgn.out' is not currently supported on the MPS backend and will fall back to run on the CPU. "
    "This may have performance implications. (Triggered internally at "
    "/Users/runner/pytorch/aten/src/ATen/mps/MPSFallback.mm:13.)"
)
MESHGRID = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."


class Mps:
    """A torch that warns as the real one does: of its kind once in a process, unless it is told to warn always."""

    def __init__(self) -> None:
        self.always = False
        self.warned = False

    def fall_back(self, *texts: str) -> None:
        for text in texts:
            if self.always or not self.warned:
                self.warned = True
                warnings.warn(text, UserWarning, stacklevel=1)


@pytest.fixture
def mps(monkeypatch: pytest.MonkeyPatch) -> Mps:
    """The Apple GPU, with fallbacks allowed, in a process that has had its one warning before."""
    found = Mps()
    found.warned = True
    module = types.ModuleType("torch")
    module.set_warn_always = lambda on: setattr(found, "always", on)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(torch, "_default_device", lambda: "mps")
    monkeypatch.setenv(torch.FALLBACK, "1")
    return found


def test_what_falls_back_is_counted_by_its_name(mps: Mps) -> None:
    counted = torch.fallbacks(lambda: mps.fall_back(CHOLESKY, SGN, MESHGRID, SGN))
    assert counted == {"aten::linalg_cholesky_ex.L": 1, "aten::sgn.out": 2}
    assert not mps.always


def test_a_step_without_fallbacks_has_none(mps: Mps) -> None:
    assert torch.fallbacks(lambda: mps.fall_back(MESHGRID)) == {}


def test_torch_warns_as_before_after_a_step_that_failed(mps: Mps) -> None:
    def fail() -> None:
        raise RuntimeError("MPS backend out of memory")

    with pytest.raises(RuntimeError):
        torch.fallbacks(fail)
    assert not mps.always


@pytest.mark.parametrize(("device", "value"), [("mps", None), ("mps", "0"), ("cpu", "1"), ("cuda:0", "1")])
@pytest.mark.usefixtures("mps")
def test_no_step_is_run_where_nothing_may_fall_back(
    device: str, value: str | None, monkeypatch: pytest.MonkeyPatch, never: Callable[[], None]
) -> None:
    monkeypatch.setattr(torch, "_default_device", lambda: device)
    monkeypatch.delenv(torch.FALLBACK)
    if value is not None:
        monkeypatch.setenv(torch.FALLBACK, value)
    assert torch.fallbacks(never) == {}


@pytest.mark.parametrize(("platform", "reaches"), [("mps", True), ("cpu", False), ("cuda", False)])
def test_the_switch_reaches_trials_on_the_apple_gpu_alone(
    platform: str, reaches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(torch.FALLBACK, "1")
    assert (torch.FALLBACK in torch.environment(Device(platform), DEFAULT, "")) is reaches
    monkeypatch.delenv(torch.FALLBACK)
    assert torch.FALLBACK not in torch.environment(Device(platform), DEFAULT, "")


def test_memory_grows_on_a_gpu() -> None:
    assert torch.memory_grows(Device("cuda")) is True
    assert torch.memory_grows(Device("cpu")) is None
