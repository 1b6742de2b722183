"""What the answer of a race says to write, tried as it is printed."""

import dataclasses
import os
import sys
from pathlib import Path

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.modes.fastest import tell
from kerasbench.protocol.columns import Column, Options
from tests import made
from tests.made import JAX
from tests.records import raced
from tests.repository import printed

pytestmark = pytest.mark.real

SCRIPT = """
import os
import keras
import numpy as np
{before}
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile({compiled})
{after}
threads = len(os.sched_getaffinity(0))
print(keras.backend.backend(), model.jit_compile, model.steps_per_execution, model.unrolled_steps_per_execution)
x, y, batch_size = np.zeros((48, 4)), np.zeros((48, 1)), 3
{fitted}
print(threads, model.layers[0].compute_dtype, keras.config.image_data_format(), len(batches))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux binds to processors")
def test_the_lines_to_write_choose_the_winner(tmp_path: Path) -> None:
    options = Options(
        jit=True,
        steps_per_execution=8,
        unrolled_steps=4,
        feed="tf.data-cached",
        dtype="mixed_bfloat16",
        layout="channels_first",
        threads=1,
    )
    winner = Column("tensorflow", "cpu", options)
    record = raced({winner: 1.0, JAX: 4.0}, baseline="jax")
    resolved = {"resolved": {"processors": str(min(os.sched_getaffinity(0)))}}
    trials = [made.changed(trial, measurement=resolved) for trial in record.trials]
    (raced_row,) = tell.races(summarize(dataclasses.replace(record, trials=trials)))
    lines = tell.to_write(winner, raced_row)
    (compiled,) = (line.partition("(")[2][:-1] for line in lines if line.startswith("model.compile"))
    before, after = ("\n".join(line for line in lines if line.startswith(start)) for start in ("keras.", "model.u"))
    (fitted,) = (line for line in lines if "batches = " in line)
    compiled = compiled.replace("...", 'optimizer="sgd", loss="mse"')
    script = tmp_path / "your_script.py"
    script.write_text(SCRIPT.format(before=before, after=after, compiled=compiled, fitted=fitted))
    command = " && ".join(line for line in lines if not line.startswith(("model.", "keras.", fitted)))
    command = command.replace("python ", f"{sys.executable} ")
    told = printed("sh", "-c", command, folder=tmp_path, TF_CPP_MIN_LOG_LEVEL="3")
    first, *_, last = told.splitlines()  # between them Keras tells of its steps
    assert first.split() == ["tensorflow", "True", "8", "4"]
    assert last.split() == ["1", "bfloat16", "channels_first", "16"]
