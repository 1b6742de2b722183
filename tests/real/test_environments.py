"""Environments that are really made, one on top of another, and the doctor on those that are there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench import backends
from kerasbench.environments import interpreters, sides
from kerasbench.processes import questions
from kerasbench.protocol.columns import Column, Environment, Options
from kerasbench.protocol.messages import Inventory
from tests.real import trials
from tests.whole_command import command

pytestmark = pytest.mark.real

ROOT = Path(__file__).parent.parent.parent
MADE = "jax"  # the smallest of the three; torch's usual wheel for Linux brings gigabytes of CUDA along
USUAL_KERAS = "keras==3.15.1"
NOT_NEEDED = {"kerasbench", "msgspec", "psutil", "click"}


def kerasbench(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    whole = command(folder, *arguments)
    return subprocess.run(whole, capture_output=True, text=True, cwd=folder, env=variables, check=False)


def test_an_environment_of_a_single_backend_is_made_and_measured_in(faults: Path, tmp_path: Path) -> None:
    constraints = (ROOT / "constraints.txt").read_text("utf-8")
    assert USUAL_KERAS in constraints
    (tmp_path / "constraints.txt").write_text(constraints.replace(USUAL_KERAS, trials.OTHER_KERAS))
    done = kerasbench(tmp_path, "env", "create", "--backend", MADE, "--cpu", "--constraint", "constraints.txt")
    assert done.returncode == 0, done.stderr
    assert [line.split(" ")[0] for line in done.stdout.splitlines()] == [MADE]
    named = interpreters.find([], backends.built_in(), tmp_path)
    locked = (tmp_path / ".venvs" / f"{MADE}.lock").read_text().splitlines()
    inventory = questions.inventory(named.of(Environment(MADE)))
    assert isinstance(inventory, Inventory) and inventory.prefix == str(tmp_path / ".venvs" / MADE)
    assert {trials.OTHER_KERAS, f"{MADE}=={inventory.packages[MADE]}"} <= set(locked)
    assert not inventory.packages.keys() & (NOT_NEEDED | set(backends.built_in()) - {MADE})

    outcome = trials.run(faults / "fine.py", MADE, python=named.of(Environment(MADE)), plan=trials.STEPS_ALONE)
    versions = trials.measured(outcome).resolved.versions
    assert (f"keras=={versions['keras']}", versions[MADE]) == (trials.OTHER_KERAS, inventory.packages[MADE])
    shutil.rmtree(tmp_path / ".venvs")  # pytest would keep its gigabytes


def test_a_version_on_top_is_measured_beside_the_one_below_and_computes_the_same(faults: Path) -> None:
    other = sides.overlay(sys.executable, [trials.OTHER_KERAS], print)
    options = [Options(environment=label) for label in ("other", "own")]
    entrants = [
        trials.member(faults / "fine.py", MADE, python, options=chosen)
        for python, chosen in zip((other, sys.executable), options, strict=True)
    ]
    measured = [trials.measured(outcome) for outcome in trials.together(entrants)]
    of_other, of_own = (measurement.resolved.versions for measurement in measured)
    assert f"keras=={of_other['keras']}" == trials.OTHER_KERAS != f"keras=={of_own['keras']}"
    assert of_other[MADE] == of_own[MADE]

    columns = [Column(MADE, "cpu", chosen) for chosen in options]
    assert trials.disagreements(dict(zip(columns, measured, strict=True))) == {}


@pytest.mark.weekly
def test_the_doctor_sees_every_backend_of_the_tests_own_environment(tmp_path: Path) -> None:
    done = kerasbench(tmp_path, "doctor", "--json")
    data = json.loads(done.stdout)
    errors = [finding for finding in data["findings"] if finding["severity"] == "error"]
    assert done.returncode == bool(errors), done.stderr
    # Beside an NVIDIA GPU one environment for all backends is an error, and the doctor is right to say so.
    assert not errors or data["machine"]["cards"]
    facts = {backend["name"]: backend for backend in data["backends"]}
    assert [*facts] == backends.built_in()
    for name, backend in facts.items():
        assert backend["probe"]["devices"][0]["platform"] == "cpu"
        assert backend["probe"]["versions"][name].startswith(backend["inventory"]["packages"][name].partition("+")[0])
