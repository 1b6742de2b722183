from pathlib import Path

import pytest

from kerasbench.machine import linux

X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz\n\n"
ARM = "processor\t: 0\nBogoMIPS\t: 108.00\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [(X86, "Intel(R) Core(TM) i7-9700K CPU @ 3.60GHz"), (ARM, "Raspberry Pi 4 Model B Rev 1.4"), ("", ""), ("x", "")],
)
def test_the_chip_s_name(cpuinfo: str, name: str) -> None:
    assert linux.parse_chip(cpuinfo) == name


def test_no_proc_no_name(tmp_path: Path) -> None:
    assert linux.chip(tmp_path / "cpuinfo") == ""
