import sys
from pathlib import Path

import pytest

from kerasbench.machine import nvidia
from kerasbench.machine.nvidia import Card, Sample

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text("utf-8")


def smi(tmp_path: Path, script: str) -> str:
    """Write a program that stands in for nvidia-smi, and return its path."""
    path = tmp_path / "nvidia-smi"
    path.write_text(f"#!{sys.executable}\n{script}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def test_the_watcher_s_command() -> None:
    assert nvidia.watch_command("1") == [
        "nvidia-smi",
        "--id=1",
        "--query-gpu=clocks.sm,clocks_throttle_reasons.active,temperature.gpu",
        "--format=csv,noheader,nounits",
        "--loop-ms=1000",
    ]


@pytest.mark.parametrize(
    ("name", "samples"),
    [
        ("nvidia_smi_samples_l40s.txt", [Sample(2520, [], 54)]),
        ("nvidia_smi_samples_rtx_2080_super_idle.txt", [Sample(300, ["gpu_idle"], 32)]),
        (
            "nvidia_smi_samples_throttled.txt",
            [
                Sample(1980, [], 61),
                Sample(1590, ["sw_power_cap"], 71),
                Sample(1395, ["sw_power_cap", "sw_thermal_slowdown"], 87),
                Sample(705, ["hw_slowdown", "hw_thermal_slowdown"], 92),
            ],
        ),
        (
            "nvidia_smi_samples_not_told.txt",
            [Sample(None, [], 40), Sample(1410, [], 41), Sample(1410, [], None), Sample(None, ["gpu_idle"], 42)],
        ),
        ("nvidia_smi_samples_old_driver.txt", []),
    ],
)
def test_samples(name: str, samples: list[Sample]) -> None:
    assert nvidia.parse_samples(recorded(name)) == samples


def test_a_line_that_was_cut_is_no_sample() -> None:
    assert nvidia.parse_samples("2520, 0x0000000000000000, 54\n2520, 0x0000000000000000, 5") == [Sample(2520, [], 54)]
    assert nvidia.parse_samples("2520, 0x0000000000000000, 54") == []
    assert nvidia.parse_samples("") == []


def test_rubbish_is_skipped() -> None:
    assert nvidia.parse_samples("\nNo devices were found\na, b, c\n1, 2\n1, 0x2, 3, 4\n") == []


def test_reasons_by_bit() -> None:
    assert nvidia.reason_names(0) == []
    assert nvidia.reason_names(0x1FF) == list(nvidia.REASONS.values())
    assert nvidia.reason_names(0x84) == ["sw_power_cap", "hw_power_brake_slowdown"]
    assert nvidia.reason_names(0x8000) == []


def test_thermal_reasons_are_reasons() -> None:
    assert set(nvidia.REASONS.values()) >= nvidia.THERMAL_REASONS
    assert set(nvidia.reason_names(0x8 | 0x20 | 0x40 | 0x80)) == nvidia.THERMAL_REASONS


def test_processes_that_compute() -> None:
    assert nvidia.parse_compute_apps(recorded("nvidia_smi_compute_apps.txt")) == [20037, 20038]
    assert nvidia.parse_compute_apps("[N/A]\n[Insufficient Permissions]\n\n7\n") == [7]
    assert nvidia.parse_compute_apps("") == []


def test_processes_are_asked_of_one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "import sys; print(20037 if sys.argv[1:3] == ['--id=1', '--query-compute-apps=pid'] else 1)"
    monkeypatch.setattr(nvidia, "COMMAND", smi(tmp_path, asked))
    assert nvidia.compute_apps("1") == [20037]


def test_no_processes_is_not_the_same_as_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "COMMAND", smi(tmp_path, ""))
    assert nvidia.compute_apps("0") == []
    monkeypatch.setattr(nvidia, "COMMAND", smi(tmp_path, "raise SystemExit(9)"))
    assert nvidia.compute_apps("0") is None
    monkeypatch.setattr(nvidia, "COMMAND", str(tmp_path / "missing"))
    assert nvidia.compute_apps("0") is None


@pytest.mark.parametrize(
    ("drivers", "cuda"),
    [
        ([], None),
        (["580.95.05"], 13),
        (["595.80"], 13),
        (["579.99"], 12),
        (["535.183.06"], 12),
        (["525.60.13"], 12),
        (["470.256.02"], None),
        (["580.95.05", "535.183.06"], 12),  # what all cards can do
        (["[N/A]"], None),
    ],
)
def test_the_newest_cuda_that_a_driver_speaks(drivers: list[str], cuda: int | None) -> None:
    assert nvidia.cuda_of([Card("NVIDIA L40S", driver) for driver in drivers]) == cuda
