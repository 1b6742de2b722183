import errno
from types import SimpleNamespace

import pytest

from kerasbench.cli import main
from kerasbench.cli.options import with_default_command


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], []),
        (["--quick"], ["run", "--quick"]),
        (["run", "--quick"], ["run", "--quick"]),
        (["list"], ["list"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
    ],
)
def test_run_is_the_default_command(given: list[str], meant: list[str]) -> None:
    assert with_default_command(given) == meant


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--scenario", "a\x1b[31m|b.py"], "a|b.py: a scenario file's name must be"),
        (["--scenario", "x" * 300 + ".py"], "File name too long"),
        (["new", "."], "a scenario is a Python file: my_model.py, not ."),
        (["versus", "~nobody-of-that-name/keras", "keras==3.14.*"], "is neither a label, nor"),
        (["lst"], "No such command"),
        (["--resume", "--scenario", "mnist_dense"], "--resume reuses the interrupted run's options"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(arguments) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.startswith("kerasbench: ") and "\x1b" not in err
    assert err.count("\n") == 1
    assert not out


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["env"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("Usage: kerasbench env") and "create" in err and not out


def test_what_a_user_can_mend_is_one_line_and_any_other_error_is_asked_to_be_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[Exception] = [
        PermissionError(13, "Permission denied", "/root/m.py"),
        OSError(5, "Input/output error"),
    ]
    monkeypatch.setattr("kerasbench.plan.catalog.builtin_files", lambda: (_ for _ in ()).throw(refused.pop(0)))
    assert main.main(["list"]) == 2
    assert capsys.readouterr().err == "kerasbench: /root/m.py: Permission denied\n"
    assert main.main(["list"]) == 70
    first, *traceback = capsys.readouterr().err.splitlines()
    assert "please report it" in first and traceback[-1].endswith("Input/output error")
    refused.append(ZeroDivisionError("of\x1b[31m ours"))
    assert main.main(["list"]) == 70
    assert capsys.readouterr().err.endswith("\nZeroDivisionError: of ours\n")
    refused.append(OSError(errno.ENOSPC, "No space left on device"))
    assert main.main(["list"]) == 2
    assert capsys.readouterr().err == "kerasbench: No space left on device\n"


def test_a_reader_that_has_seen_enough_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("kerasbench.plan.catalog.builtin_files", lambda: (_ for _ in ()).throw(BrokenPipeError()))
    monkeypatch.setattr("os.dup2", lambda null, stdout: ended.append(stdout))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: 1))
    assert (main.main(["list"]), ended) == (0, [1])
