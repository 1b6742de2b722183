"""``python -m kerasbench`` as a user starts it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kerasbench
from kerasbench import __main__ as main_module

ROOT = Path(__file__).parent.parent


def test_the_module_is_the_command_line_and_its_exit_code_is_the_process_s() -> None:
    for arguments, code in ((["--version"], 0), (["--nonsense"], 1)):
        ended = subprocess.run(
            [sys.executable, "-m", "kerasbench", *arguments], capture_output=True, text=True, cwd=ROOT, check=False
        )
        assert ended.returncode == code
        if code == 0:
            assert ended.stdout.strip().endswith(kerasbench.__version__)


@pytest.mark.parametrize(
    ("before", "after"),
    [(signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)],
)
def test_ctrl_c_outside_of_a_command_ends_the_process_without_a_word_unless_it_is_ignored(
    monkeypatch: pytest.MonkeyPatch, before: "signal.Handlers", after: "signal.Handlers"
) -> None:
    was = signal.signal(signal.SIGINT, before)
    try:
        monkeypatch.setattr("kerasbench.cli.main.main", lambda: 7)
        assert main_module.main() == 7
        assert signal.getsignal(signal.SIGINT) is after
    finally:
        signal.signal(signal.SIGINT, was)
