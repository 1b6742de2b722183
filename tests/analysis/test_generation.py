import dataclasses
import math
from collections.abc import Sequence

import pytest

from kerasbench.analysis import ratios
from kerasbench.analysis.generation import by_cycle, divergences, growth, typical, written
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.stages import text_stage
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH, known


@pytest.mark.parametrize(
    ("counts", "times", "line"),
    [
        ([1, 8, 16, 32], [53, 74, 98, 146], (53, 3, 0)),  # tokens that all take as long
        (range(1, 101), [count * count for count in range(1, 101)], (1, 101, 0.16172)),  # longer and longer: about 1/6
        ([1, 2, 3], [5, 5, 5], None),
        ([1, 2, 3], [9, 5, 1], None),
    ],
)
def test_line_of_times(counts: Sequence[int], times: Sequence[float], line: tuple[float, float, float] | None) -> None:
    slope = growth(counts, times)
    assert (slope and dataclasses.astuple(slope)) == (line and pytest.approx(line, rel=1e-3, abs=1e-9))


def test_a_trial_s_line_is_of_the_medians_over_its_slices() -> None:
    grown, slices = made.growing([3.0, 3.0, 90.0], prompt_ms=50)
    line = known(typical(grown))
    assert [line.ttft_ns, line.tpot_ns] == pytest.approx([53 * made.MS, 3 * made.MS])
    assert [round(slope.tpot_ns / made.MS) for slope in by_cycle(grown, slices).values()] == [3, 3, 90]


def writing(*per_token_ms: float, way: str = "call") -> Measurement:
    grown, slices = made.growing(per_token_ms, prompt_ms=50)
    stage = text_stage(way)
    return dataclasses.replace(made.with_samples(made.measurement(), **{stage: slices}), texts={stage: grown})


def test_figures_of_a_trial_are_those_of_its_line_and_of_its_batch() -> None:
    measurement = writing(4.0, 4.0, way="compiled_call")
    expected = {"ttft_ms": 54, "tpot_ms": 4, "tokens_per_s": 4 / 0.004, "residual": 0}
    figures = {name: BY_NAME[f"generate_compiled_call_{name}"].read(made.trial(), measurement) for name in expected}
    assert figures == pytest.approx(expected, abs=1e-9)
    assert BY_NAME["generate_call_tpot_ms"].read(made.trial(), measurement) is None


def test_two_columns_are_compared_cycle_by_cycle() -> None:
    ratio = known(ratios.divide_trials(writing(4.0, 8.0, 40.0), writing(2.0, 4.0, 20.0), "generate_call_tpot_ms"))
    assert (ratio.log, known(ratio.error)) == pytest.approx((math.log(2), 0), abs=1e-9)
    assert ratios.divide_trials(writing(4.0), made.measurement(), "generate_call_tpot_ms") is None


@pytest.mark.parametrize(
    "wrong",
    [{"counts": [1]}, {"counts": [1, 1]}] + [{"times_ns": times} for times in ([], [[1, 2], [1, 2]])],
)
def test_times_without_their_counts_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^it has too few times|or its times are not of its counts"):
        dataclasses.replace(made.growing([3.0, 3.0])[0], **wrong)  # type: ignore[arg-type]


WROTE_JAX, WROTE_TENSORFLOW, WROTE_TORCH = ((column, "call") for column in (JAX, TENSORFLOW, TORCH))


def test_who_wrote_something_else_than_most_is_named_with_the_first_token_that_differs() -> None:
    same = [[1, 2, 3], [4, 5, 6]]
    alike = {WROTE_JAX: same, WROTE_TENSORFLOW: same, WROTE_TORCH: same}
    assert divergences(alike) == divergences({}) == []
    odd = alike | {WROTE_JAX: [[1, 2, 9], [4, 9, 9]]}
    assert divergences(odd) == [(WROTE_JAX, WROTE_TENSORFLOW, 2, 2)]
    pair = {WROTE_JAX: same, WROTE_TENSORFLOW: [[7, 2, 3]]}
    assert divergences(pair) == [(WROTE_TENSORFLOW, WROTE_JAX, 1, 1)]


def test_what_a_column_wrote_is_that_of_its_first_trial_with_any() -> None:
    first, later = writing(3.0), writing(4.0)
    later.texts["generate_call"].tokens[:] = [[9]]
    assert written({JAX: [made.measurement(), first, later]}) == {WROTE_JAX: first.texts["generate_call"].tokens}
