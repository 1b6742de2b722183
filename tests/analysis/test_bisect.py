"""The search for the version that made a step slower, with probes that scatter as real ones do."""

import dataclasses
import math
import random
from collections.abc import Sequence

import pytest

from kerasbench.analysis.bisect import Bisection, Probe, SearchOutcome, bisect, followed, most, probe_of
from kerasbench.analysis.estimates import LogEstimate, Verdict, estimate
from kerasbench.protocol.messages import Code
from kerasbench.report import history
from tests import made
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER, contrast, exactly
from tests.records import compared as only
from tests.records import versions as trials

SCATTER = 0.03  # of a ratio from round to round: what one backend's processes differ by on a busy machine
NEAR, LEAST_ROUNDS, MOST_ROUNDS = 0.02, 3, 12  # when a comparison of versions has enough


def measured(truth: float, rng: random.Random) -> LogEstimate:
    """Return a ratio as versus has it: rounds until it is known to ±2 %."""
    ratios: list[float] = []
    while True:
        ratios.append(truth * math.exp(rng.gauss(0, SCATTER)))
        if len(ratios) >= LEAST_ROUNDS:
            found = estimate(ratios)
            assert found.half_width is not None
            if found.half_width <= NEAR or len(ratios) == MOST_ROUNDS:
                return found


def search(truths: Sequence[float], rng: random.Random) -> Bisection:
    def probe(index: int) -> Probe:
        ratio = measured(truths[index] / truths[0], rng)
        return Probe(index, contrast(ratio))

    return bisect(len(truths), probe)


@pytest.mark.parametrize("slow", range(1, 6))
def test_of_six_versions_it_finds_the_first_slow_one_in_four_probes(slow: int, rng: random.Random) -> None:
    truths = [1.0] * slow + [1.25] * (6 - slow)
    found = [search(truths, rng) for _ in range(60)]
    assert max(len(one.probes) for one in found) <= most(6) == 4
    assert sum(one.outcome is SearchOutcome.FOUND and one.slow == slow for one in found) >= 54
    wrong = sum(one.outcome is SearchOutcome.FOUND and one.slow != slow for one in found)
    assert wrong <= 3  # where it is not sure it stops


def test_of_six_equal_versions_it_says_that_there_is_none(rng: random.Random) -> None:
    found = [search([1.0] * 6, rng) for _ in range(100)]
    assert sum(one.outcome is SearchOutcome.NONE for one in found) >= 95
    assert all(len(one.probes) == 1 for one in found if one.outcome is SearchOutcome.NONE)


def test_of_several_changes_it_finds_one_that_is_there() -> None:
    found = bisect(6, exactly([1.0, 1.1, 1.1, 1.6, 1.6, 1.7]))
    assert (found.outcome, found.fast, found.slow) == (SearchOutcome.FOUND, 2, 3)
    assert found.change is not None and found.change.value == pytest.approx(1.6 / 1.1)
    first = bisect(2, exactly([1.0, 1.3]))
    assert (first.slow, len(first.probes)) == (1, 1)
    assert first.change is not None and first.change.value == pytest.approx(1.3)


def test_it_stops_where_a_probe_cannot_be_placed_or_its_control_is_off() -> None:
    unclear = bisect(6, exactly([1.0, 1.0, 1.12, 1.12, 1.25, 1.25], half_width=0.05))
    assert (unclear.outcome, unclear.fast, unclear.slow, len(unclear.probes)) == (SearchOutcome.UNDECIDED, 0, 5, 2)
    off = bisect(6, exactly([1.0, 1.0, 1.0, 1.25, 1.25, 1.25], v3="base differs from itself"))
    assert (off.outcome, off.fast, off.slow) == (SearchOutcome.UNDECIDED, 2, 5)
    at_once = bisect(6, exactly([1.0] * 5 + [1.25], v5="base differs from itself"))
    assert (at_once.outcome, len(at_once.probes)) == (SearchOutcome.UNDECIDED, 1)
    rough = bisect(6, exactly([1.0] * 6, half_width=0.4))  # nobody has seen that there is none
    assert rough.outcome is SearchOutcome.UNDECIDED
    names = [f"keras==3.{minor}" for minor in range(6)]
    for one, said in (
        (unclear, "after keras==3.0 and not after keras==3.5. keras==3.2 takes 1.12× (1.07–1.18) as long"),
        (off, "after keras==3.2 and not after keras==3.5. keras==3.3 cannot be placed: base differs from itself."),
        (at_once, "Not decided. keras==3.5 cannot be compared: base differs from itself."),
        (rough, "would have been found, nine times in ten."),
    ):
        assert said in " ".join(history.sentences(one, names))


def test_names_are_short_where_they_still_differ() -> None:
    assert history.brief(["/a/k-1.whl", "./k@v2"]) == ["k-1.whl", "k@v2"]
    assert history.brief(["/a/k.whl", "/b/k.whl"]) == ["/a/k.whl", "/b/k.whl"]


def test_it_follows_the_row_that_is_slowest_with_the_last_version_and_believes_no_control_that_is_off() -> None:
    found = only(*trials(ALIKE), *trials(SLOWER, name="conv"))
    step = followed(found, None)
    assert step is not None and step.over.row.label == "conv"
    probe = probe_of(3, found, None)
    assert (probe.index, made.known(probe.contrast).verdict, probe.why) == (3, Verdict.SLOWER, "")
    assert made.known(probe_of(3, found, ("dense", "torch cpu")).contrast).verdict is Verdict.SAME

    wide = [
        dataclasses.replace(one, block=1000 + number, round=number)
        for number, ms in enumerate((1.6, 2.4, 3.4), start=1)
        for one in trials({OLD: {"step_ms": 2.0}, NEW: {"step_ms": ms}}, blocks=1, name="conv")
    ]
    step = followed(only(*trials(SLOWER), *wide), None)  # whose interval holds more than the other's, and less
    assert step is not None and (step.over.row.label, step.verdict) == ("dense", Verdict.SLOWER)
    off = probe_of(1, only(*trials(SLOWER | {AGAIN: {"step_ms": 2.5}})), None)
    assert off.why == "old differs from itself"
    failing = [made.trial(1, failure=made.FAILURE, options=NEW)]
    fails = probe_of(1, only(*trials({OLD: {"step_ms": 2.0}}), *failing), None)
    assert fails.why.startswith("died from SIGSEGV") and made.FAILURE.code is Code.CRASH
    assert bisect(4, lambda index: fails).outcome is SearchOutcome.UNDECIDED
