"""The doctor: how facts are gathered; test_rules.py has what its rules say of them."""

import sys
from pathlib import Path

import pytest

from kerasbench.backends import Target
from kerasbench.environments import doctor
from kerasbench.environments.doctor import BackendFacts
from kerasbench.environments.interpreters import Interpreters
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, Inventory, ProbeReport
from tests.environments import cases


def test_every_backend_is_asked_by_its_own_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "look_at_machine", lambda: cases.load("linux_cpu").machine)
    monkeypatch.setattr(questions, "inventory", lambda python, tick: Inventory("3.12.1", python, "x86_64", {}))
    monkeypatch.setattr(questions, "probe", lambda name, python, tick: ProbeReport(name, python, {}, []))
    mine = tmp_path / "python"
    mine.touch(mode=0o755)
    torch, tensorflow = Environment("torch"), Environment("tensorflow")
    sources = {torch: "--python", tensorflow: "/here/k.toml"}
    named = Interpreters({torch: str(mine), tensorflow: "/gone/python"}, sources)
    *there, gone = doctor.gather(["jax", "torch", "tensorflow"], named).backends
    assert there == [
        BackendFacts(name, python, source, Inventory("3.12.1", python, "x86_64", {}), ProbeReport(name, python, {}, []))
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
