"""How facts are gathered, and what follows from them."""

from pathlib import Path

import pytest

from kerasbench.backends import Target
from kerasbench.environments import facts
from kerasbench.environments.interpreters import Interpreters
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, Inventory, ProbeReport
from tests.environments import cases

JAX, TORCH = Environment("jax"), Environment("torch")

INVENTORY = Inventory("3.12.1", "/env", "x86_64", {"jax": "0.11.2"}, [])
PROBE = ProbeReport("jax", "3.12.1", {"jax": "0.11.2"}, [])


@pytest.fixture
def _no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "of_machine", lambda: cases.load("linux_cpu").machine)
    monkeypatch.setattr(facts, "keras_json", lambda variables: {})


@pytest.mark.usefixtures("_no_machine")
def test_every_backend_is_asked_twice_by_its_own_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "python"
    own.write_text("")
    own.chmod(0o755)
    asked: list[tuple[str, str, str]] = []

    def inventory(name: str, python: str, tick: object) -> Inventory:
        asked.append(("inventory", name, python))
        return INVENTORY

    def probe(name: str, python: str, tick: object) -> ProbeReport:
        asked.append(("probe", name, python))
        return PROBE

    monkeypatch.setattr(questions, "inventory", inventory)
    monkeypatch.setattr(questions, "probe", probe)
    found = facts.gather(["jax", "torch"], Interpreters({TORCH: str(own)}, {TORCH: "--python"}))
    this = Interpreters().of(JAX)
    assert sorted(asked) == [
        ("inventory", "jax", this), ("inventory", "torch", str(own)),
        ("probe", "jax", this), ("probe", "torch", str(own)),
    ]  # fmt: skip
    assert [(one.name, one.interpreter, one.source) for one in found.backends] == [
        ("jax", this, ""), ("torch", str(own), "--python"),
    ]  # fmt: skip
    assert all((one.inventory, one.probe) == (INVENTORY, PROBE) for one in found.backends)


@pytest.mark.usefixtures("_no_machine")
def test_an_interpreter_that_is_not_there_is_not_asked() -> None:
    found = facts.gather(["jax"], Interpreters({JAX: "/gone/python"}, {JAX: "/here/kerasbench.toml"}))
    said = Failure(
        Code.UNAVAILABLE, "no interpreter at /gone/python", "mend the path in /here/kerasbench.toml", "spawn"
    )
    (one,) = found.backends
    assert (one.inventory, one.probe) == (said, said)
    assert (one.packages, one.installed, one.python, one.sees_gpu) == ({}, False, (), False)


def test_only_variables_that_are_kept_from_trials_are_told() -> None:
    set_here = {"PATH": "/bin", "HOME": "/home/user", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "0"}
    set_here |= {"GITHUB_TOKEN": "secret", "NCCL_VERSION": "2.27", "KERAS_HOME": "/data"}
    assert facts.held_back(set_here) == {"CUDA_VISIBLE_DEVICES": "0", "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("name", ["TF_VAR_password", "TF_TOKEN_app_terraform_io", "TF_CLI_CONFIG_FILE"])
def test_the_secrets_of_a_program_whose_variables_begin_like_tensorflow_s_are_not_told(name: str) -> None:
    assert facts.held_back({name: "secret", "TF_XLA_FLAGS": "--x"}) == {"TF_XLA_FLAGS": "--x"}


@pytest.mark.parametrize(
    ("text", "found"), [('{"floatx": "float64"}', {"floatx": "float64"}), ("[]", {}), ("{", {}), (None, {})]
)
def test_keras_json_is_read_where_it_is_one(tmp_path: Path, text: str | None, found: dict[str, str]) -> None:
    if text is not None:
        (tmp_path / "keras.json").write_text(text)
    assert facts.keras_json({"KERAS_HOME": str(tmp_path)}) == found


def test_a_target_is_what_a_backend_s_environment_is_for() -> None:
    box, mac = cases.load("cuda"), cases.load("m1")
    assert box.target(box.backends[0]) == Target("linux", "x86_64", (3, 12, 12), True, 13, ())
    assert mac.target(mac.backends[0]) == Target("darwin", "arm64", (3, 12, 12), True, None, (15, 7))


def test_a_machine_without_an_answer_from_the_interpreter_is_a_target_all_the_same() -> None:
    facts = cases.but(cases.load("cuda"), "jax", inventory=cases.NOTHING_HEARD)
    assert facts.target(facts.backends[0]) == Target("linux", "x86_64", (), True, 13, ())


def test_rosetta_is_told_by_the_interpreter_and_the_machine_together() -> None:
    mac = cases.installed(cases.load("m1"), "jax", {}, architecture="x86_64")
    assert [mac.translated(one) for one in mac.backends] == [True, False, False]
    box = cases.load("cuda")
    assert not any(box.translated(one) for one in box.backends)
