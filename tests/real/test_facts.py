"""Which code ran, as each backend tells; and where another one is planted."""

from pathlib import Path

import pytest

from kerasbench import backends, facts
from tests.real import trials

pytestmark = pytest.mark.real

ON_TORCH = {"default": ("flash", "LSTM: fused"), "planted": ("math", "LSTM: loop")}
TRACED = {"jax": "math", "tensorflow": "math"}


@pytest.mark.parametrize("workload", ON_TORCH)
def test_another_kernel_and_a_fused_function_that_refuses_are_found_on_torch(faults: Path, workload: str) -> None:
    measurement = trials.measured(
        trials.run(faults / "which_code.py", "torch", workload=workload, plan=trials.STEPS_ALONE)
    )
    assert (measurement.facts["attention"], measurement.facts["recurrent"]) == ON_TORCH[workload]
    assert measurement.facts.keys() == facts.BY_NAME.keys()
    order, _, copies = measurement.facts["convolution"].partition(", ")
    assert "channels_last" in order and copies.startswith("copied ")
    assert measurement.lost == []


@pytest.mark.weekly
@pytest.mark.parametrize("backend", sorted({*backends.names()} & TRACED.keys()))
def test_what_is_traced_tells_by_the_functions_that_it_asks(faults: Path, backend: str) -> None:
    measurement = trials.measured(trials.run(faults / "which_code.py", backend, plan=trials.STEPS_ALONE))
    assert (measurement.facts["attention"], measurement.facts["recurrent"]) == (TRACED[backend], "LSTM: loop")
    assert measurement.facts["convolution"] == "channels_last as Keras asks for it, copies not known"
    assert measurement.lost == []
