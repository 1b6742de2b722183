import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import kerasbench
from kerasbench import __main__ as main_module
from kerasbench.errors import unknown
from tests.repository import ROOT, printed
from tests.stand_in import handling

ON_WINDOWS = """
import sys
sys.modules |= dict.fromkeys(["fcntl", "pwd", "resource", "termios"])
sys.platform = "win32"
"""


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, check=False)


def test_what_is_exported_is_there() -> None:
    assert {"Scenario", "Workload", "compare", "explain", "load", "run", "sweep", "versus"} <= set(kerasbench.__all__)
    assert all(hasattr(kerasbench, name) for name in kerasbench.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = kerasbench.nonsense  # type: ignore[attr-defined]


def test_the_module_is_the_command_line_and_its_exit_code_is_the_process_s() -> None:
    ended = python("-m", "kerasbench", "--version")
    assert (ended.returncode, ended.stdout.split()[-1]) == (0, kerasbench.__version__)
    assert python("-m", "kerasbench", "--nonsense").returncode == 2


def test_without_the_packages_that_it_needs_it_says_what_to_install() -> None:
    ended = python("-S", "-m", "kerasbench", "list")  # without site-packages
    said = f"kerasbench: {sys.executable} has no package click: install kerasbench there, with pip install -e . in "
    assert (ended.returncode, ended.stderr.startswith(said), ended.stderr.count("\n")) == (2, True, 1)


def test_what_lies_in_the_current_folder_is_not_taken_for_a_module_of_python_s_own(tmp_path: Path) -> None:
    for name in ("typing", "signal", "json", "random", "click"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)")
    assert printed(sys.executable, "-m", "kerasbench", "list", "--json", folder=tmp_path).startswith("[")


@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        (">&-", 2, "kerasbench: standard output is closed, so nothing can be printed: leave out >&-, or "),
        (">/dev/full", 2, "kerasbench: No space left on device: free disk space\n"),
        (">&- 2>/dev/full", 2, ""),
        (">&- 2>&-", 2, ""),
        ("<&- 2>&-", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full_lose_no_answer_in_silence(redirected: str, code: int, said: str) -> None:
    if "full" in redirected and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    command = f"{shlex.quote(sys.executable)} -m kerasbench list --suite tiny {redirected}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (ended.returncode, ended.stderr.startswith(said), ended.stderr.count("\n")) == (code, True, bool(said))
    assert ("tiny_transformer" in ended.stdout) is (code == 0)


@pytest.mark.parametrize(
    ("before", "after"), [(signal.default_int_handler, signal.SIG_DFL), (signal.SIG_IGN, signal.SIG_IGN)]
)
def test_ctrl_c_outside_of_a_command_ends_the_process_without_a_word_unless_it_is_ignored(
    monkeypatch: pytest.MonkeyPatch, before: "signal.Handlers", after: "signal.Handlers"
) -> None:
    monkeypatch.setattr("kerasbench.cli.main.main", lambda: 7)
    with handling(signal.SIGINT, before):
        assert main_module.main() == 7
        assert signal.getsignal(signal.SIGINT) is after


def test_on_windows_there_is_one_sentence_that_names_the_way_out() -> None:
    ended = python("-c", f"{ON_WINDOWS}\nfrom kerasbench.__main__ import main\nsys.exit(main())")
    assert ended.returncode == 2
    assert ended.stderr.startswith("kerasbench: Windows is not supported: ") and "WSL" in ended.stderr
    assert ended.stderr.count("\n") == 1
    ended = python("-c", f"{ON_WINDOWS}\nimport kerasbench\nkerasbench.run")
    assert ended.stderr.splitlines()[-1].startswith("kerasbench.errors.UnsupportedSystem: Windows is not supported")


@pytest.mark.parametrize(
    ("given", "guess"),
    [("toch", "; did you mean 'torch'?"), ("tensrflow", "; did you mean 'tensorflow'?"), ("mxnet", "")],
)
def test_a_name_that_means_nothing_is_answered_with_the_nearest_that_does(given: str, guess: str) -> None:
    error = unknown("backend", given, iter(["jax", "tensorflow", "torch"]))
    assert str(error) == f"unknown backend '{given}'{guess} (there are: jax, tensorflow, torch)"
