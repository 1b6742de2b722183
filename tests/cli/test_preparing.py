"""Commands that prepare, with a machine and environments that are made up: doctor, new and env create."""

import json
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench.environments import interpreters, venvs
from kerasbench.environments.venvs import EnvironmentSpec
from kerasbench.host import lock
from kerasbench.processes import questions
from kerasbench.protocol.columns import Device, Environment
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from tests.conftest import Shell
from tests.environments import cases

Environments = list[tuple[str, EnvironmentSpec]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Environments:
    """The environments that were asked for; each is made at once, and holds a jax that sees the CPU."""
    specs: Environments = []
    seen = ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [Device("cpu")])

    def create(name: str, spec: EnvironmentSpec) -> str:
        specs.append((name, spec))
        return f"/made/{name}/python"

    monkeypatch.setattr(venvs, "create", create)
    monkeypatch.setattr(questions, "probe", lambda name, python: seen)
    return specs


EVERY = ["jax", "tensorflow", "torch"]


@pytest.mark.parametrize(
    ("arguments", "spec", "names"),
    [
        ("", EnvironmentSpec(), EVERY),  # for what the machine has
        ("--cuda", EnvironmentSpec(gpu=True), EVERY),
        ("--cpu --backend torch,jax", EnvironmentSpec(gpu=False), ["torch", "jax"]),
        ("--force --constraint c.txt", EnvironmentSpec(force=True, constraints=Path("c.txt")), EVERY),
    ],
)
def test_env_create_makes_each_backend_s_environment_and_names_it(
    arguments: str, spec: EnvironmentSpec, names: list[str], shell: Shell, asked: Environments
) -> None:
    out, file = shell.out("env", "create", *arguments.split()), Path("kerasbench.toml").absolute()
    assert asked == [(name, spec) for name in names]
    assert file.read_text() == "[python]\n" + "".join(f'{name} = "/made/{name}/python"\n' for name in names)
    assert out == f"jax 0.10.2 sees cpu; {file} names it\n" * len(names)


def test_env_create_makes_an_environment_of_a_runtime_alone(shell: Shell, asked: Environments) -> None:
    out, file = shell.out("env", "create", "--runtime", "openvino"), Path("kerasbench.toml").absolute()
    assert asked == [("openvino", EnvironmentSpec())]
    assert out == f"openvino: {file} names it\n"
    assert file.read_text() == '[python]\nopenvino = "/made/openvino/python"\n'
    named = interpreters.find([], ["jax", "openvino"])
    assert named.of(Environment("jax"), "openvino") == "/made/openvino/python"
    assert named.of(Environment("jax"), "onnxruntime") == named.of(Environment("jax")) == sys.executable


def test_env_create_makes_a_further_environment_with_a_label(shell: Shell, asked: Environments) -> None:
    checkout, file = Path("keras").absolute(), Path("kerasbench.toml").absolute()
    checkout.mkdir()
    (checkout / "pyproject.toml").touch()
    wanted = ["--with", "keras>=3.14,<3.15", "--with", "./keras"]
    out = shell.out("env", "create", "--backend", "jax", "--name", "keras-3.14", *wanted)
    assert asked == [("jax", EnvironmentSpec(label="keras-3.14", extra=("keras>=3.14,<3.15", str(checkout))))]
    assert file.read_text() == '[python]\n"jax@keras-3.14" = "/made/jax/python"\n'
    assert out == f"jax 0.10.2 sees cpu @keras-3.14; {file} names it\n"
    assert interpreters.find([], ["jax"]).environments(["jax"]) == [Environment("jax", "keras-3.14")]


def test_env_create_names_an_environment_that_no_file_names(shell: Shell, asked: Environments) -> None:
    python = Path(".venvs/jax/bin/python")
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    ask = ("env", "create", "--backend", "jax")
    skipped = "jax: .venvs/jax already exists, skipped"
    assert skipped in shell.out(*ask)  # whether it is whole, nobody knows
    Path(".venvs/jax.lock").touch()
    assert skipped in shell.out(*ask, "--with", "keras==3.14")
    assert "kerasbench.toml names it" in shell.out(*ask)
    assert skipped in shell.out(*ask)
    assert asked == []
    shell.out("env", "create")  # for the others
    assert [name for name, _ in asked] == EVERY[1:]


@pytest.mark.parametrize(
    ("file", "arguments", "complaint"),
    [
        ("", "--cuda --cpu", "exclude each other"),
        ("", "--runtime pt2", "unknown runtime 'pt2'"),
        ("", "--runtime openvino --name old", "--name is for environments of backends"),
        ("", "--with ./gone", "./gone: neither a checkout"),
        *(
            ("", f"{choice} --locked", "and --constraint, or --locked")
            for choice in ("--with keras==3.14", "--cuda", "--cpu", "--constraint x")
        ),
        ("", "--backend=", "--backend is empty"),
        ("python = 3\n", "", "allowed are results, budget, backend, and"),
    ],
)
def test_env_create_refusals(file: str, arguments: str, complaint: str, shell: Shell, asked: Environments) -> None:
    Path("kerasbench.toml").write_text(file)
    assert complaint in shell.refused("env", "create", *arguments.split())
    assert asked == []


@pytest.mark.usefixtures("asked")
def test_an_environment_that_does_not_load_is_named_all_the_same(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Failure(Code.UNAVAILABLE, "ImportError: no libcuda", "reinstall the backend", "import")
    monkeypatch.setattr(questions, "probe", lambda name, python: broken)
    code, out, _ = shell("env", "create", "--backend", "jax")
    assert code == 2 and out.startswith("jax: made, but ImportError: no libcuda; for details: ")
    assert "jax" in Path("kerasbench.toml").read_text()


@pytest.fixture
def gather(monkeypatch: pytest.MonkeyPatch) -> Mock:
    mock = Mock(return_value=cases.load("m1"))
    monkeypatch.setattr("kerasbench.environments.doctor.gather", mock)
    return mock


@pytest.mark.parametrize(("lacks", "code"), [("", 0), ("torch", 0), ("keras", 1)])
def test_the_doctor_s_exit_code_is_that_of_an_error_alone(lacks: str, code: int, shell: Shell, gather: Mock) -> None:
    m1 = cases.load("m1")
    gather.return_value = cases.gone(m1, "torch") if lacks == "torch" else cases.installed(m1, "torch", {lacks: None})
    ended, out, _ = shell("doctor", "--json")
    assert (ended, len(json.loads(out)["findings"])) == (code, bool(lacks))
    ended, out, _ = shell("doctor")
    assert (ended, "Nothing is wrong." in out) == (code, not lacks)
    assert "\nTo contribute: no results of Apple M1" in out


@pytest.mark.usefixtures("gather")
def test_what_the_doctor_says_is_a_document_in_any_encoding(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    document = Mock()
    monkeypatch.setattr("kerasbench.cli.printing.print_document", document)
    assert shell.out("doctor", "--json") == ""
    document.assert_called_once()


def test_the_doctor_looks_at_the_backends_and_interpreters_that_are_named(shell: Shell, gather: Mock) -> None:
    python = f"torch={sys.executable}"
    shell.out("doctor", "--backend", "torch", "--python", python, "--insecure")  # which is of other machines
    names, chosen = gather.call_args.args
    assert (names, chosen.of(Environment("torch"))) == (["torch"], sys.executable)


def test_the_doctor_waits_for_no_run_and_disturbs_none(shell: Shell, gather: Mock) -> None:
    with lock.machine_lock():
        assert "another kerasbench run is measuring on this machine" in shell.refused("doctor")
    gather.assert_not_called()


@pytest.mark.parametrize(
    ("file", "files", "said"),
    [
        ("my_model.py", ["my_model.py"], "python -m kerasbench my_model.py --quick"),
        ("my dir/x.py", ["x.py"], "kerasbench 'my dir/x.py' --quick"),
        ("workflows/speed.yml", ["speed-comment.yml", "speed.yml"], "speed-comment.yml: replace OWNER"),
    ],
)
def test_new_writes_once(file: str, files: list[str], said: str, shell: Shell) -> None:
    Path("my dir").mkdir()
    assert said in shell.out("new", file)
    assert sorted(path.name for path in Path(file).parent.iterdir() if path.is_file()) == files
    Path(file).write_text("mine")
    assert "already exists" in shell.refused("new", file)
    assert Path(file).read_text() == "mine"


@pytest.mark.parametrize(("name", "linked"), [("speed.yml", "speed-comment.yml"), ("mine.py", "mine.py")])
def test_new_writes_through_no_link(name: str, linked: str, shell: Shell) -> None:
    Path(linked).symlink_to("elsewhere")
    assert f"{linked} already exists, and was left as it is" in shell.refused("new", name)
    assert [str(file) for file in Path().iterdir()] == [linked]
