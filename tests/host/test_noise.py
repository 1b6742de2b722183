import itertools
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from kerasbench.host import linux, macos, noise
from kerasbench.host.noise import HEAT_PATIENCE_S, MachineState, Severity, Signal, Surroundings, WarningKind
from kerasbench.host.nvidia import Sample
from kerasbench.protocol.measurement import Samples, Slice
from tests import made

WARN, INVALID = Severity.WARN, Severity.INVALID
Graded = list[tuple[str, Severity]]


def between(before: dict[str, Any] | None = None, after: dict[str, Any] | None = None) -> Surroundings:
    return made.surroundings(made.state(**before or {}), made.state(**after or {}))


def slices(disturbed: int, others_ms: int, steal_ms: int, card: float | None = None) -> Samples:
    """Eight slices of 100 ms, of which so many do not count."""
    taken: dict[str, Any] = {"others_ns": others_ms * made.MS, "steal_ns": steal_ms * made.MS, "card_share": card}
    return Samples.of(
        Slice(1, 100 * made.MS, cycle, **(taken if (hit := cycle < disturbed) else {}), disturbed=hit)
        for cycle in range(8)
    )


@pytest.mark.parametrize(
    ("disturbed", "taken", "expected"),
    [
        (0, (40, 0), []),
        (3, (40, 0), [Signal("others", WARN, "other programs used 0.4 logical CPUs in 3 of 8 turns")]),
        (4, (40, 10), [Signal("others", INVALID, "other programs used 0.4 logical CPUs in 4 of 8 turns")]),
        (1, (-10, 30), [Signal("steal", WARN, "the hypervisor kept 0.3 logical CPUs in 1 of 8 turns")]),
        (5, (0, 0, 0.5), []),  # of a card: a signal of its own
    ],
)
def test_others_are_who_disturbed_slices(disturbed: int, taken: tuple[Any, ...], expected: list[Signal]) -> None:
    assert noise.of_slices(slices(disturbed, *taken)) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (between(), []),
        (between(after={"thermal_level": 1}), [("heat", WARN)]),
        (between({"thermal_level": 2}), [("heat", INVALID)]),
        (between({"throttle_count": 7}, {"throttle_count": 9}), [("heat", WARN)]),
        (between({"throttle_count": 7}, {"throttle_count": 7}), []),
        (between({"quota_throttled": 3}, {"quota_throttled": 4}), [("quota", WARN)]),
        (made.surroundings(gpu=(Sample(300, ["gpu_idle"]), Sample(1980, ["sw_power_cap"]))), []),
        (made.surroundings(gpu=(Sample(1900, ["hw_thermal_slowdown"]),)), [("gpu heat", WARN)]),
        (made.surroundings(gpu=(Sample(300, []), Sample(1400, []))), [("gpu clock", INVALID)]),
        (made.surroundings(gpu=(Sample(None, []),)), []),
        (made.surroundings(gpu=()), [("gpu", WARN)]),
        (made.surroundings(gpu=(Sample(1980, []),), neighbours=(4711,)), [("gpu", WARN)]),
        (made.state(), []),
        (made.state(busy_share=0.2), [("load", WARN)]),
        (made.state(busy_share=0.6), [("load", INVALID)]),
        (made.state(on_battery=True), [("power", WARN)]),
        (made.state(low_power=True), [("power", WARN)]),
        (made.state(governors=["powersave"]), [("governor", WARN)]),
        (made.state(governors=["performance"]), []),
        (made.state(quota_cores=1.5), [("quota", WARN)]),
        (made.state(quota_cores=2.0), []),
    ],
)
def test_what_speaks_against_a_trial_or_a_machine(seen: Surroundings | MachineState, expected: Graded) -> None:
    if isinstance(seen, MachineState):
        signals = noise.of_machine(seen, cores=2)
    else:
        signals = noise.of_surroundings(seen, 1980 if seen.gpu else None)
    assert [(WarningKind(signal.name), signal.severity) for signal in signals] == expected


@pytest.mark.parametrize(
    ("levels", "waited_s"),
    [([None], 0.0), ([0], 0.0), ([1, 2, 0], 2.0), ([1], HEAT_PATIENCE_S)],  # the last level over and over
)
def test_a_hot_machine_is_waited_for_as_long_as_there_is_patience(levels: list[int | None], waited_s: float) -> None:
    waits: list[str] = []
    slept_s: list[float] = []
    told = itertools.chain(levels, itertools.repeat(levels[-1]))
    clock = SimpleNamespace(sleep=slept_s.append, monotonic=lambda: sum(slept_s))
    with patch.multiple(noise, thermal_level=lambda: next(told), time=clock):
        assert noise.cool_down(waits.append) == waited_s
    assert len(waits) == waited_s and (not waits or waits[0] == "thermal pressure level 1")


ON_MAC: dict[str, Any] = {"thermal_level": 2, "on_battery": True, "low_power": True}
ON_LINUX: dict[str, Any] = {"on_battery": False, "governors": ["powersave"], "throttle_count": 5}
ON_LINUX |= {"quota_throttled": 6, "quota_cores": 1.5}


@pytest.mark.parametrize(("platform", "seen"), [("darwin", ON_MAC | {"governors": []}), ("linux", ON_LINUX)])
def test_each_system_is_asked_its_own(platform: str, seen: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for module, readings in ((macos, ON_MAC), (linux, ON_LINUX)):
        for name, value in readings.items():
            monkeypatch.setattr(module, name, lambda value=value: value)
    state = vars(noise.observe(0.01))
    unreported = dict.fromkeys(ON_MAC | ON_LINUX)
    assert 0.0 <= state["busy_share"] <= 1.0
    assert {name: state[name] for name in unreported} == unreported | seen


@pytest.mark.parametrize(
    ("before_s", "after_s", "share"),
    [
        *(([5, 7], after_s, share) for after_s, share in (([6, 8], 0), ([6, 7.5], 0.25), ([5, 7], 1))),
        ([5, 7], [6.01, 8.01], 0),  # by their rounding
        ([0, 0], [0, 0], 0),  # nothing is told
    ],
)
def test_processors_are_busy_while_they_are_not_idle(before_s: list[float], after_s: list[float], share: float) -> None:
    assert noise.busy_share(before_s, after_s, 1.0) == pytest.approx(share)
