"""On Windows there is a sentence, not a traceback; what it has not is taken away here."""

import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.errors import UnsupportedSystem, require_supported

ROOT = Path(__file__).parent.parent
AS_ON_WINDOWS = "import sys; sys.modules |= dict.fromkeys(['fcntl', 'pwd', 'resource', 'termios']); "


def on_windows(code: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", f"{AS_ON_WINDOWS} sys.platform = 'win32'; {code}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_on_windows_a_command_line_ends_in_one_line_that_names_the_way_out() -> None:
    ended = on_windows("from kerasbench.__main__ import main; sys.exit(main())")
    assert ended.returncode == 1
    assert ended.stderr.startswith("kerasbench: Windows is not supported: ") and "WSL" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["run", "sweep", "explain", "load", "compare"])
def test_on_windows_python_gets_an_error_of_kerasbench(name: str) -> None:
    ended = on_windows(f"import kerasbench; kerasbench.{name}")
    assert ended.stderr.splitlines()[-1].startswith("kerasbench.errors.UnsupportedSystem: Windows is not supported")


def test_linux_and_macos_are_supported() -> None:
    for platform in ("linux", "darwin"):
        require_supported(platform)
    with pytest.raises(UnsupportedSystem):
        require_supported("win32")
