import sys
from pathlib import Path

import pytest

from kerasbench.machine import macos

RECORDED = Path(__file__).parent / "recorded"
PRINTS = "import sys; sys.stdout.buffer.write(b'a \\xff')"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("notifyutil_nominal.txt", 0),
        ("notifyutil_moderate.txt", 1),
        ("notifyutil_heavy.txt", 2),
        ("notifyutil_failed.txt", None),
        ("pmset_batt_ac.txt", None),
    ],
)
def test_thermal_level(name: str, level: int | None) -> None:
    assert macos.parse_thermal_level(recorded(name)) == level


@pytest.mark.parametrize("text", ["", "1", "com.apple.system.other 1", "com.apple.system.thermalpressurelevel ²"])
def test_no_thermal_level(text: str) -> None:
    assert macos.parse_thermal_level(text) is None


@pytest.mark.parametrize(
    ("name", "battery"),
    [
        ("pmset_batt_battery.txt", True),
        ("pmset_batt_no_estimate.txt", True),
        ("pmset_batt_ac.txt", False),
        ("pmset_batt_desktop.txt", False),
        ("pmset_g_ac.txt", None),
    ],
)
def test_power_source(name: str, battery: bool | None) -> None:
    assert macos.parse_power_source(recorded(name)) is battery


@pytest.mark.parametrize(
    ("name", "low"),
    [
        ("pmset_g_ac.txt", False),
        ("pmset_g_low_power.txt", True),
        ("pmset_g_powermode.txt", False),
        ("pmset_batt_battery.txt", None),
    ],
)
def test_low_power(name: str, low: bool | None) -> None:
    assert macos.parse_low_power(recorded(name)) is low


@pytest.mark.parametrize(("mode", "low"), [("0", False), ("1", True), ("2", False)])
def test_three_power_modes(mode: str, low: bool) -> None:
    text = recorded("pmset_g_powermode.txt").replace("powermode            0", f"powermode            {mode}")
    assert macos.parse_low_power(text) is low


def test_each_reader_asks_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {
        tuple(macos.CHIP): "Apple M1\n",
        tuple(macos.THERMAL_LEVEL): recorded("notifyutil_moderate.txt"),
        tuple(macos.POWER_SOURCE): recorded("pmset_batt_battery.txt"),
        tuple(macos.POWER_SETTINGS): recorded("pmset_g_low_power.txt"),
    }
    monkeypatch.setattr(macos, "_output", lambda command: outputs[tuple(command)])
    assert (macos.chip(), macos.thermal_level(), macos.on_battery(), macos.low_power()) == ("Apple M1", 1, True, True)


def test_a_machine_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "_output", lambda _: "")
    assert macos.chip() == ""
    assert (macos.thermal_level(), macos.on_battery(), macos.low_power()) == (None, None, None)


def test_what_a_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    assert macos._output([sys.executable, "-c", PRINTS]) == "a \ufffd"
    assert macos._output([sys.executable, "-c", "raise SystemExit(1)"]) == ""
    assert macos._output(["/no/such/command"]) == ""
    monkeypatch.setattr(macos, "TIMEOUT_S", 0.01)
    assert macos._output([sys.executable, "-c", "import time; time.sleep(60)"]) == ""
