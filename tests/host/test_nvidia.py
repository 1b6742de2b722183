import inspect
import re
import sys
import threading
from collections.abc import Callable
from unittest.mock import Mock, call, patch

import pytest

from kerasbench.host import nvidia
from kerasbench.host.nvidia import Card, Sample
from tests.nvml import ONE, SLICE, TWO, FakeCard, Nvml

Install = Callable[..., Nvml]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a pynvml with these cards in the place of what is installed, and have it sampled without a pause."""
    monkeypatch.setattr(nvidia, "INTERVAL_S", 0.001)

    def put(*cards: FakeCard, old: bool = False) -> Nvml:
        nvml = Nvml(cards, "570.1", old)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        return nvml

    return put


def test_cards_and_their_driver_but_none_that_is_denied(install: Install) -> None:
    """NVML counts what a control group denies, and CUDA does not: card 0 of a job may be the machine's second."""
    nvml = install(FakeCard(ONE, denied=True), FakeCard(TWO, "NVIDIA GeForce RTX 3060"), FakeCard(SLICE))
    assert nvidia.cards() == [Card("NVIDIA GeForce RTX 3060", "570.1", TWO), Card("NVIDIA H200", "570.1", SLICE)]
    with nvidia.watch("0") as watched:
        assert watched.uuid == TWO
    assert nvml.opened == 0


@pytest.mark.parametrize(
    ("package", "driver", "missing"), [(Nvml(), None, False), (None, None, True), (None, OSError("not there"), False)]
)
def test_the_package_is_missed_beside_a_driver(package: Nvml | None, driver: OSError | None, missing: bool) -> None:
    with patch.dict(sys.modules, pynvml=package), patch("ctypes.CDLL", side_effect=driver) as load:
        assert nvidia.package_missing() is missing
    assert load.call_args in (None, call("libnvidia-ml.so.1"))


def test_a_card_is_meant_by_its_number_or_by_the_beginning_of_its_uuid() -> None:
    places = {"0": 0, ONE: 0, "gpu-8F2AF": 1, "GPU-8f2a": None, "2": None, "-1": None, "": None}  # both begin GPU-8f2a
    assert {name: nvidia.position(name, [ONE, TWO]) for name in places} == places


# The first two values are an L40S' with driver 595.80, the next an RTX 2080 Super's with 465.27 (captures in
# github.com/utkuozdemir/nvidia_gpu_exporter); the rest is written after nvml.h's bits.
@pytest.mark.parametrize(
    ("clock_mhz", "bits", "reasons"),
    [
        (300, 0x1, ["gpu_idle"]),
        (1395, 0x24, ["sw_power_cap", "sw_thermal_slowdown"]),
        (705, 0x48, ["hw_slowdown", "hw_thermal_slowdown"]),
        *((None, 0x0, []), (1410, None, []), (1410, 0x0, [])),
    ],
)
@pytest.mark.parametrize("old", [False, True])
def test_sample(clock_mhz: int, bits: int, reasons: list[str], old: bool, install: Install) -> None:
    nvml = install(FakeCard(readings=[(clock_mhz, bits)]), old=old)
    with nvidia.watch("0") as watched:
        nvml.wait_for(1)
    assert watched.samples[0] == Sample(clock_mhz, reasons)


def test_samples_come_in_one_after_the_other_while_a_trial_runs_and_no_longer(install: Install) -> None:
    nvml = install(FakeCard(readings=[(2000 + number, 0) for number in range(4)]))
    before = threading.active_count()
    with nvidia.watch("0") as watched:
        nvml.wait_for(4)
    assert [sample.sm_clock_mhz for sample in watched.samples][:4] == [2000, 2001, 2002, 2003]
    with pytest.raises(KeyboardInterrupt), nvidia.watch("0"):
        raise KeyboardInterrupt
    assert (threading.active_count(), nvml.opened) == (before, 0)


def test_a_card_that_tells_nothing_has_no_samples(install: Install) -> None:
    nvml = install(FakeCard(readings=[(None, None)], processes=None))
    with nvidia.watch("0") as watched:
        nvml.wait_for(2)
    assert (watched.samples, watched.neighbours, watched.uuid) == ([], [], ONE)


@pytest.mark.parametrize("nvml", [None, Nvml(driver=None), Nvml(), Nvml([FakeCard(name=None)])])
def test_nothing_is_known_of_what_is_not_there(nvml: Nvml | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert nvidia.cards() == []
    for name in ("1", SLICE):
        with nvidia.watch(name) as watched:
            assert watched == nvidia.CardReading()
        asked = (*nvidia.uuid_and_processes(name), nvidia.free_bytes(name), nvidia.is_exclusive(name))
        assert asked == ("", None, None, False)


def test_no_thread_to_be_had_is_no_end_of_the_run(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install(FakeCard(processes=[7]))
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
    with nvidia.watch("0") as watched:
        pass
    assert (watched.samples, watched.neighbours) == ([], [7])


def test_what_is_known_of_a_card_is_that_of_the_one_that_is_named(install: Install) -> None:
    first = FakeCard(ONE, processes=[7], drawing=[9, 7], free_bytes=7, mode=nvidia.EXCLUSIVE_PROCESS)
    nvml = install(first, FakeCard(TWO, processes=[20037, 20038], drawing=None))
    with nvidia.watch("1") as watched:
        assert (watched.uuid, watched.neighbours) == (TWO, [20037, 20038])
    asked = [nvidia.uuid_and_processes(name) for name in ("0", TWO)]
    assert asked == [(ONE, [7, 9]), (TWO, None)]  # those that compute and those that draw
    assert [nvidia.free_bytes(name) for name in ("0", "1")] == [7, None]
    assert [nvidia.is_exclusive(name) for name in ("0", "1")] == [True, False]
    assert nvml.opened == 0


def test_a_slice_is_told_apart_and_which_of_them_cuda_takes_is_not_guessed(install: Install) -> None:
    for name, uuid in {"0": "", "1": "", ONE: "", SLICE: SLICE}.items():
        first = FakeCard(ONE, mig=(1, 1), processes=[1, 2])
        nvml = install(first, FakeCard(TWO, mig=(0, 0)), FakeCard(SLICE, processes=[2], slice_of=first))
        with nvidia.watch(name) as watched:
            nvml.wait_for(1)
        assert (watched.uuid, bool(watched.samples)) == (uuid, True)
    assert (watched.neighbours, watched.samples[0]) == ([2], Sample(1980, []))  # with the clock of its card


def test_the_package_has_every_name_that_is_asked_for_and_the_numbers_that_are_known() -> None:
    """A slip of the pen would read as "not told"."""
    pynvml = pytest.importorskip("pynvml")
    assert set(nvidia.REASONS.split()) >= nvidia.THERMAL_REASONS
    assert nvidia.CLOCK_SM == pynvml.NVML_CLOCK_SM
    assert nvidia.EXCLUSIVE_PROCESS == pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
    reasons = (name for name in vars(pynvml) if re.fullmatch("nvmlClocksEventReason(?!None|All).*", name))
    assert {getattr(pynvml, name) for name in reasons} == {1 << bit for bit, _ in enumerate(nvidia.REASONS.split())}
    source = inspect.getsource(nvidia)
    asked = re.findall(r'"(nvml\w+)"', source) + re.findall(r"nvml\.(nvml\w+|NVML\w+)", source)
    assert len(set(asked)) > 10
    assert {name for name in asked if not hasattr(pynvml, name)} == set()


def test_the_newest_cuda_that_a_driver_speaks_is_what_all_cards_can_do() -> None:
    spoken = {"580.95.05": 13, "579.99": 12, "525.60.13": 12, "470.256.02": None, "[N/A]": None}
    assert {driver: nvidia.cuda_of([Card("NVIDIA L40S", driver)]) for driver in spoken} == spoken
    assert nvidia.cuda_of([]) is None
    assert nvidia.cuda_of([Card("NVIDIA L40S", driver) for driver in ("580.95.05", "535.183.06")]) == 12
