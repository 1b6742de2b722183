import dataclasses
from pathlib import Path

import pytest

from kerasbench.cli import main
from kerasbench.cli.options import with_default_command
from kerasbench.results.store import Store
from tests import made


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
        (["--scenario", "mnist_dens", "--backend", "jax"], "did you mean 'mnist_dense'"),
        (["--scenario", "gone.py", "--backend", "jax"], "gone.py: cannot be read"),
        (["--scenario", "../../x", "--backend", "jax"], "unknown scenario '../../x'"),
        (["--scenario", "a\x1b[31m|b.py"], "a|b.py: a scenario file's name must be"),
        (["--quick", "--rounds", "2"], "exclude each other"),
        (["--nonsense"], "No such option"),
        (["--scenario", "x" * 300 + ".py"], "File name too long"),
        (["--scenario", ""], "--scenario got an empty word"),
        (["new", "."], "a scenario is a Python file: my_model.py, not ."),
        (["versus", "~nobody-of-that-name/keras", "keras==3.14.*"], "is neither a label, nor"),
        (["lst"], "No such command"),
        (["sweep"], "Missing argument 'SCENARIO'"),
        (["sweep", "mnist_dense", "--keep-env", "KERAS_BACKEND"], "kerasbench sets this variable itself"),
        (["explain", "mnist_dense", "--keep-env", "KERAS_HOME"], "kerasbench sets this variable itself"),
        (["--resume", "--keep-env", "PATH"], "--resume reuses the interrupted run's options"),
        (["--resume", "--scenario", "mnist_dense"], "--resume reuses the interrupted run's options"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_code_1(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(arguments) == 1
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.startswith("kerasbench: ") and "\x1b" not in err
    assert err.count("\n") == 1
    assert not out


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["env"]) == 1
    out, err = capsys.readouterr()
    assert err.startswith("Usage: kerasbench env") and "create" in err and not out


def test_what_a_file_holds_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = made.record(made.trial(name="\x1b[2J\u202e"))
    store = Store.create(tmp_path, record.started)
    store.finish(dataclasses.replace(record, scenarios=[]))
    assert main.main(["report", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "which is none of its scenarios" in err
    assert all(line.isprintable() for line in err.splitlines())
