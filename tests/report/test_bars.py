import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.report import bars
from tests import made
from tests.report.test_plot import groups, texts

pytest.importorskip("matplotlib")


def found(rounds: int = 3, **step_ms: float) -> Findings:
    trials = [
        made.trial(index, name, backend, found=made.measurement(step + index / 100, overhead_ms=0))
        for index in range(1, rounds + 1)
        for name in ("dense", "conv")
        for backend, step in step_ms.items()
    ]
    return findings(made.record(*trials, rounds=rounds))


def test_each_column_of_a_row_is_a_bar_with_its_ratio() -> None:
    image = bars.ratios(found(jax=1.0, torch=4.0))
    assert len(groups(image, "ratio")) == 4
    written = texts(image)
    assert {"JAX", "torch", "dense", "conv"} <= set(written)
    assert written.count("fastest") == 2 and written.count("3.94×") == 2


def test_who_is_not_proven_to_be_fastest_is_not_called_so() -> None:
    level = [made.measurement(step) for step in (1.0, 1.4, 0.8)]
    trials = [
        made.trial(index, "dense", backend, found=level[(index + turn) % 3])
        for index in (1, 2, 3)
        for turn, backend in enumerate(("jax", "torch"))
    ]
    image = bars.ratios(findings(made.record(*trials, rounds=3)))
    assert "fastest" not in texts(image)
    assert "1.00×" in texts(image)


@pytest.mark.parametrize(("rounds", "count"), [(1, 0), (3, 2)])
def test_an_interval_is_drawn_where_there_is_one(rounds: int, count: int) -> None:
    assert len(groups(bars.ratios(found(rounds, jax=1.0, torch=4.0)), "interval")) == count


def test_a_single_column_has_no_ratio() -> None:
    assert bars.ratios(found(jax=1.0)) is None
