"""Commands that prepare, with a machine and environments that are made up: doctor, new and env create."""

import json
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench.cli import main
from kerasbench.environments import interpreters, venvs
from kerasbench.environments.interpreters import Interpreters
from kerasbench.environments.venvs import EnvironmentSpec
from kerasbench.host import lock
from kerasbench.processes import questions
from kerasbench.protocol.columns import Device, Environment
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from tests.environments import cases

GATHER = "kerasbench.environments.doctor.gather"
Environments = list[tuple[str, EnvironmentSpec]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    """The environments that were asked for; each is made at once, and holds a jax that sees the CPU."""
    monkeypatch.chdir(tmp_path)
    specs: Environments = []
    seen = ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [Device("cpu")])

    def create(name: str, spec: EnvironmentSpec) -> str:
        specs.append((name, spec))
        return f"/made/{name}/python"

    monkeypatch.setattr(venvs, "create", create)
    monkeypatch.setattr(questions, "probe", lambda name, python: seen)
    return specs


def create(*arguments: str) -> int:
    return main.main(["env", "create", *arguments])


def test_env_create_makes_each_backend_s_environment_and_names_it(
    asked: Environments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create("--backend", "torch,jax", "--cpu", "--constraint", "c.txt") == 0
    spec = EnvironmentSpec(gpu=False, constraints=Path("c.txt"))
    assert asked == [("torch", spec), ("jax", spec)]
    file = Path("kerasbench.toml").absolute()
    assert file.read_text() == '[python]\ntorch = "/made/torch/python"\njax = "/made/jax/python"\n'
    assert capsys.readouterr().out.splitlines()[1] == f"jax 0.10.2 sees cpu; {file} names it"


def test_env_create_makes_a_further_environment_with_a_label(
    asked: Environments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("keras").mkdir()
    Path("keras/pyproject.toml").touch()
    assert (
        create(*["--backend", "jax", "--name", "keras-3.14", "--with", "keras>=3.14,<3.15", "--with", "./keras"]) == 0
    )
    assert asked == [("jax", EnvironmentSpec(label="keras-3.14", extra=("keras>=3.14,<3.15", str(tmp_path / "keras"))))]
    file = tmp_path / "kerasbench.toml"
    assert file.read_text() == '[python]\n"jax@keras-3.14" = "/made/jax/python"\n'
    assert capsys.readouterr().out == f"jax 0.10.2 sees cpu @keras-3.14; {file} names it\n"
    assert interpreters.find([], ["jax"], tmp_path).environments(["jax"]) == [Environment("jax", "keras-3.14")]


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        ([], EnvironmentSpec()),
        (["--cuda"], EnvironmentSpec(gpu=True)),
        (["--cpu"], EnvironmentSpec(gpu=False)),
        (["--force"], EnvironmentSpec(force=True)),
    ],
)
def test_env_create_is_for_all_backends_and_what_the_machine_has_unless_told_otherwise(
    arguments: list[str], spec: EnvironmentSpec, asked: Environments, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(*arguments) == 0
    assert asked == [(name, spec) for name in ("jax", "tensorflow", "torch")]
    Path(".venvs/tensorflow").mkdir(parents=True)
    assert create() == 0  # which leaves an environment that is there
    assert [name for name, _ in asked[3:]] == ["jax", "torch"]
    assert "tensorflow: .venvs/tensorflow already exists, skipped" in capsys.readouterr().out


def test_env_create_names_an_environment_that_no_file_names(
    asked: Environments, capsys: pytest.CaptureFixture[str]
) -> None:
    python = Path(".venvs/jax/bin/python")
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)

    def said(*arguments: str) -> str:
        assert create("--backend", "jax", *arguments) == 0
        return capsys.readouterr().out

    assert "already exists, skipped" in said()  # whether it is whole, nobody knows
    Path(".venvs/jax.lock").touch()
    assert "already exists, skipped" in said("--with", "keras==3.14")
    assert "kerasbench.toml names it" in said()
    assert "already exists, skipped" in said()
    assert asked == []


@pytest.mark.parametrize(
    ("file", "arguments", "complaint"),
    [
        ("", "--cuda --cpu", "exclude each other"),
        ("", "--with ./gone", "./gone: neither a checkout"),
        *(
            ("", f"{choice} --locked", "and --constraint, or --locked")
            for choice in ("--with keras==3.14", "--cuda", "--cpu", "--constraint x")
        ),
        ("", "--backend=", "--backend is empty"),
        ("python = 3\n", "", "allowed are results, budget, backend, and"),
    ],
)
def test_env_create_refuses_what_it_cannot_do_before_it_makes_anything(
    file: str, arguments: str, complaint: str, asked: Environments, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("kerasbench.toml").write_text(file)
    assert create(*arguments.split()) == 2
    assert complaint in capsys.readouterr().err
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_an_environment_that_does_not_load_is_an_error_and_is_named_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Failure(Code.UNAVAILABLE, "ImportError: no libcuda", "reinstall the backend", "import")
    monkeypatch.setattr(questions, "probe", lambda name, python: broken)
    assert create("--backend", "jax") == 2
    assert capsys.readouterr().out.startswith("jax: made, but ImportError: no libcuda; for details: ")
    assert "jax" in Path("kerasbench.toml").read_text()


@pytest.mark.parametrize(("lacks", "code"), [("", 0), ("torch", 0), ("keras", 1)])
def test_the_doctor_s_exit_code_is_that_of_an_error_alone(
    lacks: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    m1, printed = cases.load("m1"), list[str]()
    facts = cases.gone(m1, "torch") if lacks == "torch" else cases.installed(m1, "torch", {lacks: None})
    monkeypatch.setattr(GATHER, lambda names, chosen: facts)
    monkeypatch.setattr("kerasbench.cli.preparing.print_document", printed.append)  # in whichever encoding
    assert main.main(["doctor", "--json"]) == main.main(["doctor"]) == code
    assert len(json.loads(printed[0])["findings"]) == bool(lacks)
    assert ("Nothing is wrong." in printed[1]) is not bool(lacks)


def test_the_doctor_looks_at_the_backends_and_interpreters_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = Mock(return_value=cases.load("m1"))
    monkeypatch.setattr(GATHER, gather)
    words = ["--backend", "torch", "--python", f"torch={sys.executable}", "--insecure"]  # which is of other machines
    assert main.main(["doctor", *words]) == 0
    names, chosen = gather.call_args.args
    assert isinstance(chosen, Interpreters)
    assert (names, chosen.of(Environment("torch"))) == (["torch"], sys.executable)


def test_the_doctor_waits_for_no_run_and_disturbs_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gather = Mock()
    monkeypatch.setattr(GATHER, gather)
    with lock.machine_lock():
        assert main.main(["doctor"]) == 2
    assert "another kerasbench run is measuring on this machine" in capsys.readouterr().err
    gather.assert_not_called()


@pytest.mark.parametrize(
    ("file", "files", "said"),
    [
        ("my_model.py", ["my_model.py"], "python -m kerasbench my_model.py --quick"),
        ("my dir/x.py", ["x.py"], "kerasbench 'my dir/x.py' --quick"),
        ("workflows/speed.yml", ["speed-comment.yml", "speed.yml"], "speed-comment.yml: replace OWNER"),
    ],
)
def test_new_writes_once(
    file: str,
    files: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my dir").mkdir()
    assert main.main(["new", file]) == 0
    assert said in capsys.readouterr().out
    assert sorted(path.name for path in Path(file).parent.iterdir() if path.is_file()) == files
    Path(file).write_text("mine")
    assert main.main(["new", file]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and "already exists" in err
    assert Path(file).read_text() == "mine"


def test_new_writes_through_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, linked in (("speed.yml", "speed-comment.yml"), ("mine.py", "mine.py")):
        (tmp_path / linked).symlink_to(tmp_path / "elsewhere")
        assert main.main(["new", str(tmp_path / name)]) != 0
        assert f"{linked} already exists, and was left as it is" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.py", "speed-comment.yml"]
