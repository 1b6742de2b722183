import sys
from pathlib import Path

import pytest

from kerasbench.host import macos
from kerasbench.host.macos import Gpu

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


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("sysctl_cores_m1.txt", {"performance": 4, "efficiency": 4}),
        ("sysctl_cores_m1_pro.txt", {"performance": 8, "efficiency": 2}),
        ("sysctl_cores_m4_pro.txt", {"performance": 8, "efficiency": 4}),
        ("sysctl_cores_m5_max.txt", {"super": 6, "performance": 12}),
        ("sysctl_cores_m1_virtual.txt", {}),
        ("sysctl_cores_intel.txt", {}),
        ("pmset_g_ac.txt", {}),
    ],
)
def test_kinds_of_cores(name: str, cores: dict[str, int]) -> None:
    found = macos.parse_cores_by_kind(recorded(name))
    assert list(found.items()) == list(cores.items())  # the fastest first


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("sysctl_chip_m1_pro.txt", "Apple M1 Pro"),
        ("sysctl_chip_m4_rosetta.txt", "Apple M4"),
        ("sysctl_chip_intel.txt", "Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz"),
    ],
)
def test_the_chip_s_name(name: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "_output", lambda _: recorded(name))
    assert macos.chip() == chip


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("system_profiler_m1.json", Gpu("Apple M1", 7)),
        ("system_profiler_m1_pro_two_displays.json", Gpu("Apple M1 Pro", 14)),
        ("system_profiler_virtual.json", Gpu("Apple Paravirtualized Graphics Device")),
        ("system_profiler_intel_two_gpus.json", None),
    ],
)
def test_the_apple_gpu(name: str, gpu: Gpu | None) -> None:
    assert macos.parse_gpu(recorded(name)) == gpu


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Graphics/Displays:",
        "{}",
        "[]",
        '{"SPDisplaysDataType": {}}',
        '{"SPDisplaysDataType": []}',
        '{"SPDisplaysDataType": [{"spdisplays_vendor": "sppci_vendor_Apple"}]}',
        '{"SPDisplaysDataType": [{"sppci_model": "Apple M1"',
    ],
)
def test_no_apple_gpu(text: str) -> None:
    assert macos.parse_gpu(text) is None


def test_a_gpu_without_its_cores() -> None:
    said = recorded("system_profiler_m1.json").replace('"7"', '"seven"')
    assert macos.parse_gpu(said) == Gpu("Apple M1")
    assert (Gpu("Apple M1").label, Gpu("Apple M1", 8).label) == ("Apple M1", "Apple M1 (8-core GPU)")


@pytest.mark.parametrize(("text", "on"), [("1\n", True), ("0\n", False), ("", False), ("11\n", False)])
def test_a_switch(text: str, on: bool) -> None:
    assert macos.parse_switch(text) is on


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (recorded("sw_vers_15.txt"), (15, 7)),
        (recorded("sw_vers_26.txt"), (26, 6)),
        ("10.15.7\n", (10, 15)),
        ("26\n", (26, 0)),
        ("", None),
        ("26.x\n", None),
        ("ProductVersion: 26.0\n", None),
    ],
)
def test_version(text: str, version: tuple[int, int] | None) -> None:
    assert macos.parse_version(text) == version


def test_the_machine_and_the_process_are_asked_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {tuple(macos.TRANSLATED): "1\n", tuple(macos.APPLE_SILICON): "1\n", tuple(macos.VERSION): "15.0\n"}
    monkeypatch.setattr(macos, "_output", lambda command: said[tuple(command)])
    assert (macos.translated(), macos.is_apple_silicon(), macos.version()) == (True, True, (15, 0))
    said[tuple(macos.TRANSLATED)] = "0\n"
    assert (macos.translated(), macos.is_apple_silicon()) == (False, True)


def test_system_profiler_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {(tuple(macos.GPUS), macos.PROFILER_TIMEOUT_S): recorded("system_profiler_m1.json")}
    monkeypatch.setattr(macos, "_output", lambda command, timeout_s: said[tuple(command), timeout_s])
    assert macos.gpu() == Gpu("Apple M1", 7)
    assert macos.PROFILER_TIMEOUT_S > macos.TIMEOUT_S


def test_the_version_is_not_the_one_for_old_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sw_vers"
    program.write_text('#!/bin/sh\n[ "$SYSTEM_VERSION_COMPAT" = 0 ] && echo 26.6.2 || echo 10.16\n', "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("SYSTEM_VERSION_COMPAT", "1")
    monkeypatch.setattr(macos, "VERSION", [*macos.VERSION[:2], str(program)])
    assert macos.version() == (26, 6)


def test_each_reader_asks_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {
        tuple(macos.CHIP): "Apple M1\n",
        tuple(macos.CORES): recorded("sysctl_cores_m1.txt"),
        tuple(macos.THERMAL_LEVEL): recorded("notifyutil_moderate.txt"),
        tuple(macos.POWER_SOURCE): recorded("pmset_batt_battery.txt"),
        tuple(macos.POWER_SETTINGS): recorded("pmset_g_low_power.txt"),
    }
    monkeypatch.setattr(macos, "_output", lambda command: outputs[tuple(command)])
    assert (macos.chip(), macos.thermal_level(), macos.on_battery(), macos.low_power()) == ("Apple M1", 1, True, True)
    assert macos.cores_by_kind() == {"performance": 4, "efficiency": 4}


def test_a_machine_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "_output", lambda *_: "")
    assert macos.chip() == ""
    assert (macos.gpu(), macos.version(), macos.cores_by_kind()) == (None, None, {})
    assert (macos.translated(), macos.is_apple_silicon()) == (False, False)
    assert (macos.thermal_level(), macos.on_battery(), macos.low_power()) == (None, None, None)


def test_what_a_command_prints() -> None:
    assert macos._output([sys.executable, "-c", PRINTS]) == "a \ufffd"
    assert macos._output([sys.executable, "-c", "raise SystemExit(1)"]) == ""
    assert macos._output(["/no/such/command"]) == ""
    assert macos._output([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.01) == ""


def test_the_hardware_s_own_identifier() -> None:
    said = '+-o J316sAP\n  {\n    "IOPlatformUUID" = "1F2E3D4C-0000-1111-2222-333344445555"\n  }\n'
    assert macos.parse_machine_id(said) == "1F2E3D4C-0000-1111-2222-333344445555"
    assert macos.parse_machine_id("") == ""
