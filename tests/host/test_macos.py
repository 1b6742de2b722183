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


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have every command print a text, or the recorded output of that name."""

    def put(text: str) -> None:
        output = recorded(text) if text.endswith((".txt", ".json")) else text
        monkeypatch.setattr(macos, "_output", lambda *_: output)

    return put


@pytest.mark.parametrize(
    ("reader", "text", "expected"),
    [
        (macos.thermal_level, "notifyutil_nominal.txt", 0),
        (macos.thermal_level, "notifyutil_heavy.txt", 2),
        (macos.thermal_level, "notifyutil_failed.txt", None),
        (macos.thermal_level, "1", None),
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
        (macos.gpu, "Graphics/Displays:", ""),
        (macos.gpu, '{"SPDisplaysDataType": []}', ""),
        (macos.gpu, '{"SPDisplaysDataType": [{"spdisplays_vendor": "sppci_vendor_Apple"}]}', ""),
        (macos.is_apple_silicon, "1\n", True),
        (macos.is_apple_silicon, "11\n", False),
        (macos.version, "sw_vers_15.txt", (15, 7)),
        (macos.version, "26\n", (26, 0)),
        (macos.version, "26.x\n", None),
        (macos.machine_id, f' "IOPlatformUUID" = "{UUID}"\n', UUID),
        *((reader, "", "") for reader in (macos.chip, macos.machine_id, macos.gpu)),
        *((reader, "", None) for reader in (macos.version, macos.thermal_level, macos.on_battery, macos.low_power)),
        (macos.cores_by_kind, "", {}),
        (macos.is_apple_silicon, "", False),
    ],
)  # fmt: skip
def test_what_a_command_says(
    reader: Callable[[], object], text: str, expected: object, says: Callable[[str], None]
) -> None:
    says(text)
    assert reader() == expected
    assert not isinstance(expected, dict) or list(expected) == list(macos.cores_by_kind())  # the fastest come first


def test_a_gpu_without_its_cores(says: Callable[[str], None]) -> None:
    says(recorded("system_profiler_m1.json").replace('"7"', '"seven"'))
    assert macos.gpu() == "Apple M1"


def test_each_reader_asks_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {
        tuple(macos.CHIP): "Apple M1\n",
        tuple(macos.CORES): recorded("sysctl_cores_m1.txt"),
        tuple(macos.GPUS): recorded("system_profiler_m1.json"),
        tuple(macos.THERMAL_LEVEL): recorded("notifyutil_moderate.txt"),
        tuple(macos.POWER_SOURCE): recorded("pmset_batt_battery.txt"),
        tuple(macos.POWER_SETTINGS): recorded("pmset_g_low_power.txt"),
        tuple(macos.APPLE_SILICON): "1\n",
        tuple(macos.VERSION): "15.0\n",
    }
    monkeypatch.setattr(macos, "_output", lambda command, timeout_s=0: outputs[tuple(command)])
    readers = (macos.chip, macos.thermal_level, macos.on_battery, macos.low_power, macos.is_apple_silicon)
    assert [reader() for reader in readers] == ["Apple M1", 1, True, True, True]
    assert (len(macos.cores_by_kind()), macos.gpu(), macos.version()) == (2, "Apple M1 (7-core GPU)", (15, 0))


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
