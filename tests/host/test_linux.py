from pathlib import Path

import pytest

from kerasbench.host import linux

CGROUPS = "sys/fs/cgroup"
RECORDED = Path(__file__).parent / "recorded"
X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz\n\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"
MAINS, USB = {"type": "Mains", "online": "1"}, {"type": "USB", "online": "1"}
UNPLUGGED, MOUSE = {"type": "Mains", "online": "0"}, {"type": "Battery", "scope": "Device", "status": "Discharging"}
BATTERY, CHARGING = {"type": "Battery", "status": "Discharging"}, {"type": "Battery", "status": "Charging"}


def recorded(name: str) -> str:
    return (RECORDED / name).read_text("utf-8")


def grouped(root: Path, group: str, files: dict[str, str]) -> Path:
    """Write these files of control groups, and what /proc says of the process' ``group``."""
    tree(root / CGROUPS, files)
    return tree(root, {linux.OWN_CGROUP: group})


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [(X86, "Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz"), (ARM, "Raspberry Pi 4 Model B Rev 1.4"), ("", ""), ("x", "")],
)
def test_the_chip_s_name(tmp_path: Path, cpuinfo: str, name: str) -> None:
    assert linux.chip(tree(tmp_path, {"proc/cpuinfo": cpuinfo})) == name


def test_governors_are_told_once_each_and_throttling_is_summed_over_cores(tmp_path: Path) -> None:
    names = {"cpu0": "powersave", "cpu1": "performance", "cpu10": "powersave", "cpufreq": "not one"}
    counts = {"cpu0": "3\n", "cpu1": "0\n", "cpu10": "4\n", "cpu11": "rubbish\n"}
    files = {f"{cpu}/cpufreq/scaling_governor": f"{name}\n" for cpu, name in names.items()}
    tree(tmp_path / linux.CPUS, files | {f"{cpu}/thermal_throttle/core_throttle_count": counts[cpu] for cpu in counts})
    assert (linux.governors(tmp_path), linux.throttle_count(tmp_path)) == (["performance", "powersave"], 7)


def test_a_machine_that_does_not_tell(tmp_path: Path) -> None:
    unknown = (linux.throttle_count, linux.on_battery, linux.quota_cores, linux.quota_throttled, linux.memory_left)
    assert [reader(tmp_path) for reader in unknown] == [None] * 5
    assert (linux.chip(tmp_path), linux.machine_id(tmp_path), linux.is_contained(tmp_path)) == ("", "", False)
    assert (linux.governors(tmp_path), linux.display_makers(tmp_path), linux.cores_by_kind(tmp_path)) == ([], [], {})
    assert linux.oom_kills(tmp_path) == linux.Kills(None, None)


@pytest.mark.parametrize(
    ("supplies", "battery"),
    [
        ([MAINS], False),
        ([BATTERY, USB], False),
        ([UNPLUGGED, USB, CHARGING], False),
        ([UNPLUGGED, BATTERY], True),
        ([UNPLUGGED, CHARGING], None),
        ([MOUSE], None),
    ],
)
def test_who_feeds_the_machine(tmp_path: Path, supplies: list[dict[str, str]], battery: bool | None) -> None:
    files = {f"S{at}/{name}": f"{text}\n" for at, supply in enumerate(supplies) for name, text in supply.items()}
    tree(tmp_path / "sys/class/power_supply", files)
    assert linux.on_battery(tmp_path) is battery


STAT = recorded("cpu_stat_v2.txt")
# Below the root, only what lies on the way up counts.
ON_THE_WAY = {
    "cpu.stat": recorded("cpu_stat_v2_root.txt"),
    "a.slice/cpu.max": "150000 100000\n",
    "a.slice/cpu.stat": STAT,
    "a.slice/b.scope/cpu.max": "max 100000\n",
    "a.slice/b.scope/cpu.stat": STAT,
    "other.slice/cpu.max": "1000 100000\n",
}
PODMAN = "user.slice/user-1000.slice/user@1000.service/user.slice/podman-6696.scope"  # of a container without root


@pytest.mark.parametrize(
    ("group", "files", "cores", "throttled"),
    [
        ("rubbish\n0::/a:b\n", {"a:b/cpu.max": "150000 100000\n"}, 1.5, None),
        *(("0::/\n", {"cpu.max": text}, None, None) for text in ("max 100000", "9 0", "", "²00 100")),
        *(("0::/\n", {"cpu.stat": f"nr_throttled{text}\n"}, None, None) for text in ("", " many", " 1 2")),
        (recorded("cgroup_v2.txt"), {f"{PODMAN}/cpu.max": "50000 100000\n"}, 0.5, None),
        ("0::/a.slice/b.scope\n", ON_THE_WAY, 1.5, 6),
        *(  # what a container sees at the root
            (f"0::/{group}\n", {"cpu.max": "200000 100000\n", "cpu.stat": STAT}, 2, 3)
            for group in ("", "../../kubepods/pod", "not/mounted/here")
        ),
    ],
)
def test_a_quota_is_the_smallest_share_of_a_period_on_the_way_up(
    tmp_path: Path, group: str, files: dict[str, str], cores: float | None, throttled: int | None
) -> None:
    root = grouped(tmp_path, group, files)
    assert (linux.quota_cores(root), linux.quota_throttled(root)) == (cores, throttled)


def test_version_1_through_a_link(tmp_path: Path) -> None:
    files = {"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}
    group = {"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n", "cpu.stat": recorded("cpu_stat_v1.txt")}
    files |= {f"user.slice/user-0.slice/session-1.scope/{name}": text for name, text in group.items()}
    files = {f"cpu,cpuacct/{name}": text for name, text in files.items()}
    root = grouped(tmp_path, recorded("cgroup_v1.txt"), files)
    (root / CGROUPS / "cpu").symlink_to("cpu,cpuacct")
    assert (linux.quota_cores(root), linux.quota_throttled(root)) == (0.5, 675)
    (root / CGROUPS / "cpu").unlink()
    (root / CGROUPS / "cpu").symlink_to("cpu")  # to itself
    assert linux.quota_cores(root) == 0.5


def test_kills_are_summed_along_the_way_up_of_the_process_control_groups(tmp_path: Path) -> None:
    files = {
        "c/memory.events": recorded("memory_events_v2.txt"),
        "memory/a/b/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        "memory/memory.oom_control": recorded("memory_oom_control_v1.txt"),
        "memory/elsewhere/memory.oom_control": "oom_kill 50\n",
    }
    root = grouped(tmp_path, "9:memory:/a/b\n3:cpu:/elsewhere\n0::/c\n", files)
    tree(root, {"proc/vmstat": recorded("vmstat.txt").replace("oom_kill 0", "oom_kill 7")})
    assert linux.oom_kills(root) == linux.Kills(group=3, machine=7)


@pytest.mark.parametrize(
    ("devices", "makers"),
    [
        ([("0x060000", "0x8086"), ("0x020000", "0x10de"), ("0x040300", "0x1002")], []),  # bridges, ports and sound
        ([("0x030000", "0x8086"), ("0x030200", "0x10de"), ("0x030200", "0x10de")], ["Intel", "NVIDIA"]),
        ([("0x120000", "0x1002"), ("0x120100", "0x8086")], ["AMD"]),
        ([("0x038000", "0x1af4"), ("0x030000", "")], ["0x1af4"]),
    ],
)
def test_makers_of_gpus(tmp_path: Path, devices: list[tuple[str, str]], makers: list[str]) -> None:
    for at, (kind, vendor) in enumerate(devices):
        tree(tmp_path / f"sys/bus/pci/devices/0000:{at:02x}:00.0", {"class": f"{kind}\n", "vendor": f"{vendor}\n"})
    assert linux.display_makers(tmp_path) == makers


def test_the_least_that_a_control_group_on_the_way_up_leaves_of_memory(tmp_path: Path) -> None:
    files = {
        "c/memory.max": "1000\n",
        "c/memory.current": "700\n",
        "c/memory.stat": "anon 500\ninactive_file 150\n",  # which the kernel takes back first
        "memory.max": "max\n",
        "memory.current": "5000\n",
        "memory/a/memory.limit_in_bytes": "9000\n",
        "memory/a/memory.usage_in_bytes": "1000\n",
    }
    root = grouped(tmp_path, "9:memory:/a\n0::/c\n", files)
    assert linux.memory_left(root) == 450
    tree(root, {f"{CGROUPS}/c/memory.current": "1200\n"})
    assert linux.memory_left(root) == 0


@pytest.mark.parametrize(
    ("text", "identifier"),
    [("uninitialized\n", ""), ("0123456789abcdef" * 2 + "\n", "0123456789abcdef" * 2)],  # of a new image
)
def test_the_system_s_own_identifier(tmp_path: Path, text: str, identifier: str) -> None:
    assert linux.machine_id(tree(tmp_path, {"etc/machine-id": text})) == identifier


GROUPS = {
    "12:cpu:/docker/3f2a1c": True,
    "0::/system.slice/docker-3f2a1c.scope": True,
    "0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-3f2a.scope": True,
    "0::/machine.slice/libpod-3f2a.scope": True,
    "0::/user.slice/user-1000.slice/session-2.scope": False,
    "0::/system.slice/docker.service": False,
    "0::/system.slice/slurmstepd.scope/job_7": False,  # a job's group, on a machine with its own name
}


@pytest.mark.parametrize(
    ("file", "text", "contained"),
    [
        *((mark, "", True) for mark in linux.CONTAINER_MARKS),
        *((linux.OWN_CGROUP, f"{group}\n", contained) for group, contained in GROUPS.items()),
    ],
)
def test_a_container_is_known_by_its_engine_s_marks_or_its_group(
    tmp_path: Path, file: str, text: str, contained: bool
) -> None:
    assert linux.is_contained(tree(tmp_path, {file: text})) is contained


def test_intel_s_kinds_of_cores(tmp_path: Path) -> None:
    root = tree(tmp_path / "sys/devices", {"cpu_core/cpus": "0-15\n", "cpu_atom/cpus": "16-23,30\n"})
    assert linux.cores_by_kind(tmp_path) == {"performance": 16, "efficiency": 9}
    tree(root, {"cpu_atom/cpus": "none"})
    assert linux.cores_by_kind(tmp_path) == {}
