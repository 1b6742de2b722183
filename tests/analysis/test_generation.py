import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from kerasbench.analysis import ratios
from kerasbench.analysis.generation import Divergence, by_cycle, divergences, growth, typical, written
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.protocol.columns import Column
from kerasbench.protocol.measurement import Measurement, Samples
from tests import made

COUNTS = [1, 8, 16, 32]
MS = 1_000_000


@pytest.mark.parametrize(
    ("counts", "times", "line"),
    [
        (COUNTS, [50 + 3 * count for count in COUNTS], (53, 3, 0)),  # tokens that all take as long
        (range(1, 101), [count * count for count in range(1, 101)], (1, 101, 0.16172)),  # longer and longer: about 1/6
        ([1, 2, 3], [5, 5, 5], None),
        ([1, 2, 3], [9, 5, 1], None),
    ],
)
def test_the_line_through_times(
    counts: Sequence[int], times: Sequence[float], line: tuple[float, float, float] | None
) -> None:
    found = growth(counts, times)
    assert (found and dataclasses.astuple(found)) == (line and pytest.approx(line, rel=1e-3, abs=1e-9))


def test_the_slope_is_found_among_times_that_scatter(rng: np.random.Generator) -> None:
    counts = list(range(1, 33))
    line = made.known(growth(counts, [1_000 + 100 * count + rng.uniform(-20, 20) for count in counts]))
    assert line.tpot_ns == pytest.approx(100, rel=0.02)  # were all 20 off to the worse side, it would be 1.9 % off
    assert 0 < line.residual < 0.025


def test_a_trial_s_line_is_of_the_medians_over_its_slices() -> None:
    found = made.growing([3.0, 3.0, 90.0], prompt_ms=50)
    line = made.known(typical(found))
    assert [line.ttft_ns, line.tpot_ns] == pytest.approx([53 * MS, 3 * MS])
    assert [round(one.tpot_ns / MS) for one in by_cycle(found).values()] == [3, 3, 90]


def writing(*per_token_ms: float, way: str = "call") -> Measurement:
    grown = dataclasses.replace(made.growing(per_token_ms, prompt_ms=50), way=way)
    return dataclasses.replace(made.measurement(), generations=[grown])


def test_figures_of_a_trial_are_those_of_its_line_and_of_its_batch() -> None:
    names, found = ("ttft_ms", "tpot_ms", "tokens_per_s", "residual"), writing(4.0, 4.0, way="compiled_call")
    read = [BY_NAME[f"generate_compiled_call_{name}"].read(made.trial(), found) for name in names]
    assert read == pytest.approx([54, 4, 4 / 0.004, 0], abs=1e-9)
    assert BY_NAME["generate_call_tpot_ms"].read(made.trial(), found) is None


def test_two_columns_are_compared_cycle_by_cycle() -> None:
    ratio = made.known(ratios.of_trials(writing(4.0, 8.0, 40.0), writing(2.0, 4.0, 20.0), "generate_call_tpot_ms"))
    assert np.exp(ratio.log) == pytest.approx(2)
    assert ratio.error == pytest.approx(0, abs=1e-9)
    assert ratios.of_trials(writing(4.0), made.measurement(), "generate_call_tpot_ms") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"counts": [1]},
        {"counts": [1, 1]},
        {"times_ns": []},
        {"times_ns": [[1, 2, 3, 4]]},
        {"times_ns": [[1, 2], [1, 2]]},
        {"slices": Samples.of(())},
    ],
)
def test_times_without_their_counts_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^it has too few times|^its times"):
        dataclasses.replace(made.growing([3.0, 3.0]), **wrong)  # type: ignore[arg-type]


ONE, OTHER, THIRD = ((Column(backend, "cpu"), "call") for backend in ("jax", "tensorflow", "torch"))


def test_who_wrote_something_else_than_most_is_named_with_the_first_token_that_differs() -> None:
    same = [[1, 2, 3], [4, 5, 6]]
    assert divergences({ONE: same, OTHER: same, THIRD: same}) == []
    assert divergences({}) == []
    assert divergences({ONE: [[1, 2, 9], [4, 9, 9]], OTHER: same, THIRD: same}) == [Divergence(ONE, OTHER, 2, 2)]
    assert divergences({ONE: same, OTHER: [[7, 2, 3]]}) == [Divergence(OTHER, ONE, 1, 1)]


def test_what_a_column_wrote_is_that_of_its_first_trial_with_any() -> None:
    first, later = writing(3.0), writing(3.0)
    later = dataclasses.replace(later, generations=[dataclasses.replace(later.generations[0], tokens=[[9]])])
    column = ONE[0]
    assert written({column: [made.measurement(), first, later]}) == {(column, "call"): first.generations[0].tokens}
