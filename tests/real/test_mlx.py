"""MLX measures what the other backends do. Its Keras is a newer one, so it has an environment of its own in the clone.

python -m kerasbench env create --backend mlx; python -m pytest tests/real/test_mlx.py
"""

import sys
from pathlib import Path

import pytest

from kerasbench.environments import interpreters
from kerasbench.protocol.columns import Options
from kerasbench.protocol.stages import TRAIN
from tests.real import trials

PYTHON = interpreters.inside(Path(__file__).parents[2] / interpreters.FOLDER / "mlx")

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not PYTHON.exists(), reason="python -m kerasbench env create --backend mlx: there is no MLX"),
]


def test_mlx_computes_what_jax_computes_and_says_where(faults: Path) -> None:
    file = faults / "fine.py"
    plan = trials.fitted(trials.TAKEN_APART)
    pythons = {"jax": sys.executable, "mlx": str(PYTHON)}
    both = {name: trials.run(file, name, plan=plan, python=python) for name, python in pythons.items()}
    measured = {name: trials.measured(outcome) for name, outcome in both.items()}
    assert trials.disagreements(measured) == {}
    proof, resolved = measured["mlx"].proof, measured["mlx"].resolved
    assert {*proof.weights, *proof.optimizer, *proof.output, *proof.runtime} == {"cpu:0"}
    assert resolved.jit and resolved.versions["mlx"] and resolved.versions["keras-mlx"]
    assert {*measured["mlx"].samples} == {*measured["jax"].samples}
    assert measured["mlx"].lost == []


@pytest.mark.parametrize("options", [Options(steps_per_execution=2), Options(jit=False)])
def test_mlx_takes_the_options_that_other_backends_take(options: Options, faults: Path) -> None:
    outcome = trials.run(faults / "fine.py", "mlx", options, plan=trials.STEPS_ALONE, python=str(PYTHON))
    assert trials.measured(outcome).samples[TRAIN].count
