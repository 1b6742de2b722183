"""What keeps a machine awake, by stand-ins for the programs that do; tests/cli/test_interrupts.py has whole runs."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from kerasbench.host.awake import kept_awake
from tests import stand_in
from tests.host import awake

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def _path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")


def test_a_mac_is_kept_awake_as_long_as_this_process_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    said = awake.put(tmp_path, ("caffeinate", "exec sleep 600"))
    with kept_awake():
        stand_in.wait_for(said.exists)
        number, *words = said.read_text().split()
        guard = psutil.Process(int(number))
        assert words == ["-i", "-w", str(os.getpid())]
        assert os.getsid(guard.pid) != os.getsid(0)  # Ctrl-C does not reach it
    assert stand_in.is_gone(guard)


def test_what_cannot_keep_a_machine_awake_is_not_waited_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = awake.put(tmp_path, ("systemd-inhibit", "echo Failed to connect to bus >&2; exit 1"))
    with kept_awake():
        stand_in.wait_for(said.exists)
        stand_in.wait_for(lambda: all(map(stand_in.is_gone, psutil.Process().children())))
    assert psutil.Process().children() == []
    assert capfd.readouterr() == ("", "")


def test_where_nothing_could_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with kept_awake():
        assert psutil.Process().children() == []
