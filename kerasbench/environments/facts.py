"""What a diagnosis rests on: each backend's interpreter as children found it, the machine, the shell's variables."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from kerasbench import backends, host
from kerasbench.backends import Target, Version
from kerasbench.environments.interpreters import Interpreters, runs
from kerasbench.environments.venvs import release
from kerasbench.host import Machine, linux, macos, nvidia
from kerasbench.host.noise import State, observe
from kerasbench.host.nvidia import Card
from kerasbench.processes import questions
from kerasbench.processes import variables as children_variables
from kerasbench.processes.questions import Tick, together
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, Inventory, ProbeReport

# These begin like others that matter. Terraform's may hold its tokens and passwords, which nobody wants to publish;
# images of containers say by *_VERSION what is in them; and KERAS_HOME is heeded, for data sets.
HARMLESS = ("TF_CLI_*", "TF_TOKEN_*", "TF_VAR_*", "*_VERSION", "KERAS_HOME")


@dataclass(frozen=True)
class BackendFacts:
    """One backend: what runs it, what is installed there, and what it said when it was imported.

    ``source`` is who named the interpreter; empty where nobody did.
    """

    name: str
    interpreter: str
    source: str
    inventory: Inventory | Failure
    probe: ProbeReport | Failure

    @property
    def packages(self) -> dict[str, str]:
        """Versions by name of what is installed; none where the interpreter did not answer."""
        return self.inventory.packages if isinstance(self.inventory, Inventory) else {}

    @property
    def installed(self) -> bool:
        # TensorFlow comes under several names (tensorflow-cpu, tf-nightly): what was imported is there.
        return backends.get(self.name).PACKAGE in self.packages or isinstance(self.probe, ProbeReport)

    @property
    def python(self) -> Version:
        return release(self.inventory.python) if isinstance(self.inventory, Inventory) else ()

    @property
    def sees_gpu(self) -> bool:
        return isinstance(self.probe, ProbeReport) and any(device.kind != "cpu" for device in self.probe.devices)


@dataclass(frozen=True)
class MachineFacts:
    """The machine beyond its fingerprint.

    ``cards`` are what the NVIDIA driver lists, ``makers`` those of the display controllers on the bus, ``macos`` its
    version (empty elsewhere). ``apple_silicon`` is the machine's, whatever the interpreter was built for.
    ``nvidia_package_missing``: there is an NVIDIA driver, and nothing here to ask it with.
    """

    fingerprint: Machine
    system: str
    state: State
    cards: list[Card]
    makers: list[str]
    apple_silicon: bool
    macos: Version
    nvidia_package_missing: bool = False


@dataclass(frozen=True)
class Facts:
    """Everything. ``variables`` are those of the shell that a child does not get; ``keras_json`` is the user's own."""

    machine: MachineFacts
    backends: list[BackendFacts]
    variables: dict[str, str]
    keras_json: dict[str, Any]

    def translated(self, backend: BackendFacts) -> bool:
        """Return whether Rosetta translates a backend's interpreter."""
        found = backend.inventory
        return self.machine.apple_silicon and isinstance(found, Inventory) and found.architecture == "x86_64"

    def target(self, backend: BackendFacts) -> Target:
        """Return what a backend's environment is, or should have been, made for."""
        here = self.machine
        found = backend.inventory
        own = found.architecture if isinstance(found, Inventory) else here.fingerprint.architecture
        # Rosetta calls the machine x86_64; what is to be installed is for the machine as it is.
        architecture = "arm64" if here.apple_silicon else own
        return Target(here.system, architecture, backend.python, True, nvidia.cuda_of(here.cards), here.macos)


def gather(names: Sequence[str], interpreters: Interpreters) -> Facts:
    """Look at the machine while it is quiet, then ask every backend's interpreter, in children side by side."""
    here = of_machine()

    def asked(name: str, tick: Tick) -> BackendFacts:
        return _ask(name, interpreters.of(Environment(name)), interpreters.source(Environment(name)), tick)

    found = together(asked, names, at_once=len(names))
    return Facts(here, found, held_back(os.environ), keras_json(os.environ))


def _ask(name: str, python: str, source: str, tick: Tick) -> BackendFacts:
    if not runs(python):
        gone = Failure(Code.UNAVAILABLE, f"no interpreter at {python}", f"mend the path in {source}", "spawn")
        return BackendFacts(name, python, source, gone, gone)
    return BackendFacts(
        name, python, source, questions.inventory(name, python, tick), questions.probe(name, python, tick)
    )


def of_machine() -> MachineFacts:
    apple = sys.platform == "darwin"
    return MachineFacts(
        fingerprint=host.fingerprint(),
        system=sys.platform,
        state=observe(),
        cards=nvidia.cards(),
        makers=[] if apple else linux.display_makers(),
        apple_silicon=apple and macos.is_apple_silicon(),
        macos=(macos.version() or ()) if apple else (),
        nvidia_package_missing=nvidia.package_missing(),
    )


def held_back(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that kerasbench does not pass on to children, because they change what is measured."""
    kept = sorted(children_variables.held_back(variables).items())
    return {name: value for name, value in kept if not any(fnmatchcase(name, pattern) for pattern in HARMLESS)}


def keras_json(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the user's keras.json, empty where there is none or it is none."""
    try:
        found = json.loads(
            (Path(variables.get("KERAS_HOME") or Path.home() / ".keras") / "keras.json").read_text("utf-8")
        )
    except (OSError, ValueError, RuntimeError):  # RuntimeError: there is no home
        return {}
    return found if isinstance(found, dict) else {}
