from collections.abc import Callable
from pathlib import Path

import pytest

from kerasbench.host import linux

Files = dict[str, str]
CGROUPS = "sys/fs/cgroup"
RECORDED = Path(__file__).parent / "recorded"
X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz\n\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"
CHIPS = {X86: "Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz", ARM: "Raspberry Pi 4 Model B Rev 1.4", "": "", "x": ""}
IDENTIFIER = "0123456789abcdef" * 2
CONTAINED = (
    *("12:cpu:/docker/3f2a1c", "0::/system.slice/docker-3f2a1c.scope", "0::/machine.slice/libpod-3f2a.scope"),
    "0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-3f2a.scope",
)
FREE = (
    *("0::/user.slice/user-1000.slice/session-2.scope", "0::/system.slice/docker.service"),
    "0::/system.slice/slurmstepd.scope/job_7",  # a job's group, on a machine with its own name
)
GOVERNED = {"cpu0": "powersave\n", "cpu1": "performance\n", "cpu10": "powersave\n", "cpufreq": "not one\n"}
GOVERNORS = {f"{linux.CPUS}/{cpu}/cpufreq/scaling_governor": name for cpu, name in GOVERNED.items()}
COUNTED = {"cpu0": "3\n", "cpu1": "0\n", "cpu10": "4\n", "cpu11": "rubbish\n"}
COUNTS = {f"{linux.CPUS}/{cpu}/thermal_throttle/core_throttle_count": count for cpu, count in COUNTED.items()}
MAINS, USB = {"type": "Mains", "online": "1"}, {"type": "USB", "online": "1"}
UNPLUGGED, MOUSE = {"type": "Mains", "online": "0"}, {"type": "Battery", "scope": "Device", "status": "Discharging"}
BATTERY, CHARGING = {"type": "Battery", "status": "Discharging"}, {"type": "Battery", "status": "Charging"}


def tree(root: Path, files: Files) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def below(folder: str, files: Files) -> Files:
    return {f"{folder}/{name}": text for name, text in files.items()}


def grouped(group: str, files: Files) -> Files:
    """Return these files of control groups, and what /proc says of the process' ``group``."""
    return below(CGROUPS, files) | {linux.OWN_CGROUP: f"{group}\n"}


def supplied(*supplies: Files) -> Files:
    files = {f"S{at}/{name}": f"{text}\n" for at, supply in enumerate(supplies) for name, text in supply.items()}
    return below("sys/class/power_supply", files)


def plugged(*devices: tuple[str, str]) -> Files:
    files = [{"class": f"{kind}\n", "vendor": f"{vendor}\n"} for kind, vendor in devices]
    folders = [below(f"sys/bus/pci/devices/0000:{at:02x}:00.0", of_device) for at, of_device in enumerate(files)]
    return {name: text for of_device in folders for name, text in of_device.items()}


def recorded(name: str) -> str:
    return (RECORDED / name).read_text("utf-8")


UNLIMITED, UNCOUNTED = ("max 100000", "9 0", "", "²00 100"), ("", " many", " 1 2")
STAT = recorded("cpu_stat_v2.txt")
ON_THE_WAY = {
    "cpu.stat": recorded("cpu_stat_v2_root.txt"),
    "a.slice/cpu.max": "150000 100000\n",
    "a.slice/cpu.stat": STAT,
    "a.slice/b.scope/cpu.max": "max 100000\n",
    "a.slice/b.scope/cpu.stat": STAT,
    "other.slice/cpu.max": "1000 100000\n",
}
SEEN_AT_THE_ROOT = {"cpu.max": "200000 100000\n", "cpu.stat": STAT}  # by a container
PODMAN = "user.slice/user-1000.slice/user@1000.service/user.slice/podman-6696.scope"  # of a container without root
KILLS = {
    "c/memory.events": recorded("memory_events_v2.txt"),
    "memory/a/b/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "memory/memory.oom_control": recorded("memory_oom_control_v1.txt"),
    "memory/elsewhere/memory.oom_control": "oom_kill 50\n",
}
VMSTAT = {"proc/vmstat": recorded("vmstat.txt").replace("oom_kill 0", "oom_kill 7")}
MEMORY = {
    "c/memory.max": "1000\n",
    "c/memory.current": "700\n",
    "c/memory.stat": "anon 500\ninactive_file 150\n",  # which the kernel takes back first
    "memory.max": "max\n",
    "memory.current": "5000\n",
    "memory/a/memory.limit_in_bytes": "9000\n",
    "memory/a/memory.usage_in_bytes": "1000\n",
}
CORES = {"sys/devices/cpu_core/cpus": "0-15\n", "sys/devices/cpu_atom/cpus": "16-23,30\n"}


@pytest.mark.parametrize(
    ("reader", "files", "expected"),
    [
        *((linux.chip, {"proc/cpuinfo": cpuinfo}, name) for cpuinfo, name in CHIPS.items()),
        (linux.cores_by_kind, CORES, {"performance": 16, "efficiency": 9}),
        (linux.cores_by_kind, CORES | {"sys/devices/cpu_atom/cpus": "none"}, {}),
        (linux.machine_id, {"etc/machine-id": "uninitialized\n"}, ""),  # of a new image
        (linux.machine_id, {"etc/machine-id": f"{IDENTIFIER}\n"}, IDENTIFIER),
        *((linux.is_contained, {mark: ""}, True) for mark in linux.CONTAINER_MARKS),
        *((linux.is_contained, grouped(group, {}), True) for group in CONTAINED),
        *((linux.is_contained, grouped(group, {}), False) for group in FREE),
        (linux.governors, GOVERNORS, ["performance", "powersave"]),  # once each
        (linux.throttle_count, COUNTS, 7),
        (linux.on_battery, supplied(MAINS), False),
        (linux.on_battery, supplied(BATTERY, USB), False),
        (linux.on_battery, supplied(UNPLUGGED, USB, CHARGING), False),
        (linux.on_battery, supplied(UNPLUGGED, BATTERY), True),
        (linux.on_battery, supplied(UNPLUGGED, CHARGING), None),
        (linux.on_battery, supplied(MOUSE), None),
        # Bridges, ports and sound are none.
        (linux.display_makers, plugged(("0x060000", "0x8086"), ("0x020000", "0x10de"), ("0x040300", "0x1002")), []),
        (linux.display_makers, plugged(*[("0x030200", "0x10de")] * 2, ("0x030000", "0x8086")), ["Intel", "NVIDIA"]),
        (linux.display_makers, plugged(("0x120000", "0x1002"), ("0x120100", "0x8086")), ["AMD"]),
        (linux.display_makers, plugged(("0x038000", "0x1af4"), ("0x030000", "")), ["0x1af4"]),
        *((linux.has_accelerator, {f"dev/{name}": ""}, True) for name in ("nvidia0", "kfd", "dri/renderD128")),
        (linux.has_accelerator, {"dev/dri/card0": "", "dev/null": ""}, False),
        (linux.quota_cores, grouped("rubbish\n0::/a:b", {"a:b/cpu.max": "150000 100000\n"}), 1.5),
        *((linux.quota_cores, grouped("0::/", {"cpu.max": text}), None) for text in UNLIMITED),
        (linux.quota_cores, grouped(recorded("cgroup_v2.txt"), {f"{PODMAN}/cpu.max": "50000 100000\n"}), 0.5),
        # The smallest on the way up, and the sum.
        (linux.quota_cores, grouped("0::/a.slice/b.scope", ON_THE_WAY), 1.5),
        (linux.quota_throttled, grouped("0::/a.slice/b.scope", ON_THE_WAY), 6),
        *(
            (reader, grouped(f"0::/{group}", SEEN_AT_THE_ROOT), expected)
            for reader, expected in ((linux.quota_cores, 2), (linux.quota_throttled, 3))
            for group in ("", "../../kubepods/pod", "not/mounted/here")
        ),
        *((linux.quota_throttled, grouped("0::/", {"cpu.stat": f"nr_throttled{text}\n"}), None) for text in UNCOUNTED),
        (
            linux.oom_kills,
            grouped("9:memory:/a/b\n3:cpu:/elsewhere\n0::/c", KILLS) | VMSTAT,
            {"its control group": 3, "this machine": 7},
        ),
        # The least that a control group on the way up leaves.
        (linux.memory_left, grouped("9:memory:/a\n0::/c", MEMORY), 450),
        (linux.memory_left, grouped("9:memory:/a\n0::/c", MEMORY | {"c/memory.current": "1200\n"}), 0),
        # A machine that does not tell.
        *((getattr(linux, name), {}, None) for name in ("throttle_count", "on_battery", "quota_cores", "memory_left")),
        *((linux.machine_id, {}, ""), (linux.is_contained, {}, False), (linux.governors, {}, [])),
        (linux.oom_kills, {}, {"its control group": None, "this machine": None}),
    ],
)
def test_what_files_say(tmp_path: Path, reader: Callable[[Path], object], files: Files, expected: object) -> None:
    assert reader(tree(tmp_path, files)) == expected


def test_version_1_through_a_link(tmp_path: Path) -> None:
    files = {"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}
    group = {"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n", "cpu.stat": recorded("cpu_stat_v1.txt")}
    files |= below("user.slice/user-0.slice/session-1.scope", group)
    tree(tmp_path, grouped(recorded("cgroup_v1.txt"), below("cpu,cpuacct", files)))
    link = tmp_path / CGROUPS / "cpu"
    link.symlink_to("cpu,cpuacct")
    assert (linux.quota_cores(tmp_path), linux.quota_throttled(tmp_path)) == (0.5, 675)
    link.unlink()
    link.symlink_to("cpu")  # to itself
    assert linux.quota_cores(tmp_path) == 0.5
