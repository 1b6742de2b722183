"""What others use of a card, asked of a driver's library that is made of a few functions. No card has seen it."""

import time
from typing import Any

import pytest

from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Slice
from kerasbench.worker import usage
from kerasbench.worker.usage import Meter

MS = 1_000_000
NOT_FOUND = 6  # nvml.h, NVML_ERROR_NOT_FOUND
UUID = "GPU-8f2a0b1c-1111-2222-3333-444455556666"


class Nvml:
    """What of NVML is asked: who is on the card, and samples of (process, ms ago, percent)."""

    def __init__(self, computing: list[int], drawing: list[int] | None = None) -> None:
        self.on_card = {"compute": computing, "graphics": drawing or []}
        self.samples: list[tuple[int, int, int]] = []
        self.config: Any = None

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, number: Any, card: Any) -> int:  # noqa: N802
        self.config, card._obj.value = number.value, 40 + number.value
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, card: Any) -> int:  # noqa: N802
        self.config, card._obj.value = uuid, 41
        return 0 if uuid == UUID.encode() else NOT_FOUND

    def nvmlDeviceGetComputeRunningProcesses_v3(self, card: Any, count: Any, found: Any) -> int:  # noqa: N802
        return self._list("compute", count, found)

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, card: Any, count: Any, found: Any) -> int:  # noqa: N802
        return self._list("graphics", count, found)

    def _list(self, kind: str, count: Any, found: Any) -> int:
        pids = self.on_card[kind]
        assert count._obj.value >= len(pids)
        count._obj.value = len(pids)
        for place, pid in enumerate(pids):
            found[place].pid = pid
        return 0

    def nvmlDeviceGetProcessUtilization(self, card: Any, found: Any, count: Any, since_us: Any) -> int:  # noqa: N802
        now_us = time.time_ns() // 1_000
        told = [one for one in self.samples if now_us - 1_000 * one[1] >= since_us.value]
        if not told:
            return NOT_FOUND
        count._obj.value = len(told)
        for place, (pid, ms_ago, percent) in enumerate(told):
            found[place].pid, found[place].at_us, found[place].multiprocessors = pid, now_us - 1_000 * ms_ago, percent
        return 0


def watched(nvml: object, visible: str = "1") -> usage.CardShare:
    return usage.watch_card(visible, lambda name: nvml)


def test_those_count_that_were_there_before() -> None:
    nvml = Nvml([7, 8])
    share = watched(nvml)
    assert nvml.config == 1
    assert share(100 * MS) == 0
    nvml.samples = [(7, 50, 30), (99, 50, 90), (8, 300, 10)]  # 99 came later: it may be this process
    assert share(100 * MS) == 0.3
    nvml.samples = [(7, 5_000, 30)]  # long before the slice
    assert share(100 * MS) == 0


def test_who_draws_counts_and_samples_of_one_moment_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)
    nvml = Nvml([7], [8])
    share = watched(nvml, UUID)
    nvml.samples = [(7, 50, 30), (8, 50, 20), (8, 60, 40)]
    assert share(100 * MS) == 0.5


def test_a_card_that_nobody_was_on_has_no_others() -> None:
    assert watched(Nvml([]))(100 * MS) == 0


@pytest.mark.parametrize("visible", ["", "GPU-8f2a", "MIG-1"])
def test_a_card_that_is_not_found_tells_nothing(visible: str) -> None:
    assert watched(Nvml([7]), visible)(100 * MS) is None


def test_without_a_driver_nothing_is_told() -> None:
    def missing(name: str) -> object:
        raise OSError(f"{name}: cannot open shared object file")

    assert usage.watch_card("0", missing)(MS) is None
    assert watched(object())(MS) is None  # a driver without these functions


def test_a_device_without_nvidia_is_not_asked() -> None:
    assert usage.card_share_reader(Device("cpu")) is usage.unknown_share
    assert usage.card_share_reader(Device("rocm")) is usage.unknown_share


@pytest.mark.parametrize(("share", "disturbed"), [(None, False), (0.0, False), (0.05, False), (0.06, True)])
def test_a_slice_is_disturbed_by_others_on_the_card(share: float | None, disturbed: bool) -> None:
    found = Meter(card=lambda ns: share).with_card(Slice(1, 100 * MS))
    assert (found.card_share, found.disturbed) == (share, disturbed)
