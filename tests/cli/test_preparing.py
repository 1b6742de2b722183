"""Commands that prepare, with a machine and environments that are made up: doctor, new and env create."""

import json
import sys
from pathlib import Path

import pytest

from kerasbench.cli import main
from kerasbench.environments import interpreters, venvs
from kerasbench.environments.doctor import Facts
from kerasbench.environments.interpreters import Interpreters
from kerasbench.host import lock
from kerasbench.processes import questions
from kerasbench.protocol.columns import Device, Environment
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from tests.environments import cases

Environments = list[tuple[str, venvs.EnvironmentSpec]]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    """The environments that were asked for; each is made at once, and holds a jax that sees the CPU."""
    monkeypatch.chdir(tmp_path)
    found: Environments = []
    seen = ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [Device("cpu")])

    def create(name: str, wish: venvs.EnvironmentSpec) -> str:
        found.append((name, wish))
        return f"/made/{name}/python"

    monkeypatch.setattr(venvs, "create", create)
    monkeypatch.setattr(questions, "probe", lambda name, python: seen)
    return found


def test_env_create_makes_each_backend_s_environment_and_names_it(
    asked: Environments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["env", "create", "--backend", "torch,jax", "--cpu", "--constraint", "c.txt"]) == 0
    wish = venvs.EnvironmentSpec(gpu=False, constraints=Path("c.txt"))
    assert asked == [("torch", wish), ("jax", wish)]
    file = tmp_path / "kerasbench.toml"
    assert file.read_text() == '[python]\ntorch = "/made/torch/python"\njax = "/made/jax/python"\n'
    assert capsys.readouterr().out.splitlines()[1] == f"jax 0.10.2 sees cpu; {file} names it"


def test_env_create_makes_a_further_environment_with_a_label(
    asked: Environments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "pyproject.toml").touch()
    wanted = ["--with", "keras>=3.14,<3.15", "--with", "./keras"]
    assert main.main(["env", "create", "--backend", "jax", "--name", "keras-3.14", *wanted]) == 0
    assert asked == [
        ("jax", venvs.EnvironmentSpec(label="keras-3.14", extra=("keras>=3.14,<3.15", str(tmp_path / "keras"))))
    ]
    file = tmp_path / "kerasbench.toml"
    assert file.read_text() == '[python]\n"jax@keras-3.14" = "/made/jax/python"\n'
    assert capsys.readouterr().out == f"jax 0.10.2 sees cpu @keras-3.14; {file} names it\n"
    assert interpreters.find([], ["jax"], tmp_path).environments(["jax"]) == [Environment("jax", "keras-3.14")]


@pytest.mark.parametrize(
    ("arguments", "gpu"), [([], None), (["--cuda"], True), (["--cpu"], False), (["--cuda", "--force"], True)]
)
def test_env_create_is_for_all_backends_and_what_the_machine_has_unless_told_otherwise(
    arguments: list[str],
    gpu: bool | None,
    asked: Environments,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.main(["env", "create", *arguments]) == 0
    wish = venvs.EnvironmentSpec(gpu=gpu, force="--force" in arguments)
    assert asked == [(name, wish) for name in ("jax", "tensorflow", "torch")]
    (tmp_path / ".venvs" / "tensorflow").mkdir(parents=True)
    again = main.main(["env", "create"])  # which leaves an environment that is there
    assert (again, [name for name, _ in asked[3:]]) == (0, ["jax", "torch"])
    assert f"tensorflow: {Path('.venvs/tensorflow')} already exists, skipped" in capsys.readouterr().out


def test_env_create_names_an_environment_that_no_file_names(
    asked: Environments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / ".venvs" / "jax" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert main.main(["env", "create", "--backend", "jax"]) == 0  # whether it is whole, nobody knows
    assert asked == [] and "already exists, skipped" in capsys.readouterr().out
    (tmp_path / ".venvs" / "jax.lock").touch()
    assert main.main(["env", "create", "--backend", "jax", "--with", "keras==3.14"]) == 0
    assert "already exists, skipped" in capsys.readouterr().out
    assert main.main(["env", "create", "--backend", "jax"]) == 0
    assert asked == [] and "kerasbench.toml names it" in capsys.readouterr().out
    assert main.main(["env", "create", "--backend", "jax"]) == 0
    assert "already exists, skipped" in capsys.readouterr().out


CHOICES = [["--with", "keras==3.14"], ["--cuda"], ["--cpu"], ["--constraint", "x"]]


@pytest.mark.parametrize(
    ("file", "arguments", "complaint"),
    [
        ("", ["--cuda", "--cpu"], "exclude each other"),
        ("", ["--with", "./gone"], "./gone: neither a checkout"),
        *(("", [*more, "--locked"], "and --constraint, or --locked") for more in CHOICES),
        ("", ["--backend", ""], "--backend is empty"),
        ("python = 3\n", [], "allowed are results, budget, backend, and"),
    ],
)
def test_env_create_refuses_what_it_cannot_do_before_it_makes_anything(
    file: str,
    arguments: list[str],
    complaint: str,
    asked: Environments,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "kerasbench.toml").write_text(file)
    assert main.main(["env", "create", *arguments]) == 2
    assert complaint in capsys.readouterr().err
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_an_environment_that_does_not_load_is_an_error_and_is_named_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Failure(Code.UNAVAILABLE, "ImportError: no libcuda", "reinstall the backend", "import")
    monkeypatch.setattr(questions, "probe", lambda name, python: broken)
    assert main.main(["env", "create", "--backend", "jax"]) == 2
    assert capsys.readouterr().out.startswith("jax: made, but ImportError: no libcuda; for details: ")
    assert "jax" in (tmp_path / "kerasbench.toml").read_text()


@pytest.mark.parametrize(("lacks", "code"), [("", 0), ("torch", 0), ("keras", 1)])
def test_the_doctor_s_exit_code_is_that_of_an_error_alone(
    lacks: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cases.load("m1")
    found = cases.gone(found, "torch") if lacks == "torch" else cases.installed(found, "torch", {lacks: None})
    monkeypatch.setattr("kerasbench.environments.doctor.gather", lambda names, chosen: found)
    assert main.main(["doctor", "--json"]) == code
    assert len(json.loads(capsys.readouterr().out)["findings"]) == bool(lacks)
    assert main.main(["doctor"]) == code
    assert ("Nothing is wrong." in capsys.readouterr().out) is not bool(lacks)


def test_the_doctor_looks_at_the_backends_and_interpreters_that_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[list[str], str]] = []

    def gather(names: list[str], chosen: Interpreters) -> Facts:
        seen.append((names, chosen.of(Environment("torch"))))
        return cases.load("m1")

    monkeypatch.setattr("kerasbench.environments.doctor.gather", gather)
    assert main.main(["doctor", "--backend", "torch", "--python", f"torch={sys.executable}"]) == 0
    assert seen == [(["torch"], sys.executable)]
    said = capsys.readouterr().out
    assert main.main(["doctor", "--backend", "torch", "--insecure"]) == 0  # of no other machine
    assert capsys.readouterr().out == said


def test_the_doctor_waits_for_no_run_and_disturbs_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "kerasbench.environments.doctor.gather", lambda names, chosen: pytest.fail("it started children")
    )
    with lock.machine_lock():
        assert main.main(["doctor"]) == 2
    assert "another kerasbench run is measuring on this machine" in capsys.readouterr().err


def test_new_writes_a_scenario_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main.main(["new", "my_model.py"]) == 0
    assert "python -m kerasbench my_model.py --quick" in capsys.readouterr().out
    Path("my dir").mkdir()
    assert main.main(["new", "my dir/x.py"]) == 0
    assert "kerasbench 'my dir/x.py' --quick" in capsys.readouterr().out
    written = Path("my_model.py").read_text("utf-8")
    assert main.main(["new", "my_model.py"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "already exists" in err
    assert Path("my_model.py").read_text("utf-8") == written


def test_what_the_doctor_says_is_not_changed_by_the_encoding_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []
    monkeypatch.setattr("kerasbench.cli.preparing.print_document", printed.append)
    monkeypatch.setattr("kerasbench.environments.doctor.gather", lambda names, chosen: cases.load("m1"))
    assert main.main(["doctor", "--json"]) == 0
    assert json.loads(printed[0])["findings"] == []


def test_new_writes_two_workflows_where_a_yml_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "workflows" / "speed.yml"
    assert main.main(["new", str(file)]) == 0
    assert sorted(one.name for one in file.parent.iterdir()) == ["speed-comment.yml", "speed.yml"]
    assert "name: speed\n" in file.read_text() and capsys.readouterr().out.count("OWNER") == 2
    assert main.main(["new", str(file)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main.main(["new", str(tmp_path / "two words.yml")]) == 2
    assert "letters, digits, dashes and underscores" in capsys.readouterr().err


def test_new_writes_through_no_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, linked in (("speed.yml", "speed-comment.yml"), ("mine.py", "mine.py")):
        (tmp_path / linked).symlink_to(tmp_path / "elsewhere")
        assert main.main(["new", str(tmp_path / name)]) != 0
        assert f"{linked} already exists, and was left as it is" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.py", "speed-comment.yml"]
