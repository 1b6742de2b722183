import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench import cli
from kerasbench.children import questions
from kerasbench.commands.parameters import split
from kerasbench.doctor.facts import Facts
from kerasbench.environments import venvs
from kerasbench.environments.interpreters import Interpreters
from kerasbench.exchange.devices import Device
from kerasbench.exchange.messages import Code, Failure, ProbeReport
from kerasbench.machine import lock
from kerasbench.results.record import INTERRUPTED
from kerasbench.results.store import Store
from tests import made
from tests.doctor import cases

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
    assert split(["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    assert split(None) == []


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
        (["--rounds", "0"], "--rounds"),
        (["--seed", "-1"], "--seed"),
        (["--budget", "soon"], "not a duration: 'soon'"),
        (["--dtype", "bf16"], "unknown value of --dtype 'bf16'"),
        (["--threads", "0"], "--threads takes whole numbers"),
        (["--memory-limit", "lots"], "not a size of memory: 'lots'"),
        (["--nonsense"], "No such option"),
        (["lst"], "No such command"),
        (["sweep"], "Missing argument 'SCENARIO'"),
        (["sweep", "mnist_dense", "--batch-size", "64..1"], "say the smaller first"),
        (["sweep", "mnist_dense", "--batch-size", "8"], "two sizes or more"),
        (["sweep", "mnist_dense", "--batch-size", "few"], "1..4096 (doubled from 1 on) or a list"),
        (["sweep", "mnist_dense", "--width", "wide"], "--width takes factors"),
        (["sweep", "mnist_dens"], "did you mean 'mnist_dense'"),
        (["--keep-env", "A=1"], "--keep-env takes the names of variables"),
        (["--keep-env", "PATH,NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE: this variable is not set here"),
        (["sweep", "mnist_dense", "--keep-env", "KERAS_BACKEND"], "kerasbench sets this variable itself"),
        (["explain", "mnist_dense", "--keep-env", "KERAS_HOME"], "kerasbench sets this variable itself"),
        (["--resume", "--keep-env", "PATH"], "--resume goes on with what the interrupted run was asked for"),
        (["run", "--protocol", "sweep"], "unknown protocol 'sweep'"),
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


def test_what_a_file_holds_moves_no_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = made.record(made.trial(name="\x1b[2J\u202e"))
    store = Store.create(tmp_path, record.started)
    store.finish(dataclasses.replace(record, scenarios=[]))
    assert cli.main(["report", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "which is none of its scenarios" in err
    assert all(line.isprintable() for line in err.splitlines())


def test_a_run_that_another_machine_began_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = dataclasses.replace(made.record(made.trial()), stopped_because=INTERRUPTED)
    Store.create(tmp_path, record.started).begin(record)
    assert cli.main(["--resume", "--results", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "begun on another machine (Chip 9, 2 cores, 8 GiB, host not recorded), and this is " in err
    assert (out, err.count("\n"), len(list(tmp_path.iterdir()))) == ("", 1, 1)


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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, venvs.Wish]]:
    """The environments that were asked for; each is made at once, and holds a jax that sees the CPU."""
    found: list[tuple[str, venvs.Wish]] = []
    seen = ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [Device("cpu")])
    monkeypatch.setattr(venvs, "create", lambda name, wish: found.append((name, wish)) or f"/made/{name}/python")
    monkeypatch.setattr(questions, "probe", lambda name, python: seen)
    return found


def test_env_create_makes_each_backend_s_environment_and_names_it(
    asked: list[tuple[str, venvs.Wish]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["env", "create", "--backend", "torch,jax", "--cpu", "--constraint", "c.txt"]) == 0
    wish = venvs.Wish(gpu=False, constraints=Path("c.txt"))
    assert asked == [("torch", wish), ("jax", wish)]
    file = tmp_path / "kerasbench.toml"
    assert file.read_text() == '[python]\ntorch = "/made/torch/python"\njax = "/made/jax/python"\n'
    assert capsys.readouterr().out.splitlines()[1] == f"jax 0.10.2 sees cpu; {file} names it"


@pytest.mark.parametrize(
    ("arguments", "gpu"), [([], None), (["--cuda"], True), (["--cpu"], False), (["--cuda", "--force"], True)]
)
def test_env_create_is_for_all_backends_and_what_the_machine_has_unless_told_otherwise(
    arguments: list[str],
    gpu: bool | None,
    asked: list[tuple[str, venvs.Wish]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["env", "create", *arguments]) == 0
    wish = venvs.Wish(gpu=gpu, force="--force" in arguments)
    assert asked == [(name, wish) for name in ("jax", "tensorflow", "torch")]


def test_env_create_leaves_an_environment_that_is_there_and_makes_the_others(
    asked: list[tuple[str, venvs.Wish]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venvs" / "tensorflow").mkdir(parents=True)
    assert cli.main(["env", "create"]) == 0
    assert [name for name, _ in asked] == ["jax", "torch"]
    assert f"tensorflow: {Path('.venvs/tensorflow')} is there already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "arguments", "complaint"),
    [
        ("", ["--cuda", "--cpu"], "exclude each other"),
        ("", ["--backend", "pytorch"], "did you mean 'torch'"),
        ("python = 3\n", [], "kerasbench knows one table here"),
        ("[python", [], "not TOML"),
    ],
)
def test_env_create_refuses_what_it_cannot_do_before_it_makes_anything(
    file: str,
    arguments: list[str],
    complaint: str,
    asked: list[tuple[str, venvs.Wish]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kerasbench.toml").write_text(file)
    assert cli.main(["env", "create", *arguments]) == 1
    assert complaint in capsys.readouterr().err
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_an_environment_that_does_not_load_is_an_error_and_is_named_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = Failure(Code.UNAVAILABLE, "ImportError: no libcuda", "reinstall the backend", "import")
    monkeypatch.setattr(questions, "probe", lambda name, python: broken)
    assert cli.main(["env", "create", "--backend", "jax"]) == 1
    assert capsys.readouterr().out.startswith("jax: made, but ImportError: no libcuda; python -m kerasbench doctor")
    assert "jax" in (tmp_path / "kerasbench.toml").read_text()


@pytest.mark.parametrize(("lacks", "code"), [("", 0), ("torch", 0), ("keras", 1)])
def test_the_doctor_s_exit_code_is_that_of_an_error_alone(
    lacks: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cases.load("m1")
    found = cases.gone(found, "torch") if lacks == "torch" else cases.installed(found, "torch", {lacks: None})
    monkeypatch.setattr("kerasbench.doctor.facts.gather", lambda names, chosen: found)
    assert cli.main(["doctor", "--json"]) == code
    assert len(json.loads(capsys.readouterr().out)["findings"]) == bool(lacks)
    assert cli.main(["doctor"]) == code
    assert ("Nothing is wrong." in capsys.readouterr().out) is not bool(lacks)


def test_the_doctor_looks_at_the_backends_and_interpreters_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], str]] = []

    def gather(names: list[str], chosen: Interpreters) -> Facts:
        seen.append((names, chosen.of("torch")))
        return cases.load("m1")

    monkeypatch.setattr("kerasbench.doctor.facts.gather", gather)
    assert cli.main(["doctor", "--backend", "torch", "--python", f"torch={sys.executable}"]) == 0
    assert seen == [(["torch"], sys.executable)]


def test_the_doctor_waits_for_no_run_and_disturbs_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kerasbench.doctor.facts.gather", lambda names, chosen: pytest.fail("it started children"))
    with lock.machine_lock():
        assert cli.main(["doctor"]) == 1
    assert "another kerasbench run is measuring on this machine" in capsys.readouterr().err
