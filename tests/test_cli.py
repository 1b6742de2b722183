import json
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench import cli

PARENT_IMPORTS_NO_BACKEND = """
import sys
from kerasbench.cli import main
main({arguments})
found = {{"keras", "tensorflow", "torch", "jax", "scipy", "numpy"}} & sys.modules.keys()
assert not found, found
"""


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], ["run"]),
        (["--quick"], ["run", "--quick"]),
        (["run", "--quick"], ["run", "--quick"]),
        (["list"], ["list"]),
        (["--help"], ["--help"]),
        (["--version"], ["--version"]),
    ],
)
def test_run_is_the_default_command(given: list[str], meant: list[str]) -> None:
    assert cli.with_default_command(given) == meant


def test_lists_are_repeated_or_separated_by_commas() -> None:
    assert cli.split(["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    assert cli.split(None) == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--scenario", "mnist_dens"], "did you mean 'mnist_dense'"),
        (["--backend", "pytorch"], "did you mean 'torch'"),
        (["--device", "cuda"], "unknown device 'cuda'"),
        (["--scenario", "gone.py"], "gone.py: cannot be read"),
        (["--scenario", "../../x"], "unknown scenario '../../x'"),
        (["--scenario", "a\x1b[31m|b.py"], "a|b.py: a scenario file's name must be"),
        (["--quick", "--rounds", "2"], "exclude each other"),
        (["--rounds", "0"], "--rounds"),
        (["--budget", "soon"], "not a duration: 'soon'"),
        (["--dtype", "bf16"], "unknown value of --dtype 'bf16'"),
        (["--threads", "0"], "--threads takes whole numbers"),
        (["--memory-limit", "lots"], "not a size of memory: 'lots'"),
        (["--nonsense"], "No such option"),
        (["lst"], "No such command"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_code_1(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 1
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.startswith("kerasbench: ") and "\x1b" not in err
    assert err.count("\n") == 1
    assert not out


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kerasbench ")


def test_list_shows_every_builtin_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    table = capsys.readouterr().out
    assert cli.main(["list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"cifar10_cnn", "iris_mlp", "mnist_dense"} <= {one["name"] for one in data}
    assert all(one["name"] in table for one in data)


@pytest.mark.parametrize("arguments", ["['--help']", "['list']", "['--version']", "['--backend', 'x']"])
def test_the_parent_imports_no_backend(arguments: str) -> None:
    code = PARENT_IMPORTS_NO_BACKEND.format(arguments=arguments)
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=Path(__file__).parent.parent)
