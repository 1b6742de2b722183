from pathlib import Path

import pytest

from kerasbench.host import linux

CGROUPS = "sys/fs/cgroup"
RECORDED = Path(__file__).parent / "recorded"
X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz\n\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"
MAINS = {"type": "Mains", "online": "1"}
UNPLUGGED = {"type": "Mains", "online": "0"}
USB = {"type": "USB", "online": "1"}
BATTERY = {"type": "Battery", "status": "Discharging"}
CHARGING = {"type": "Battery", "status": "Charging"}
MOUSE = {"type": "Battery", "scope": "Device", "status": "Discharging"}


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


def test_governors_are_told_once_each(tmp_path: Path) -> None:
    names = {"cpu0": "powersave\n", "cpu1": "performance\n", "cpu10": "powersave\n", "cpufreq": "not one\n"}
    root = tree(tmp_path, {f"{linux.CPUS}/{cpu}/cpufreq/scaling_governor": name for cpu, name in names.items()})
    assert linux.governors(root) == ["performance", "powersave"]


def test_throttling_is_summed_over_cores(tmp_path: Path) -> None:
    counts = {"cpu0": "3\n", "cpu1": "0\n", "cpu10": "4\n", "cpu11": "rubbish\n"}
    name = f"{linux.CPUS}/{{}}/thermal_throttle/core_throttle_count"
    root = tree(tmp_path, {name.format(cpu): count for cpu, count in counts.items()})
    assert linux.throttle_count(root) == 7


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


@pytest.mark.parametrize(
    ("text", "cores"), [("150000 100000\n", 1.5), *((text, None) for text in ("max 100000", "9 0", "", "²00 100"))]
)
def test_a_quota_is_a_share_of_a_period(tmp_path: Path, text: str, cores: float | None) -> None:
    assert linux.quota_cores(grouped(tmp_path, "rubbish\n0::/a:b\n", {"a:b/cpu.max": text})) == cores


@pytest.mark.parametrize("text", ["nr_throttled\n", "nr_throttled many\n", "nr_throttled 1 2\n"])
def test_a_line_that_is_no_name_and_number_is_left_out(tmp_path: Path, text: str) -> None:
    assert linux.quota_throttled(grouped(tmp_path, "0::/\n", {"cpu.stat": text})) is None


def test_the_group_of_a_container_without_root(tmp_path: Path) -> None:
    podman = "user.slice/user-1000.slice/user@1000.service/user.slice/podman-6696.scope"
    root = grouped(tmp_path, recorded("cgroup_v2.txt"), {f"{podman}/cpu.max": "50000 100000\n"})
    assert linux.quota_cores(root) == 0.5


def test_the_smallest_quota_on_the_way_up(tmp_path: Path) -> None:
    stat = recorded("cpu_stat_v2.txt")
    root = grouped(
        tmp_path,
        "0::/a.slice/b.scope\n",
        {
            "cpu.stat": recorded("cpu_stat_v2_root.txt"),
            "a.slice/cpu.max": "150000 100000\n",
            "a.slice/cpu.stat": stat,
            "a.slice/b.scope/cpu.max": "max 100000\n",
            "a.slice/b.scope/cpu.stat": stat,
            "other.slice/cpu.max": "1000 100000\n",
        },
    )
    assert (linux.quota_cores(root), linux.quota_throttled(root)) == (1.5, 6)


@pytest.mark.parametrize("cgroup", ["0::/\n", "0::/../../kubepods/pod\n", "0::/not/mounted/here\n"])
def test_a_container_sees_its_quota_at_the_root(tmp_path: Path, cgroup: str) -> None:
    root = grouped(tmp_path, cgroup, {"cpu.max": "200000 100000\n", "cpu.stat": recorded("cpu_stat_v2.txt")})
    assert (linux.quota_cores(root), linux.quota_throttled(root)) == (2, 3)


def test_version_1_through_a_link(tmp_path: Path) -> None:
    group = "cpu,cpuacct/user.slice/user-0.slice/session-1.scope"
    files = {"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n", "cpu.stat": recorded("cpu_stat_v1.txt")}
    top = {"cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}
    files = {f"{group}/{name}": text for name, text in files.items()} | top
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


@pytest.mark.parametrize("mark", linux.CONTAINER_MARKS)
def test_a_container_is_known_by_what_its_engine_puts_into_it(tmp_path: Path, mark: str) -> None:
    assert linux.is_contained(tree(tmp_path, {mark: ""}))


@pytest.mark.parametrize(
    ("group", "contained"),
    [
        ("12:cpu:/docker/3f2a1c", True),
        ("0::/system.slice/docker-3f2a1c.scope", True),
        ("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-3f2a.scope", True),
        ("0::/machine.slice/libpod-3f2a.scope", True),
        ("0::/user.slice/user-1000.slice/session-2.scope", False),
        ("0::/system.slice/docker.service", False),
        ("0::/system.slice/slurmstepd.scope/job_7", False),  # a job's group, on a machine with its own name
    ],
)
def test_a_container_is_known_by_its_control_group(tmp_path: Path, group: str, contained: bool) -> None:
    assert linux.is_contained(grouped(tmp_path, f"{group}\n", {})) is contained
