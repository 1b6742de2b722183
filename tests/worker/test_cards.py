"""Which cards CUDA shows to a process, asked of a driver that is made of a few functions."""

import ctypes
import types
from collections.abc import Sequence
from typing import Any

import pytest

from kerasbench.worker import checks

ONE, TWO = "8f2a0b1c-1111-2222-3333-444455556666", "8f2affff-1111-2222-3333-444455556666"
NO_DEVICE = 100  # cuda.h, CUDA_ERROR_NO_DEVICE


class Driver(types.SimpleNamespace):
    """What of libcuda is asked; ``fails`` names the function that answers with an error."""

    def __init__(self, uuids: Sequence[str], fails: str = "", lacks: str = "") -> None:
        super().__init__()
        self._uuids, self._fails = [bytes.fromhex(one.replace("-", "")) for one in uuids], fails
        self._begun = False
        for name in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid_v2"):
            if name != lacks:
                setattr(self, name, self._answering(name))

    def _answering(self, name: str) -> Any:
        def answer(*arguments: Any) -> int:
            assert self._begun or name == "cuInit"
            if name == self._fails:
                return NO_DEVICE
            getattr(self, f"_{name}")(*arguments)
            return 0

        return answer

    def _cuInit(self, flags: int) -> None:  # noqa: N802
        assert flags == 0
        self._begun = True

    def _cuDeviceGetCount(self, count: Any) -> None:  # noqa: N802
        count._obj.value = len(self._uuids)

    def _cuDeviceGet(self, device: Any, number: int) -> None:  # noqa: N802
        device._obj.value = number + 40  # a handle, not the number

    def _cuDeviceGetUuid_v2(self, told: Any, device: Any) -> None:  # noqa: N802
        ctypes.memmove(told._obj, self._uuids[device.value - 40], 16)


def installed(monkeypatch: pytest.MonkeyPatch, driver: Driver | None) -> None:
    def load(name: str) -> Driver:
        assert name == "libcuda.so.1"
        if driver is None:
            raise OSError("libcuda.so.1: cannot open shared object file: No such file or directory")
        return driver

    monkeypatch.setattr(ctypes, "CDLL", load)


@pytest.mark.parametrize("uuids", [[], [ONE], [TWO, ONE]])
def test_the_uuids_are_in_the_order_of_cuda(uuids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Driver(uuids))
    assert checks.visible_cards() == uuids


@pytest.mark.parametrize(
    "driver",
    [
        None,
        *(Driver([ONE], fails=name) for name in ("cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid_v2")),
        Driver([ONE], lacks="cuDeviceGetUuid_v2"),
        Driver(["0" * 32]),
    ],
)
def test_a_driver_that_does_not_tell_shows_none(driver: Driver | None, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, driver)
    assert checks.visible_cards() == []
