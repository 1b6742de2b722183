"""The doctor: how facts are gathered; test_rules.py has what its rules say of them."""

import shlex
import sys
from pathlib import Path

import pytest

from kerasbench.backends import Target
from kerasbench.cli.preparing import create
from kerasbench.environments import doctor
from kerasbench.environments.doctor import BackendFacts
from kerasbench.environments.interpreters import Interpreters
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, Inventory, ProbeReport
from tests.environments import cases


def test_every_backend_is_asked_by_its_own_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def inventory(python: str, tick: object = None) -> Inventory:
        return Inventory("3.12.1", python, "x86_64", {})

    def probe(name: str, python: str, tick: object = None) -> ProbeReport:
        return ProbeReport(name, python, {}, [])

    monkeypatch.setattr(doctor, "look_at_machine", lambda: cases.load("linux_cpu").machine)
    monkeypatch.setattr(questions, "inventory", inventory)
    monkeypatch.setattr(questions, "probe", probe)
    mine = tmp_path / "python"
    mine.touch(mode=0o755)
    torch, tensorflow = Environment("torch"), Environment("tensorflow")
    named = Interpreters(
        {torch: str(mine), tensorflow: "/gone/python"}, {torch: "--python", tensorflow: "/here/k.toml"}
    )
    *there, gone = doctor.gather(["jax", "torch", "tensorflow"], named).backends
    assert there == [
        BackendFacts(name, python, source, inventory(python), probe(name, python))
        for name, python, source in (("jax", sys.executable, ""), ("torch", str(mine), "--python"))
    ]
    said = Failure(Code.UNAVAILABLE, "no interpreter at /gone/python", "correct the path in /here/k.toml", "spawn")
    assert (gone.inventory, gone.probe) == (said, said)
    assert (gone.packages, gone.installed, gone.python, gone.sees_gpu) == ({}, False, (), False)


def test_a_target_is_what_a_backend_s_environment_is_for() -> None:
    box, mac = cases.load("cuda"), cases.load("m1")
    assert box.target(box.backends[0]) == Target("linux", "x86_64", (3, 12, 12), True, 13, ())
    assert mac.target(mac.backends[0]) == Target("darwin", "arm64", (3, 12, 12), True, None, (15, 7))
    silent = cases.but(box, "jax", inventory=cases.NOTHING_HEARD)
    assert silent.target(silent.backends[0]) == Target("linux", "x86_64", (), True, 13, ())


def test_an_environment_s_command_means_what_it_says() -> None:
    words = shlex.split(doctor.create("torch", "--cuda", "--interpreter", "/my python/bin/python3.12"))
    given = create.make_context("create", words[5:]).params
    assert (list(given["backends"]), given["cuda"], given["cpu"]) == (["torch"], True, False)
    assert (given["interpreter"], given["force"]) == ("/my python/bin/python3.12", True)
