import pytest

from kerasbench.stats import Estimate
from kerasbench.verdict import Verdict, judge, learned, ratio


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.80, 0.90, Verdict.FASTER),
        (1.10, 1.20, Verdict.SLOWER),
        (0.98, 1.02, Verdict.SAME),
        (0.90, 1.01, Verdict.INCONCLUSIVE),
        (0.93, 0.98, Verdict.INCONCLUSIVE),  # faster for certain, but perhaps by less than the minimal effect
        (0.50, 2.00, Verdict.INCONCLUSIVE),
    ],
)
def test_the_whole_interval_decides(low: float, high: float, verdict: Verdict) -> None:
    assert judge(Estimate((low * high) ** 0.5, low, high, 5)) is verdict


def test_two_rounds_decide_nothing() -> None:
    assert judge(ratio({1: 1.0, 2: 1.0}, {1: 9.0, 2: 9.0})) is Verdict.INCONCLUSIVE


def test_no_common_round_decides_nothing() -> None:
    assert ratio({1: 1.0}, {2: 1.0}) is None
    assert judge(None) is Verdict.INCONCLUSIVE


def test_drift_that_hits_both_cancels() -> None:
    # The machine slows down by 40 % over the run; B is 10 % slower than A in every round.
    a = {1: 1.0, 2: 1.2, 3: 1.4}
    b = {index: 1.1 * value for index, value in a.items()}
    found = ratio(a, b)
    assert found is not None
    assert found.value == pytest.approx(1 / 1.1)
    assert judge(found) is Verdict.FASTER


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [(2.3036, 2.3036, False), (2.3036, 2.30361, False), (2.3036, 2.31, True), (2.3, 0.4, True), (0.0, 0.0, False)],
)
def test_a_loss_that_stays_the_same_means_that_nothing_was_learned(before: float, after: float, answer: bool) -> None:
    assert learned(before, after) is answer
