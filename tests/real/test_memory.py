"""Memory by phase: what a model holds is found in the phase in which it takes it, and in none before."""

from pathlib import Path

import pytest

from kerasbench.analysis.metrics import BY_NAME, MEMORY_PHASES
from tests import made
from tests.real import trials

pytestmark = [pytest.mark.real, pytest.mark.weekly]

PLANTED = {"build": "build", "call": "first_step", "predict": "predict_one"}
MOST_APART_MIB = 100  # of two processes that run the same; the layer holds twice as much


def memory_mib(file: Path, workload: str) -> dict[str, float]:
    outcome = trials.run(file, "jax", workload=workload)
    trial = made.changed(made.trial(), phases=outcome.phases)
    read = {phase: BY_NAME[f"rss_held_{phase}_mib"].read(trial, trials.measured(outcome)) for phase in MEMORY_PHASES}
    return {phase: mib for phase, mib in read.items() if mib is not None}


def test_what_a_model_holds_is_found_in_its_phase(faults: Path) -> None:
    usual = memory_mib(faults / "hoards.py", "default")
    assert list(usual) == ["import", "build", "first_step", "train", "predict_one", "predict_batch", "predict_all"]
    for workload, planted in PLANTED.items():
        more = {phase: mib - usual[phase] for phase, mib in memory_mib(faults / "hoards.py", workload).items()}
        first = next(phase for phase, mib in more.items() if mib > MOST_APART_MIB)
        assert first == planted, more
