"""Recorded facts, and the ways in which a test makes them sick."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from kerasbench.environments.doctor import BackendFacts, Facts, MachineFacts
from kerasbench.protocol.messages import FIND, Code, Failure, Inventory, ProbeReport

RECORDED = Path(__file__).parent / "recorded"
NOTHING_HEARD = Failure(Code.UNAVAILABLE, "no interpreter at /gone/python", "correct the path in --python", "spawn")


def load(name: str) -> Facts:
    facts = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    backends = []
    for told in facts["backends"]:
        inventory, probe = msgspec.convert(told["inventory"], Inventory), msgspec.convert(told["probe"], ProbeReport)
        backends.append(BackendFacts(told["name"], told["interpreter"], told["source"], inventory, probe))
    return Facts(msgspec.convert(facts["machine"], MachineFacts), backends, facts["variables"])


def on(facts: Facts, **different: Any) -> Facts:
    return replace(facts, machine=replace(facts.machine, **different))


def in_state(facts: Facts, **different: Any) -> Facts:
    return on(facts, state=replace(facts.machine.state, **different))


def backend(facts: Facts, name: str) -> BackendFacts:
    (named,) = [backend for backend in facts.backends if backend.name == name]
    return named


def but(facts: Facts, name: str, **different: Any) -> Facts:
    backends = [replace(backend, **different) if backend.name == name else backend for backend in facts.backends]
    return replace(facts, backends=backends)


def installed(facts: Facts, name: str, packages: Mapping[str, str | None], **different: Any) -> Facts:
    """Return the facts with other packages beside one backend (None: not there), or another interpreter."""
    before = backend(facts, name).inventory
    assert isinstance(before, Inventory)
    after = {package: version for package, version in {**before.packages, **packages}.items() if version is not None}
    return but(facts, name, inventory=replace(before, packages=after, **different))


def fails(facts: Facts, name: str, cause: str, detail: str = "", phase: str = "import") -> Facts:
    return but(facts, name, probe=Failure(Code.ERROR, cause, "the traceback is in the result file", phase, detail))


def gone(facts: Facts, name: str) -> Facts:
    """Return the facts with a backend that is not installed, and that nobody named an interpreter of."""
    left = installed(facts, name, {name: None})
    return but(fails(left, name, f"{name} is not installed", phase=FIND), name, source="")
