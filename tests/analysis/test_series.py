import math
import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerasbench.analysis.estimates import LogEstimate, estimate, judge
from kerasbench.analysis.summary import summarize
from kerasbench.modes.sweep.series import (
    FIT_TOLERANCE,
    Crossing,
    Ratios,
    SizeSeries,
    crossings,
    fit,
    middle_change,
    sign,
    swept,
)
from kerasbench.protocol.columns import DEFAULT, CaseKey, Column, Device, Options, Size
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Run
from tests import made

A, B = Column("jax", "cpu"), Column("torch", "cpu")
EFFECT = 0.03
OOM = Failure(Code.OOM, "no memory", "less of it")


def sweep(series: Mapping[tuple[str, Device, str], Mapping[int, float]], rounds: int = 3) -> Run:
    """Columns of backend, device and dtype, whose steps take so many ms at each batch, give or take a thousandth."""
    trials = [
        made.trial(
            index,
            backend=backend,
            device=device,
            found=made.measurement(step_ms * (1 + index / 1000)),
            options=Options(dtype=dtype or None, batch=batch),
        )
        for (backend, device, dtype), steps in series.items()
        for batch, step_ms in steps.items()
        for index in range(1, rounds + 1)
    ]
    return made.record(*trials, rounds=rounds)


def only(record: Run) -> SizeSeries:
    (found,) = swept(summarize(record))
    return found


def ratios(values: Mapping[int, float], error: float = 0.001) -> list[tuple[float, LogEstimate]]:
    return [
        (float(size), estimate([value * math.exp(-error), value, value * math.exp(error)]))
        for size, value in values.items()
    ]


def crossings_in(ratios: Ratios) -> list[Crossing]:
    """Return the crossings of two series, judged by themselves."""
    judgements = judge([ratio for _, ratio in ratios], EFFECT)
    return crossings(A, B, ratios, [sign(ratio, verdict) for ratio, verdict in judgements if ratio])


def test_a_series_is_a_column_over_ascending_sizes() -> None:
    found = only(sweep({("jax", made.CPU, ""): {64: 4.0, 8: 1.0, 512: 20.0}}))
    assert (found.label, found.axis) == ("dense", "batch")
    assert [size for size, _ in found.steps_ms(A)] == [8, 64, 512]
    assert [step.value for _, step in found.steps_ms(A)] == pytest.approx([1.0, 4.0, 20.0], rel=0.01)
    one_size = sweep({("jax", made.CPU, ""): {64: 4.0}})
    one_size.trials.append(made.trial(1, backend="jax", options=DEFAULT))  # which was not swept
    assert swept(summarize(one_size)) == []


def test_batches_and_widths_make_a_series_each_for_what_stays_the_same() -> None:
    trials = [
        made.trial(1, options=Options(batch=batch, width=width), found=made.measurement(batch * width))
        for batch in (1, 2)
        for width in (0.5, 1.0, 2.0)
    ]
    found = swept(summarize(made.record(*trials)))
    assert {(one.label, one.axis, len(one.rows)) for one in found} == {
        ("dense width=0.5", "batch", 2),
        ("dense width=1", "batch", 2),
        ("dense width=2", "batch", 2),
        ("dense batch=1", "width", 3),
        ("dense batch=2", "width", 3),
    }
    assert not any(one.costs for one in found if one.axis == "width")


def test_backends_are_compared_on_one_device_and_devices_by_one_backend() -> None:
    gpu = Device("cuda", 0, "H200")
    steps = {1: 1.0, 2: 2.0}
    columns = [("jax", made.CPU, ""), ("jax", gpu, ""), ("torch", made.CPU, ""), ("torch", made.CPU, "float16")]
    found = only(sweep(dict.fromkeys(columns, steps))).duels
    pairs = (duel.contrasts[0] for duel in found)
    assert {(pair.over.column, pair.under.column) for pair in pairs} == {
        (Column("jax", "cpu"), Column("jax", "gpu")),
        (Column("jax", "cpu"), Column("torch", "cpu")),
    }


@given(st.floats(3, 250), st.floats(0.05, 3), st.booleans())
def test_a_planted_crossover_is_found_where_it_is(planted: float, slope: float, falls: bool) -> None:
    direction = -slope if falls else slope
    values = {2**k: math.exp(direction * (k - math.log2(planted))) for k in range(10)}
    (crossing,) = crossings_in(ratios(values, error=1e-4))
    assert (crossing.winner, crossing.loser) == ((A, B) if falls else (B, A))
    assert crossing.at == pytest.approx(planted, rel=1e-3)
    assert crossing.interval is not None
    low, high = crossing.interval
    assert low <= planted * 1.001 and planted <= high * 1.001
    assert crossing.bracket[0] <= crossing.at <= crossing.bracket[1]


def test_the_interval_holds_a_planted_crossover_in_nine_of_ten_sweeps() -> None:
    rng = random.Random(1)
    planted, hits, runs = 24.0, 0, 100
    for _ in range(runs):
        found = [
            (2.0**k, estimate([math.exp(0.3 * (math.log2(planted) - k) + rng.gauss(0, 0.05)) for _ in range(4)]))
            for k in range(10)
        ]
        intervals = [crossing.interval for crossing in crossings_in(found) if crossing.interval]
        hits += any(low <= planted <= high for low, high in intervals)
    assert hits >= 85  # benchmarks/crossovers.py asks thousands


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({1: 3.0, 8: 2.0, 64: 1.1}, []),  # no change of sign, and no extrapolation
        ({1: 2.0, 2: 0.5, 4: 0.5, 8: 2.0}, [(A, (1, 2)), (B, (4, 8))]),  # it comes back
    ],
)
def test_a_series_has_as_many_crossings_as_changes_of_sign(
    values: Mapping[int, float], found: list[tuple[Column, tuple[float, float]]]
) -> None:
    assert [(crossing.winner, crossing.bracket) for crossing in crossings_in(ratios(values))] == found


def test_noise_about_a_crossover_is_one_crossover() -> None:
    noisy = {1: 2.0, 2: 1.5, 4: 0.99, 8: 1.02, 16: 0.98, 32: 0.6, 64: 0.4}
    (crossing,) = crossings_in(ratios(noisy, error=0.095))
    assert 2 < crossing.at < 32


@pytest.mark.parametrize("rounds", [1, 2])
def test_too_few_rounds_give_a_place_without_an_interval(rounds: int) -> None:
    record = sweep({("jax", made.CPU, ""): {1: 1.0, 2: 4.0}, ("torch", made.CPU, ""): {1: 2.0, 2: 2.0}}, rounds)
    (found,) = only(record).duels
    (crossing,) = found.crossings
    assert crossing.at == pytest.approx(math.sqrt(2))
    assert not crossing.has_interval and crossing.interval is None


@pytest.mark.parametrize(
    ("values", "found"),
    [([1.2, 1.21, 1.22], 1), ([0.8, 0.81, 0.82], -1), ([1.01, 1.011, 1.012], 0), ([0.8, 1.2, 2.0], 0), ([1.01], 1)],
)
def test_a_sign_is_significantly_beyond_the_minimal_effect(values: Sequence[float], found: int) -> None:
    ((ratio, verdict),) = judge([estimate(values)], EFFECT)
    assert sign(made.known(ratio), verdict) == found


@pytest.mark.parametrize(
    ("values", "place"),
    [([1, -1], 0.5), ([3, -1, -2], 0.75), ([2, 1, 1], 2), ([-1, -1, -2], 0), ([1, -1, 1, -1], 1.5)],
)
def test_the_middle_change_of_sign_counts(values: Sequence[float], place: float) -> None:
    assert middle_change(range(len(values)), values) == pytest.approx(place)


def test_a_case_that_failed_has_no_point_and_ends_its_series() -> None:
    record = sweep({("jax", made.CPU, ""): {1: 1.0, 2: 2.0}, ("torch", made.CPU, ""): {1: 1.0, 2: 2.0}})
    for batch in (4, 8):
        record.trials.append(made.trial(1, backend="jax", failure=OOM, options=Options(batch=batch)))
    found = only(record)
    assert [size for size, _ in found.steps_ms(A)] == [1, 2]
    assert (found.out_of_memory(A), found.out_of_memory(B)) == (4, None)
    assert [found.size(contrast) for contrast in found.duels[0].contrasts] == [1, 2]
    record.trials = [one for one in record.trials if one.options.batch != 2 or one.round == 1]  # it was interrupted
    assert [contrast.over.row.size for contrast in only(record).duels[0].contrasts] == [Size(1)]


def test_a_row_of_a_size_is_judged_and_named_by_itself() -> None:
    record = sweep({("jax", made.CPU, ""): {1: 1.0, 2: 9.0}, ("torch", made.CPU, ""): {1: 2.0, 2: 2.0}})
    record.trials.append(made.trial(1, backend="jax"))
    summary = summarize(record)
    assert [row.label for row in summary.rows] == ["dense", "dense batch=1", "dense batch=2"]
    assert [row.size for row in summary.rows] == [None, Size(1), Size(2)]
    assert [one.fastest for one in summary.rankings] == [None, A, B]
    assert summary.rows[1].key(A) == CaseKey("dense", "default", A, Size(1))
    assert (len(summary.plain.rows), len(summary.swept.rows)) == (1, 2)


def test_parity_is_judged_among_cases_of_one_size() -> None:
    losses = {1: (9.0, 8.0), 2: (2.0, 1.0)}
    trials = [
        made.trial(backend=backend, options=Options(batch=batch), found=made.measurement(losses=losses[batch]))
        for backend in ("jax", "torch")
        for batch in losses
    ]
    assert summarize(made.record(*trials)).failures == []


BATCHES = [1, 4, 16, 64, 256]


def exact(value: float) -> LogEstimate:
    return made.estimate(value, value, 3)


@given(st.floats(0.01, 100), st.floats(1e-5, 1))
def test_a_planted_line_is_found(overhead: float, per_sample: float) -> None:
    found = made.known(fit([(batch, exact(overhead + per_sample * batch)) for batch in BATCHES]))
    assert found.overhead.value == pytest.approx(overhead, rel=1e-6)
    assert found.per_sample.value == pytest.approx(per_sample, rel=1e-6, abs=1e-9 * overhead)
    assert found.deviation < 1e-6 and found.fits
    assert fit([(1, exact(1.0)), (2, exact(5.0))]) is None  # two sizes lie on any line


def test_a_size_that_is_known_well_draws_the_line() -> None:
    loose, tight = 0.5, 0.01

    def sized(value: float, error: float) -> LogEstimate:
        return made.estimate(value, value * math.exp(error), 5)

    found = made.known(fit([(0, sized(1, tight)), (10, sized(2, tight)), (20, sized(3, tight)), (30, sized(8, loose))]))
    assert found.overhead.value == pytest.approx(1, abs=0.02)
    assert found.per_sample.value == pytest.approx(0.1, abs=0.003)


def test_three_trials_that_happen_to_agree_do_not_draw_the_line() -> None:
    lucky = made.estimate(3.0, 3.0 * (1 + 1e-9), 3)
    steps = [(batch, made.estimate(1.0 + 0.1 * batch, 1.1 + 0.11 * batch, 3)) for batch in (1, 5, 20, 40)]
    found = made.known(fit([*steps[:2], (10, lucky), *steps[2:]]))
    assert found.overhead.value + 10 * found.per_sample.value < 2.7


def test_a_series_that_is_no_line_is_not_explained_unless_its_intervals_allow_one() -> None:
    curved = made.known(fit([(batch, exact(math.sqrt(batch))) for batch in BATCHES]))
    assert curved.deviation > FIT_TOLERANCE and not curved.fits
    wide = made.estimate(1.5, 4.5, 3)
    found = made.known(fit([(1, made.estimate(1.01, 1.13, 3)), (10, wide), (100, made.estimate(2.0, 2.2, 3))]))
    assert found.deviation > FIT_TOLERANCE and found.fits


def test_one_round_has_no_errors_and_intervals_from_the_misfit_alone() -> None:
    found = fit(
        [
            (batch, made.estimate(2 + 0.05 * batch * wobble))
            for batch, wobble in zip(BATCHES, (1, 1.2, 0.9, 1, 1.01), strict=True)
        ]
    )
    assert found is not None
    assert found.overhead.low < 2 < found.overhead.high
    assert found.overhead.high - found.overhead.low < 0.5
