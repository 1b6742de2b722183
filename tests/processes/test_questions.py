"""A child is asked; what the commands do with the answers is in runs/test_survey.py and commands/."""

import sys
from pathlib import Path

import pytest

from kerasbench.processes import questions
from kerasbench.protocol.columns import CPU, GPU, Device
from kerasbench.protocol.messages import Code, Description, Failure, Inventory, ProbeReport
from kerasbench.protocol.requests import DescribeRequest

pytestmark = pytest.mark.processes

HANGS = "import time\ntime.sleep(60)\n"


def test_an_interpreter_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    found = questions.inventory("jax", str(tmp_path / "python"))
    assert isinstance(found, Failure)
    assert found.code is Code.UNAVAILABLE and "python" in found.cause


def test_an_interpreter_says_what_is_installed_in_it() -> None:
    found = questions.inventory("jax", sys.executable)
    assert isinstance(found, Inventory)
    assert found.prefix == sys.prefix and "msgspec" in found.packages


def test_scenario_files_are_described_in_their_order(faults: Path) -> None:
    files = [str(faults / "fine.py"), str(faults / "shouts.py")]
    found = questions.describe(files, sys.executable)
    assert isinstance(found, list) and all(isinstance(one, Description) for one in found)
    assert [one.name for one in found] == ["fine", "shouts"]


def test_a_file_that_does_not_end_is_stopped_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(questions.TIMES, DescribeRequest, (0.5, "describing scenario files"))
    (tmp_path / "hangs.py").write_text(HANGS)
    found = questions.describe([str(tmp_path / "hangs.py")], sys.executable)
    assert isinstance(found, Failure)
    assert found.code is Code.TIMEOUT and "the limit of 0.5 s for describing scenario files" in found.cause


def test_the_gpu_of_a_mac_has_the_name_of_its_chip() -> None:
    devices = [Device(CPU), Device(GPU, name="METAL")]
    report = ProbeReport("tensorflow", "3.12.1", {}, devices)
    named = questions.with_chip(report, "Apple M1")
    assert [device.name for device in named.devices] == [devices[0].name, "Apple M1"]
    assert questions.with_chip(report, "").devices == devices  # a chip that does not tell its name takes none away
