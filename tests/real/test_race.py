"""What the answer of a race says to write, tried as it is printed."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.protocol.columns import Column, Options
from kerasbench.report import race
from tests import made
from tests.made import JAX
from tests.records import raced

pytestmark = pytest.mark.real

SCRIPT = """
import os
import keras
{policy}
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile({compiled})
threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
print(keras.backend.backend(), model.jit_compile, model.steps_per_execution, threads, model.layers[0].compute_dtype)
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(jit=True, steps_per_execution=8, dtype="mixed_bfloat16"), "True 8 {all} bfloat16"),
        pytest.param(
            Options(threads=1),
            "False 1 1 float32",
            marks=pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux binds to processors"),
        ),
    ],
)
def test_the_lines_to_write_choose_the_winner(tmp_path: Path, options: Options, expected: str) -> None:
    winner = Column("tensorflow", "cpu", options)
    record = raced({winner: 1.0, JAX: 4.0}, baseline="jax")
    processors = str(min(os.sched_getaffinity(0))) if options.threads else ""
    trials = [made.changed(trial, measurement={"resolved": {"processors": processors}}) for trial in record.trials]
    (raced_row,) = Findings.of(dataclasses.replace(record, trials=trials)).races
    lines = race.to_write(winner, raced_row)
    (compiled,) = [line.partition("(")[2][:-1] for line in lines if line.startswith("model.compile")] or ["..."]
    policy = "\n".join(line for line in lines if line.startswith("keras."))
    script = tmp_path / "your_script.py"
    script.write_text(SCRIPT.format(policy=policy, compiled=compiled.replace("...", 'optimizer="sgd", loss="mse"')))
    shell = [line for line in lines if not line.startswith(("model.", "keras."))]
    if not any("your_script.py" in line for line in shell):
        shell.append("python your_script.py")
    command = " && ".join(shell).replace("python ", f"{sys.executable} ")
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        ["sh", "-c", command], check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    assert done.stdout.split() == f"tensorflow {expected.format(all=cores)}".split()
