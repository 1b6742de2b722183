import dataclasses

import pytest

from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.findings import findings
from kerasbench.analysis.rankings import break_evens, speed_ups
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.report.page import document
from kerasbench.results.record import Record
from tests import made

CARD = Device("cuda", 0, "H200")


def measured(step_ms: float, first_ms: float) -> Measurement:
    found = made.measurement(step_ms, overhead_ms=0)
    training = dataclasses.replace(made.trained(found), first_step_ns=int(first_ms * made.MS))
    return dataclasses.replace(found, training=training)


def run(*columns: tuple[str, Device, float, float]) -> Record:
    """Columns of backend, device, step and first step, in ms, in three rounds that scatter by a thousandth."""
    trials = [
        made.trial(index, backend=backend, device=device, found=measured(step * factor, first * factor))
        for backend, device, step, first in columns
        for index, factor in ((1, 1.0), (2, 1.001), (3, 0.999))
    ]
    return made.record(*trials, rounds=3)


def test_a_longer_first_step_is_repaid_by_quicker_ones() -> None:
    record = run(("jax", made.CPU, 1.0, 1_100), ("torch", made.CPU, 2.0, 100))
    (found,) = break_evens(summarize(record).rows, 0.03)
    assert (found.slow_start.backend, found.rival.backend) == ("jax", "torch")
    assert [found.extra_ms, found.steps] == pytest.approx([1_000, 1_000])
    assert "- dense: jax cpu starts 1 s slower than torch cpu, and has made up for it after 1,000 steps." in document(
        findings(record)
    ).replace("1.00 s", "1 s")


@pytest.mark.parametrize(("step", "first"), [(1.0, 100), (3.0, 1_100), (1.99, 1_100), (1.0, 101)])
def test_where_nothing_is_given_or_nothing_gained_there_is_nothing_to_repay(step: float, first: float) -> None:
    record = run(("jax", made.CPU, step, first), ("torch", made.CPU, 2.0, 100))
    assert [one for one in break_evens(summarize(record).rows, 0.03) if one.slow_start.backend == "jax"] == []


def test_the_gpu_is_judged_by_how_much_slower_the_cpu_is() -> None:
    record = run(("torch", made.CPU, 2.0, 100), ("torch", CARD, 1.0, 100), ("jax", made.CPU, 1.0, 100))
    (found,) = speed_ups(findings(record).plain.rows, 0.03)
    assert (found.cpu, found.gpu) == (Column("torch", "cpu"), Column("torch", "gpu"))
    assert found.ratio.value == pytest.approx(2.0)
    assert found.verdict is Verdict.FASTER
    assert "GPU faster" in document(findings(record))


def test_a_gpu_that_is_slower_than_the_cpu_is_called_so() -> None:
    record = run(("torch", made.CPU, 1.0, 100), ("torch", CARD, 1.4, 100))
    assert [one.verdict for one in speed_ups(findings(record).plain.rows, 0.03)] == [Verdict.SLOWER]


def test_without_a_gpu_there_is_no_such_table() -> None:
    assert "CPU against GPU" not in document(findings(run(("torch", made.CPU, 1.0, 100))))
