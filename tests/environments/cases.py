"""Recorded facts, and the ways in which a test makes them sick."""

import dataclasses
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kerasbench.environments.doctor import BackendFacts, Facts, MachineFacts
from kerasbench.host.nvidia import Card
from kerasbench.protocol.columns import CPU, Device
from kerasbench.protocol.messages import FIND, Code, Failure, Inventory, ProbeReport

BACKENDS = ("jax", "tensorflow", "torch")
RECORDED = Path(__file__).parent / "recorded"
CREATE = shlex.join([sys.executable, "-m", "kerasbench", "env", "create", "--backend"])
KERAS = "'keras>=3.12' 'numpy>=1.26'"
NOTHING_HEARD = Failure(Code.UNAVAILABLE, "no interpreter at /gone/python", "correct the path in --python", "spawn")


def load(name: str) -> Facts:
    """Return the recorded facts of one machine."""
    facts = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    machine = msgspec.convert(facts["machine"], MachineFacts)
    return Facts(machine, list(map(_backend, facts["backends"])), facts["variables"])


def _backend(facts: dict[str, Any]) -> BackendFacts:
    inventory = msgspec.convert(facts["inventory"], Inventory)
    probe = msgspec.convert(facts["probe"], ProbeReport)
    return BackendFacts(facts["name"], facts["interpreter"], facts["source"], inventory, probe)


def on(facts: Facts, **different: Any) -> Facts:
    """Return the facts with something else said of the machine."""
    return dataclasses.replace(facts, machine=dataclasses.replace(facts.machine, **different))


def in_state(facts: Facts, **different: Any) -> Facts:
    """Return the facts with the machine in another state."""
    return on(facts, state=dataclasses.replace(facts.machine.state, **different))


def of(facts: Facts, *names: str) -> Facts:
    """Return the facts of some backends alone."""
    return dataclasses.replace(facts, backends=[backend for backend in facts.backends if backend.name in names])


def but(facts: Facts, name: str, **different: Any) -> Facts:
    """Return the facts with something else said of one backend."""
    return dataclasses.replace(
        facts,
        backends=[
            dataclasses.replace(backend, **different) if backend.name == name else backend for backend in facts.backends
        ],
    )


def installed(facts: Facts, name: str, packages: Mapping[str, str | None], **different: Any) -> Facts:
    """Return the facts with other packages beside one backend (None: not there), or another interpreter."""
    before = backend(facts, name).inventory
    assert isinstance(before, Inventory)
    after = {package: version for package, version in {**before.packages, **packages}.items() if version is not None}
    return but(facts, name, inventory=dataclasses.replace(before, packages=after, **different))


def sees(facts: Facts, name: str, devices: Sequence[Device] = (Device(CPU),), **versions: str) -> Facts:
    """Return the facts with a backend that sees other devices (the CPU alone), or tells other versions."""
    before = backend(facts, name).probe
    assert isinstance(before, ProbeReport)
    told = before.versions | {package.replace("_", "-"): version for package, version in versions.items()}
    return but(facts, name, probe=dataclasses.replace(before, devices=list(devices), versions=told))


def fails(facts: Facts, name: str, cause: str, detail: str = "", phase: str = "import") -> Facts:
    """Return the facts with a backend that does not load."""
    return but(facts, name, probe=Failure(Code.ERROR, cause, "the traceback is in the result file", phase, detail))


def gone(facts: Facts, name: str) -> Facts:
    """Return the facts with a backend that is not installed, and that nobody named an interpreter of."""
    left = installed(facts, name, {name: None})
    return but(fails(left, name, f"{name} is not installed", phase=FIND), name, source="")


def pip(facts: Facts, name: str, *arguments: str) -> str:
    """Return the pip command line of a backend's interpreter, its arguments as they stand in a shell."""
    return " ".join(["$", shlex.quote(backend(facts, name).interpreter), "-m pip install", *arguments])


def backend(facts: Facts, name: str) -> BackendFacts:
    (named,) = [backend for backend in facts.backends if backend.name == name]
    return named


def with_variables(facts: Facts, variables: dict[str, str]) -> Facts:
    return dataclasses.replace(facts, variables=variables)


def on_python_3_13(facts: Facts) -> Facts:
    """What ``.[all]`` installs there: TensorFlow 2.21 for the CPU, torch, jax-mps."""
    without = {"tensorflow": "2.21.0", "tensorflow-metal": None}
    for name in BACKENDS:
        facts = installed(facts, name, without, python="3.13.9")
    return sees(facts, "tensorflow", tensorflow="2.21.0")


def under_rosetta(facts: Facts) -> Facts:
    """An x86-64 Python on the M1, with what pip brings there: nothing that is new enough but plain Python packages."""
    for name in BACKENDS:
        facts = installed(gone(facts, name), name, {}, architecture="x86_64")
        facts = but(facts, name, interpreter="/usr/local/bin/python3.12")
    return facts


def driven_by(facts: Facts, driver: str) -> Facts:
    return on(facts, cards=[Card("NVIDIA H200", driver)])


def of_cpu_builds(facts: Facts) -> Facts:
    """What pip brings without an extra: torch's CPU index, plain jax, and TensorFlow, whose only build is for CUDA."""
    facts = installed(facts, "torch", {"torch": "2.15.0+cpu", "nvidia-cudnn-cu13": None})
    facts = installed(facts, "jax", {"jax-cuda13-plugin": None, "jax-cuda13-pjrt": None})
    facts = installed(facts, "tensorflow", {"nvidia-cudnn-cu12": None})
    facts = sees(facts, "torch", torch="2.15.0+cpu", torch_wheel="CPU")
    return sees(sees(facts, "jax", jax_wheel="CPU"), "tensorflow")


def with_both_cudnns(facts: Facts) -> Facts:
    """One environment for TensorFlow and torch, as pip resolves it without a word: the files are the same ten."""
    cudnns = {"nvidia-cudnn-cu12": "9.28.0.13", "nvidia-cudnn-cu13": "9.26.0.51"}
    both = {"tensorflow": "2.21.0", "torch": "2.15.0"} | cudnns
    return of(installed(installed(facts, "tensorflow", both), "torch", both), "tensorflow", "torch")
