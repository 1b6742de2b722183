import pytest

from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.findings import findings
from kerasbench.analysis.rankings import of_keras
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.report.page import document
from kerasbench.results.record import Record
from tests import made
from tests.report.table import brief

SCATTER = (1.0, 1.001, 0.999)


def run(*columns: tuple[str, Options, float], overhead_ms: float = 0.0) -> Record:
    """Columns of backend, options and step in ms, in three rounds that scatter by a thousandth."""
    trials = [
        made.trial(index, backend=backend, options=options, found=made.measurement(step_ms * factor, overhead_ms))
        for backend, options, step_ms in columns
        for index, factor in enumerate(SCATTER, start=1)
    ]
    return made.record(*trials, rounds=3)


KERAS, NATIVE = Options(), Options(native=True)


def test_the_price_is_the_ratio_to_the_twin_of_the_same_backend() -> None:
    record = run(("torch", KERAS, 3.0), ("torch", NATIVE, 1.5), ("jax", KERAS, 1.0), ("jax", NATIVE, 1.0))
    found = of_keras(summarize(record).rows, 0.03)
    assert [(one.paying.backend, one.metric, one.verdict) for one in found] == [
        ("jax", "steady_step_ms", Verdict.SAME),
        ("jax", "epoch_s", Verdict.SAME),
        ("torch", "steady_step_ms", Verdict.SLOWER),
        ("torch", "epoch_s", Verdict.SLOWER),
    ]
    assert [one.ratio.value for one in found] == pytest.approx([1.0, 1.0, 2.0, 2.0])


def test_a_twin_is_never_the_fastest_of_its_row() -> None:
    record = run(("torch", KERAS, 3.0), ("torch", NATIVE, 1.5), ("jax", KERAS, 2.0), ("jax", NATIVE, 1.0))
    (ranking,) = summarize(record).rankings
    assert ranking.fastest == Column("jax", "cpu")
    assert [one.rival for one in ranking.comparisons] == [Column("torch", "cpu")]
    assert "**2.00 ms" in document(findings(record))
    assert "**1.00 ms" not in document(findings(record))


def test_a_twin_is_compared_under_its_own_other_options() -> None:
    one, two = Options(threads=1), Options(threads=1, native=True)
    found = of_keras(summarize(run(("jax", KERAS, 9.0), ("jax", one, 2.0), ("jax", two, 1.0))).rows, 0.03)
    assert {(price.paying.options.label, price.free.options.label) for price in found} == {
        ("threads=1", "threads=1 native=on")
    }
    assert found[0].ratio.value == pytest.approx(2.0)


def test_a_twin_that_computes_something_else_has_no_price() -> None:
    wrong = made.trial(1, options=NATIVE, found=made.measurement(losses=(2.3, 9.0, 9.0, 9.0, 9.0, 9.0)))
    record = made.record(made.trial(1), wrong, rounds=1)
    assert of_keras(summarize(record).rows, 0.03) == []
    text = document(findings(record))
    assert "What Keras costs\n" not in text
    assert "*parity*" in text


def test_where_an_epoch_is_one_step_there_is_the_epoch_alone() -> None:
    trials = [
        made.trial(1, options=one, found=made.epochs_measurement(ms)) for one, ms in ((KERAS, 4.0), (NATIVE, 2.0))
    ]
    found = of_keras(summarize(made.record(*trials)).rows, 0.03)
    assert [(one.metric, one.ratio.value) for one in found] == [("epoch_s", 2.0)]


def test_the_section_shows_both_times_their_ratio_and_the_verdict() -> None:
    found = findings(run(("torch", KERAS, 3.0), ("torch", NATIVE, 1.5)))
    for text in (document(found), brief(found)):
        below = text[text.index("## What Keras costs") :]
        line = next(line for line in below.splitlines() if line.startswith("| dense"))
        assert [case.strip() for case in line.strip("|").split("|")] == [
            "dense", "torch cpu", "step inside an epoch", "3.00 ms ±0.2 %", "1.50 ms ±0.2 %", "2.00 ±0.0 %", "slower",
        ]  # fmt: skip
        assert "native=on: the same model in the plain framework" in text


def test_one_round_is_said_to_be_no_verdict() -> None:
    record = made.record(made.trial(1), made.trial(1, options=NATIVE))
    assert "Fewer than 3 rounds: no interval, no verdict." in document(findings(record))


def test_without_twins_there_is_no_such_section() -> None:
    text = document(findings(run(("torch", KERAS, 3.0))))
    assert "What Keras costs" not in text
