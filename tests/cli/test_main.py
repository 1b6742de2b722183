import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.cli import main
from kerasbench.cli.options import with_default_command
from kerasbench.results.record import INTERRUPTED
from kerasbench.results.store import Store
from tests import made

PARENT_IMPORTS_NO_BACKEND = """
import sys
from kerasbench.cli.main import main
main({arguments})
found = {{"keras", "tensorflow", "torch", "jax", "scipy", "numpy"}} & sys.modules.keys()
assert not found, found
"""


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
        (["--backend", "pytorch"], "did you mean 'torch'"),
        (["--device", "cuda"], "unknown device 'cuda'"),
        (["--scenario", "gone.py", "--backend", "jax"], "gone.py: cannot be read"),
        (["--scenario", "../../x", "--backend", "jax"], "unknown scenario '../../x'"),
        (["--scenario", "a\x1b[31m|b.py"], "a|b.py: a scenario file's name must be"),
        (["--quick", "--rounds", "2"], "exclude each other"),
        (["--budget", "soon"], "not a duration: 'soon'"),
        (["--dtype", "bf16"], "unknown value of --dtype 'bf16'"),
        (["--memory-limit", "lots"], "not a size of memory: 'lots'"),
        (["--nonsense"], "No such option"),
        (["lst"], "No such command"),
        (["sweep"], "Missing argument 'SCENARIO'"),
        (["sweep", "mnist_dense", "--batch-size", "8"], "two sizes or more"),
        (["sweep", "mnist_dense", "--batch-size", "few"], "1..4096 (doubled from 1 on) or a list"),
        (["sweep", "mnist_dens"], "did you mean 'mnist_dense'"),
        (["--keep-env", "A=1"], "--keep-env takes the names of variables"),
        (["--keep-env", "PATH,NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE: this variable is not set here"),
        (["sweep", "mnist_dense", "--keep-env", "KERAS_BACKEND"], "kerasbench sets this variable itself"),
        (["explain", "mnist_dense", "--keep-env", "KERAS_HOME"], "kerasbench sets this variable itself"),
        (["--resume", "--keep-env", "PATH"], "--resume reuses the interrupted run's options"),
        (["--resume", "--scenario", "mnist_dense"], "--resume reuses the interrupted run's options"),
        (["run", "--protocol", "sweep"], "unknown protocol 'sweep'"),
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


def test_what_a_file_holds_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = made.record(made.trial(name="\x1b[2J\u202e"))
    store = Store.create(tmp_path, record.started)
    store.finish(dataclasses.replace(record, scenarios=[]))
    assert main.main(["report", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "which is none of its scenarios" in err
    assert all(line.isprintable() for line in err.splitlines())


def test_a_run_that_another_machine_began_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = dataclasses.replace(made.record(made.trial()), stopped_because=INTERRUPTED)
    Store.create(tmp_path, record.started).begin(record)
    assert main.main(["--resume", "--results", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "begun on another machine (Chip 9, 2 cores, 8 GiB, machine without an identifier), and this is " in err
    assert (out, err.count("\n"), len(list(tmp_path.iterdir()))) == ("", 1, 1)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kerasbench ")


@pytest.mark.parametrize("arguments", ["['--help']", "['list']", "['--version']", "['--backend', 'x']"])
def test_the_parent_imports_no_backend(arguments: str) -> None:
    code = PARENT_IMPORTS_NO_BACKEND.format(arguments=arguments)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=Path(__file__).parent.parent)
