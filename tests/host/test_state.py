import sys

import psutil
import pytest

from kerasbench.host import linux, macos, noise


def test_time_in_use_is_neither_idle_nor_waiting_nor_stolen_and_a_guest_s_is_counted_once() -> None:
    times = {"user": 10.0, "nice": 1.0, "system": 4.0, "irq": 0.5, "idle": 900.0, "iowait": 30.0, "steal": 7.0}
    assert noise.busy_seconds(times) == 15.5
    assert noise.busy_seconds(times | {"guest": 3.0, "guest_nice": 0.25}) == 15.5


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both systems' readings, each of its own value, so that it shows which one was read."""
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: 100 * interval)
    for module, readings in (
        (macos, {"thermal_level": 2, "on_battery": True, "low_power": True}),
        (
            linux,
            {
                "on_battery": False,
                "governors": ["powersave"],
                "throttle_count": 5,
                "quota_throttled": 6,
                "quota_cores": 1.5,
            },
        ),
    ):
        for name, value in readings.items():
            monkeypatch.setattr(module, name, lambda value=value: value)


@pytest.mark.usefixtures("told")
def test_on_macos_heat_and_power_are_read_and_no_governor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    seen = noise.observe(0.25)
    assert (seen.thermal_level, seen.on_battery, seen.low_power) == (2, True, True)
    assert (seen.governors, seen.throttle_count, seen.quota_throttled, seen.quota_cores) == ([], None, None, None)
    assert seen.busy_share == 0.25


@pytest.mark.usefixtures("told")
def test_on_linux_governors_throttling_and_quota_are_read_and_no_heat_of_apple_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    seen = noise.observe(0.25)
    assert (seen.thermal_level, seen.on_battery, seen.low_power) == (None, False, None)
    assert (seen.governors, seen.throttle_count, seen.quota_throttled, seen.quota_cores) == (["powersave"], 5, 6, 1.5)


def test_two_looks_at_this_machine_are_in_order() -> None:
    first, second = noise.observe(0.0), noise.observe(0.0)
    assert first.at_ns < second.at_ns
    assert 0 < first.busy_s <= second.busy_s
    assert first.load_per_core >= 0
