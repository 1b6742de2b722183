"""The search for the version that made a step slower, with probes that scatter as real ones do."""

import dataclasses
import math
import random
from collections.abc import Callable, Sequence

import pytest

from kerasbench.analysis.estimates import Verdict, estimate
from kerasbench.modes.versus.bisect import Bisection, Probe, SearchOutcome, bisect, most, probe_of
from kerasbench.modes.versus.search import of_search, sentences
from tests import made
from tests.made import known
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER, compared, contrast, exactly, versions

SCATTER = 0.03  # of a ratio from round to round: what one backend's processes differ by on a busy machine
NEAR, LEAST_ROUNDS, MOST_ROUNDS = 0.02, 3, 12  # when a comparison of versions has enough


def searched(truths: Sequence[float], rng: random.Random) -> Bisection:
    """Search with probes that go on as versus does: rounds until the ratio is known to ±2 %."""

    def probe(index: int, case: object) -> Probe:
        ratios: list[float] = []
        while True:
            ratios.append(truths[index] / truths[0] * math.exp(rng.gauss(0, SCATTER)))
            if len(ratios) >= LEAST_ROUNDS:
                ratio = estimate(ratios)
                if known(ratio.half_width) <= NEAR or len(ratios) == MOST_ROUNDS:
                    return Probe(index, contrast(ratio))

    return bisect(len(truths), probe)


@pytest.mark.parametrize("slow", range(1, 7))
def test_of_six_versions_it_finds_the_first_slow_one_or_none(slow: int, rng: random.Random) -> None:
    searches = [searched([1.0] * slow + [1.25] * (6 - slow), rng) for _ in range(30)]
    expected = (SearchOutcome.FOUND, slow) if slow < 6 else (SearchOutcome.NONE, 5)
    right = [search for search in searches if (search.outcome, search.slow) == expected]
    assert len(right) >= 27
    assert max(len(search.probes) for search in right) <= (most(6) if slow < 6 else 1)
    wrong = [search for search in searches if search.outcome is SearchOutcome.FOUND and search not in right]
    assert len(wrong) <= 1  # where it is not sure it stops


@pytest.mark.parametrize(
    ("truths", "place", "change"),
    [([1.0, 1.1, 1.1, 1.6, 1.6, 1.7], (2, 3, 3), 1.6 / 1.1), ([1.0, 1.3], (0, 1, 1), 1.3)],
)
def test_of_several_changes_it_finds_one(truths: list[float], place: tuple[int, int, int], change: float) -> None:
    search = bisect(len(truths), exactly(truths))
    assert search.outcome is SearchOutcome.FOUND
    assert (search.fast, search.slow, len(search.probes)) == place
    assert known(search.change).value == pytest.approx(change)


OFF, NAMES = "base differs from itself", [f"keras==3.{minor}" for minor in range(6)]


@pytest.mark.parametrize(
    ("probe", "place", "said"),
    [
        (exactly([1.0, 1.0, 1.12, 1.12, 1.25, 1.25], half_width=0.05), (0, 5, 2), "3.2 takes 1.12× (1.07–1.18)"),
        (exactly([1.0, 1.0, 1.0, 1.25, 1.25, 1.25], v3=OFF), (2, 5, 3), f"3.3 cannot be placed: {OFF}."),
        (exactly([1.0] * 5 + [1.25], v5=OFF), (0, 5, 1), f"3.5 cannot be compared: {OFF}."),
        (exactly([1.0] * 6, half_width=0.4), (0, 5, 1), "would have been found, nine times in ten."),  # nobody has seen
    ],
)
def test_where_it_is_unsure_it_stops(
    probe: Callable[[int, object], Probe], place: tuple[int, int, int], said: str
) -> None:
    search = bisect(6, probe)
    assert (search.outcome, search.fast, search.slow, len(search.probes)) == (SearchOutcome.UNDECIDED, *place)
    assert said in " ".join(sentences(search, NAMES))


def test_it_follows_the_row_that_is_slowest_with_the_last_version() -> None:
    versus = compared(*versions(ALIKE), *versions(SLOWER, name="conv"))
    probe = probe_of(3, versus, None)
    assert known(probe.contrast).over.row.label == "conv"
    assert (probe.index, known(probe.contrast).verdict, probe.why) == (3, Verdict.SLOWER, "")
    assert known(probe_of(3, versus, ("dense", "torch cpu")).contrast).verdict is Verdict.SAME
    wide = [
        dataclasses.replace(trial, block=1000 + number, round=number)
        for number, ms in enumerate((1.6, 2.4, 3.4), start=1)
        for trial in versions({OLD: {"step_ms": 2.0}, NEW: {"step_ms": ms}}, blocks=1, name="conv")
    ]
    # An interval holds more than the other's, and less.
    step = known(probe_of(3, compared(*versions(SLOWER), *wide), None).contrast)
    assert (step.over.row.label, step.verdict) == ("dense", Verdict.SLOWER)


def test_it_believes_no_probe_whose_control_is_off_or_whose_version_fails() -> None:
    off = probe_of(1, compared(*versions(SLOWER | {AGAIN: {"step_ms": 2.5}})), None)
    assert off.why == "old differs from itself"
    failing = made.trial(1, failure=made.FAILURE, options=NEW)
    fails = probe_of(1, compared(*versions({OLD: {"step_ms": 2.0}}), failing), None)
    assert fails.why.startswith("died from SIGSEGV")
    assert bisect(4, lambda index, case: fails).outcome is SearchOutcome.UNDECIDED


def test_a_search_that_finds_nothing_has_no_versions_between() -> None:
    none = known(of_search(bisect(6, exactly([1.0] * 6)), NAMES, None).search)
    assert (none.outcome, none.last_fast, none.first_slow, none.case) == ("none", None, None, None)
