"""The private names of Keras that kerasbench uses: those of the installed Keras, of the nightly, and of one without."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kerasbench import backends
from kerasbench.environments import sides
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code
from kerasbench.protocol.stages import TRAIN
from tests import made
from tests.real import trials

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
LOOKS_UP = ROOT / "tests" / "private_names.py"  # in a process of its own: it imports Keras
NIGHTLY = "keras-nightly"
PLACES = {"get_data_adapter", "_compute_attention", "dot_product_attention", "gru", "lstm"}
OWN = {
    "jax": {"JAXEpochIterator"},
    "tensorflow": set(),
    "torch": {"_transpose_spatial_inputs", "get_device", "max_pool"},
}


def look_up(python: str, backend: str) -> dict[str, Any]:
    variables = os.environ | backends.get(backend).ALWAYS | {"PYTHONPATH": str(ROOT)}
    command = [python, "-P", str(LOOKS_UP)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def require_all(found: dict[str, Any], backend: str) -> None:
    """Whatever is looked for is where it is looked for, and does what it is used for."""
    assert found["places"] == dict.fromkeys(PLACES | OWN[backend], True)
    assert (found["absent"], found["lost"]) == ([], [])
    several = found["several steps"]
    if backend == "torch" and isinstance(several, str):
        assert "steps_per_execution" in several
        several = found["single steps"]
    for trained in (found["single steps"], several):
        assert trained["bare"] == found["bare"]
        assert trained["code"]["lstm"] in {"loop", "fused", "cuDNN"}
        assert bool(trained["traces"]) is (backend == "tensorflow")


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.weekly] * (name != "torch")) for name in backends.built_in()]
)
def test_the_installed_keras_has_each_name_and_each_does_what_it_is_used_for(backend: str) -> None:
    require_all(look_up(sys.executable, backend), backend)


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=[pytest.mark.weekly] * (name != "torch")) for name in backends.built_in()]
)
def test_a_keras_without_them_is_measured_and_what_is_lost_is_said(backend: str, faults: Path) -> None:
    outcome = trials.run(faults / "moved.py", backend, plan=trials.TAKEN_APART)
    measurement = trials.measured(outcome)
    assert len(measurement.samples[TRAIN]) and measurement.peak_flops is not None
    assert (made.known(measurement.short_epoch).shuffle_ns, measurement.facts["recurrent"]) == (None, "LSTM: not known")
    missing = {"get_data_adapter", "lstm", *(["get_device"] if backend == "torch" else [])}
    missing |= {"gone"} if backend == "tensorflow" else set()
    assert {sentence.split(" has no ")[1].split(" ")[0] for sentence in measurement.lost} == missing


@pytest.mark.weekly
@pytest.mark.timeout(1800)
def test_the_nightly_keras_is_measured_on_every_backend(faults: Path, tmp_path: Path) -> None:
    """On top of this environment: so its frameworks are those that are here, and nothing large is fetched."""
    python = sides.overlay(sys.executable, [NIGHTLY], print)
    for backend in backends.built_in():
        found = look_up(python, backend)
        assert ".dev" in found["keras"]
        require_all(found, backend)
        for options in (Options(), Options(steps_per_execution=2)):
            plan = trials.TAKEN_APART if options == Options() else trials.STEPS_ALONE
            outcome = trials.run(faults / "fine.py", backend, options, python=python, plan=plan)
            if outcome.failure is not None and backend == "torch" and options != Options():
                assert outcome.failure.code is Code.UNSUPPORTED
                continue
            measurement = trials.measured(outcome)
            assert measurement.resolved.versions["keras"] == found["keras"]
            assert measurement.lost == []
