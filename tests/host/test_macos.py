import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kerasbench.host import macos

RECORDED = Path(__file__).parent / "recorded"
UUID = "1F2E3D4C-0000-1111-2222-333344445555"
PRINTS = "import sys; sys.stdout.buffer.write(b'a \\xff')"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text("utf-8")


Reader = Callable[[], object]


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (macos.thermal_level, "notifyutil_nominal.txt", 0),
        (macos.thermal_level, "notifyutil_heavy.txt", 2),
        (macos.thermal_level, "notifyutil_failed.txt", None),
        (macos.thermal_level, "com.apple.system.other 1", None),
        (macos.thermal_level, "com.apple.system.thermalpressurelevel ²", None),
        (macos.on_battery, "pmset_batt_battery.txt", True),
        (macos.on_battery, "pmset_batt_ac.txt", False),
        (macos.on_battery, "pmset_g_ac.txt", None),
        (macos.low_power, "pmset_g_ac.txt", False),
        (macos.low_power, "pmset_g_low_power.txt", True),
        (macos.low_power, "pmset_g_powermode.txt", False),
        (macos.low_power, " powermode            1\n", True),
        (macos.low_power, " powermode            2\n", False),  # high
        (macos.low_power, "pmset_batt_battery.txt", None),
        (macos.chip, "sysctl_chip_m1_pro.txt", "Apple M1 Pro"),
        (macos.chip, "sysctl_chip_intel.txt", "Intel(R) Core(TM) i9-9980HK CPU @ 2.40GHz"),
        (macos.cores_by_kind, "sysctl_cores_m1.txt", {"performance": 4, "efficiency": 4}),
        (macos.cores_by_kind, "sysctl_cores_m1_pro.txt", {"performance": 8, "efficiency": 2}),
        (macos.cores_by_kind, "sysctl_cores_m5_max.txt", {"super": 6, "performance": 12}),
        (macos.cores_by_kind, "sysctl_cores_m1_virtual.txt", {}),
        (macos.gpu, "system_profiler_m1.json", "Apple M1 (7-core GPU)"),
        (macos.gpu, "system_profiler_m1_pro_two_displays.json", "Apple M1 Pro (14-core GPU)"),
        (macos.gpu, "system_profiler_virtual.json", "Apple Paravirtualized Graphics Device"),
        (macos.gpu, "system_profiler_intel_two_gpus.json", ""),
        (macos.gpu, recorded("system_profiler_m1.json").replace('"7"', '"seven"'), "Apple M1"),
        (macos.gpu, "Graphics/Displays:", ""),
        (macos.gpu, '{"SPDisplaysDataType": []}', ""),
        (macos.gpu, '{"SPDisplaysDataType": [{"spdisplays_vendor": "sppci_vendor_Apple"}]}', ""),
        (macos.is_apple_silicon, "1\n", True),
        (macos.is_apple_silicon, "11\n", False),
        (macos.version, "sw_vers_15.txt", (15, 7)),
        (macos.version, "26\n", (26, 0)),
        (macos.version, "26.x\n", ()),
        (macos.machine_id, f' "IOPlatformUUID" = "{UUID}"\n', UUID),
        *((reader, "", "") for reader in (macos.chip, macos.machine_id, macos.gpu)),
        *((reader, "", None) for reader in (macos.thermal_level, macos.on_battery, macos.low_power)),
        *((macos.version, "", ()), (macos.cores_by_kind, "", {}), (macos.is_apple_silicon, "", False)),
    ],
)
def test_what_a_command_says(reader: Reader, text: str, expected: object, monkeypatch: pytest.MonkeyPatch) -> None:
    output = recorded(text) if text.endswith((".txt", ".json")) else text
    monkeypatch.setattr(macos, "_output", lambda *_: output)
    read = reader()
    assert read == expected
    assert not isinstance(read, dict) or list(read) == list(expected)  # type: ignore  # the fastest come first


def test_the_version_is_not_the_one_for_old_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sw_vers"
    program.write_text('#!/bin/sh\n[ "$SYSTEM_VERSION_COMPAT" = 0 ] && echo 26.6.2 || echo 10.16\n', "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("SYSTEM_VERSION_COMPAT", "1")
    monkeypatch.setattr(macos, "VERSION", [*macos.VERSION[:2], str(program)])
    assert macos.version() == (26, 6)


def test_what_a_command_prints() -> None:
    assert macos._output([sys.executable, "-c", PRINTS]) == "a \ufffd"
    assert macos._output([sys.executable, "-c", "raise SystemExit(1)"]) == ""
    assert macos._output(["/no/such/command"]) == ""
    assert macos._output([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.01) == ""
