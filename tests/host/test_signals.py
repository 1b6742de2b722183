import dataclasses
from typing import Any

import pytest

from kerasbench.host import noise
from kerasbench.host.noise import Severity, Signal, Surroundings
from kerasbench.host.nvidia import Sample
from kerasbench.protocol.measurement import Measurement, Slice, Usage
from tests import made

WARN, INVALID = Severity.WARN, Severity.INVALID
CORES = 2


def of_trial(
    seen: Surroundings,
    measurement: Measurement | None = None,
    earlier: tuple[Measurement, ...] = (),
    top_clock_mhz: int | None = None,
) -> list[tuple[str, Severity]]:
    found = noise.of_surroundings(seen, CORES, top_clock_mhz)
    found += noise.of_measurement(measurement or made.measurement(), earlier)
    return [(signal.name, signal.severity) for signal in found]


def ending(**different: object) -> Surroundings:
    """Ten seconds in which the child used 15 s of two processors, and the machine ended up like this."""
    return made.surroundings(after=made.state(10.0, 15.0, **different))


def test_a_quiet_trial_has_no_signal() -> None:
    assert of_trial(made.surroundings()) == []


@pytest.mark.parametrize(
    ("busy_s", "expected"),
    [(15.9, []), (16.2, [("others", WARN)]), (19.5, [("others", WARN)]), (20.0, [("others", INVALID)]), (14.0, [])],
)
def test_what_others_used_is_all_that_was_used_less_the_child_s(
    busy_s: float, expected: list[tuple[str, Severity]]
) -> None:
    assert of_trial(made.surroundings(after=made.state(10.0, busy_s))) == expected


@pytest.mark.parametrize(
    ("times", "share", "expected"),
    [
        ([10] * 10, 0, []),
        ([10] * 5 + [11.5] * 5, 0, [("spread", WARN)]),
        ([10] * 5 + [14] * 5, 0, [("spread", WARN)]),
    ],
)
def test_slices_that_spread(times: list[float], share: float, expected: list[tuple[str, Severity]]) -> None:
    whole = made.measurement()
    slices = [Slice(1, int(time * made.MS)) for time in times]
    spread = dataclasses.replace(whole, training=dataclasses.replace(made.trained(whole), slices=slices))
    assert of_trial(made.surroundings(), spread) == expected


def test_heat_power_and_the_hypervisor() -> None:
    assert of_trial(ending(thermal_level=1)) == [("heat", WARN)]
    assert of_trial(ending(thermal_level=2)) == [("heat", INVALID)]
    cool, hot = made.state(throttle_count=7), made.state(10.0, 15.0, throttle_count=9)
    assert of_trial(made.surroundings(cool, hot)) == [("heat", WARN)]
    before, after = made.state(quota_throttled=3), made.state(10.0, 15.0, quota_throttled=3)
    assert of_trial(made.surroundings(before, after)) == []
    kept = made.surroundings(made.state(steal_s=1.0), made.state(10.0, 15.0, steal_s=1.5))
    assert of_trial(kept) == [("steal", WARN)]


def test_a_gate_that_was_not_passed_is_a_signal() -> None:
    assert of_trial(made.surroundings(refused="40% of the CPU in use")) == [("gate", WARN)]


def test_a_trial_that_got_fewer_processors_than_the_others() -> None:
    starved = dataclasses.replace(made.measurement(), usage=Usage(16, 10, 0))
    assert of_trial(made.surroundings(), starved) == []
    assert of_trial(made.surroundings(), starved, (made.measurement(),) * 2) == [("share", WARN)]


@pytest.mark.parametrize(
    ("samples", "top_clock_mhz", "expected"),
    [
        ((Sample(300, ["gpu_idle"], 40), Sample(1980, ["sw_power_cap"], 60)), 1980, []),
        ((Sample(1900, ["hw_thermal_slowdown"], 88),), 1980, [("gpu heat", WARN)]),
        ((Sample(300, [], 40), Sample(1400, [], 60)), 1980, [("gpu clock", INVALID)]),
        ((Sample(None, [], None),), 1980, []),
        ((), None, [("gpu", WARN)]),
        (None, 1980, []),
    ],
)
def test_a_gpu_that_slows_down(
    samples: tuple[Sample, ...] | None, top_clock_mhz: int | None, expected: list[tuple[str, Severity]]
) -> None:
    assert of_trial(made.surroundings(gpu=samples), top_clock_mhz=top_clock_mhz) == expected


def test_a_neighbour_on_the_gpu() -> None:
    assert of_trial(made.surroundings(gpu=(Sample(1980, [], 60),), neighbours=(4711,))) == [("gpu", WARN)]


@pytest.mark.parametrize(
    ("different", "expected"),
    [
        ({}, []),
        ({"busy_share": 0.2}, [("load", WARN)]),
        ({"busy_share": 0.6}, [("load", INVALID)]),
        ({"load_per_core": 0.3}, [("load", WARN)]),
        ({"on_battery": True}, [("power", WARN)]),
        ({"low_power": True}, [("power", WARN)]),
        ({"governors": ["powersave"]}, [("governor", WARN)]),
        ({"governors": ["performance"]}, []),
        ({"quota_cores": 1.5}, [("quota", WARN)]),
        ({"quota_cores": 2.0}, []),
    ],
)
def test_what_speaks_against_a_machine_before_the_run(
    different: dict[str, Any], expected: list[tuple[str, Severity]]
) -> None:
    found = noise.of_machine(made.state(**different), CORES)
    assert [(signal.name, signal.severity) for signal in found] == expected


def test_a_reason_has_its_figure() -> None:
    (signal,) = noise.of_surroundings(made.surroundings(after=made.state(10.0, 17.0)), CORES, None)
    assert signal == Signal("others", WARN, "other processes used 10% of the CPU")
