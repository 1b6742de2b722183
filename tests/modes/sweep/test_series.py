import dataclasses
import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerasbench.analysis.estimates import LogEstimate, estimate, judge
from kerasbench.analysis.summary import summarize
from kerasbench.modes.sweep import series
from kerasbench.modes.sweep.series import FIT_TOLERANCE, Crossing, Ratios, SizeSeries, crossings, fit, sign
from kerasbench.protocol.columns import Column, Options, Size
from kerasbench.protocol.messages import Code, Failure
from kerasbench.results.run import Run
from tests import made
from tests.made import JAX, TENSORFLOW, TORCH, known
from tests.records import BATCHES, swept

EFFECT = 0.03


def only(record: Run) -> SizeSeries:
    (sweep,) = series.swept(summarize(record))
    return sweep


def ratios(values: Mapping[int, float], error: float = 0.001) -> list[tuple[float, LogEstimate]]:
    return [
        (float(size), estimate([value * math.exp(-error), value, value * math.exp(error)]))
        for size, value in values.items()
    ]


def crossings_in(ratios: Ratios) -> list[Crossing]:
    """Return the crossings of two series, judged by themselves."""
    judgements = judge([ratio for _, ratio in ratios], EFFECT)
    return crossings(JAX, TORCH, ratios, [sign(ratio, verdict) for ratio, verdict in judgements if ratio])


def test_a_series_is_a_column_over_ascending_sizes() -> None:
    record = swept(jax=(1.0, 4.0, 20.0))
    record.trials.reverse()
    sweep = only(record)
    assert (sweep.label, sweep.axis) == ("dense", "batch")
    assert [size for size, _ in sweep.times_ms(JAX)] == [1, 8, 64]
    assert [step.value for _, step in sweep.times_ms(JAX)] == pytest.approx([1.0, 4.0, 20.0], rel=0.01)
    one_size = swept(jax=(4.0,))
    one_size.trials.append(made.trial(1, backend="jax"))  # which was not swept
    assert series.swept(summarize(one_size)) == []


def test_batches_and_widths_make_a_series_each_for_what_stays_the_same() -> None:
    trials = [
        made.trial(1, options=Options(batch=batch, width=width), found=made.measurement(batch * width))
        for batch in (1, 2)
        for width in (0.5, 1.0, 2.0)
    ]
    sweeps = series.swept(summarize(made.record(*trials)))
    assert {(sweep.label, sweep.axis, len(sweep.rows)) for sweep in sweeps} == {
        *((f"dense width={width}", "batch", 2) for width in ("0.5", "1", "2")),
        *((f"dense batch={batch}", "width", 3) for batch in (1, 2)),
    }
    assert not any(sweep.costs for sweep in sweeps if sweep.axis == "width")


def test_backends_are_compared_on_one_device_and_devices_by_one_backend() -> None:
    record = swept(jax=(1.0, 2.0), torch=(1.0, 2.0))
    on_gpu = [dataclasses.replace(trial, device=made.GPU) for trial in record.trials if trial.backend == "jax"]
    halves = [made.changed(trial, options={"dtype": "float16"}) for trial in record.trials if trial.backend == "torch"]
    record.trials += [*on_gpu, *halves]
    assert {(duel.over, duel.under) for duel in only(record).duels} == {(JAX, Column("jax", "gpu")), (JAX, TORCH)}


def test_an_exported_model_is_compared_with_its_own_and_with_the_same_of_another_backend() -> None:
    exported = [column.with_options(runtime="openvino") for column in (TENSORFLOW, TORCH)]
    record = made.record(*made.in_blocks(dict.fromkeys((TENSORFLOW, TORCH, *exported), 1.0), size=Size(batch=1)))
    columns = [*next(iter(summarize(record).rows)).cases]
    assert {frozenset(pair) for pair in combinations(columns, 2) if series.is_duel(*pair)} == {
        *(frozenset(pair) for pair in ((TENSORFLOW, TORCH), exported)),
        *(frozenset(pair) for pair in zip((TENSORFLOW, TORCH), exported, strict=True)),
    }


@given(st.floats(3, 250), st.floats(0.05, 3), st.booleans())
def test_a_planted_crossover_is_found_where_it_is(planted: float, slope: float, falls: bool) -> None:
    direction = -slope if falls else slope
    values = {2**k: math.exp(direction * (k - math.log2(planted))) for k in range(10)}
    (crossing,) = crossings_in(ratios(values, error=1e-4))
    assert (crossing.winner, crossing.loser) == ((JAX, TORCH) if falls else (TORCH, JAX))
    assert crossing.at == pytest.approx(planted, rel=1e-3)
    low, high = known(crossing.interval)
    assert low <= planted * 1.001 and planted <= high * 1.001
    assert crossing.bracket[0] <= crossing.at <= crossing.bracket[1]


def test_the_interval_holds_a_planted_crossover_in_nine_of_ten_sweeps() -> None:
    rng = random.Random(1)
    planted, hits, runs = 24.0, 0, 100
    for _ in range(runs):
        logs = [(k, 0.3 * (math.log2(planted) - k)) for k in range(10)]
        noisy = [(2.0**k, estimate([math.exp(log + rng.gauss(0, 0.05)) for _ in range(4)])) for k, log in logs]
        intervals = [crossing.interval for crossing in crossings_in(noisy) if crossing.interval]
        hits += any(low <= planted <= high for low, high in intervals)
    assert hits >= 85  # validation/crossovers.py asks thousands


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        ({1: 3.0, 8: 2.0, 64: 1.1}, []),  # no change of sign, and no extrapolation
        ({1: 2.0, 2: 0.5, 4: 0.5, 8: 2.0}, [(JAX, (1, 2)), (TORCH, (4, 8))]),  # it comes back
    ],
)
def test_changes_of_sign_cross(values: Mapping[int, float], changes: list[tuple[Column, tuple[float, float]]]) -> None:
    assert [(crossing.winner, crossing.bracket) for crossing in crossings_in(ratios(values))] == changes


def test_noise_about_a_crossover_is_one_crossover() -> None:
    noisy = {1: 2.0, 2: 1.5, 4: 0.99, 8: 1.02, 16: 0.98, 32: 0.6, 64: 0.4}
    (crossing,) = crossings_in(ratios(noisy, error=0.095))
    assert 2 < crossing.at < 32


@pytest.mark.parametrize(
    ("values", "beyond"),
    [([1.2, 1.21, 1.22], 1), ([0.8, 0.81, 0.82], -1), ([1.01, 1.011, 1.012], 0), ([0.8, 1.2, 2.0], 0), ([1.01], 1)],
)
def test_a_sign_is_significantly_beyond_the_minimal_effect(values: Sequence[float], beyond: int) -> None:
    ((ratio, verdict),) = judge([estimate(values)], EFFECT)
    assert sign(known(ratio), verdict) == beyond


@pytest.mark.parametrize(
    ("values", "place"), [([1, -1], 0.5), ([3, -1, -2], 0.75), ([2, 1, 1], 2), ([-1, -1, -2], 0), ([1, -1, 1, -1], 1.5)]
)
def test_the_middle_change_of_sign_counts(values: Sequence[float], place: float) -> None:
    assert series.middle_change(range(len(values)), values) == pytest.approx(place)


def test_a_case_that_failed_has_no_point_and_ends_its_series() -> None:
    record = swept(jax=(1.0, 2.0), torch=(1.0, 2.0))
    oom = Failure(Code.OOM, "no memory", "less of it")
    record.trials += [made.trial(1, backend="jax", failure=oom, options=Options(batch=batch)) for batch in BATCHES[2:]]
    sweep = only(record)
    assert [size for size, _ in sweep.times_ms(JAX)] == [1, 8]
    assert (sweep.out_of_memory(JAX), sweep.out_of_memory(TORCH)) == (64, None)
    assert [*sweep.duels[0].contrasts] == [1, 8]
    record.trials = [
        trial for trial in record.trials if trial.options.get("batch") != 8 or trial.round == 1
    ]  # interrupted
    assert [*only(record).duels[0].contrasts] == [1]


def test_parity_is_judged_among_cases_of_one_size() -> None:
    trials = [
        made.trial(backend=backend, options=Options(batch=batch), found=made.measurement(losses=losses))
        for backend in ("jax", "torch")
        for batch, losses in ((1, (9.0, 8.0)), (2, (2.0, 1.0)))
    ]
    assert summarize(made.record(*trials)).failures == []


def exact(value: float) -> LogEstimate:
    return made.estimate(value, value, 3)


@given(st.floats(0.01, 100), st.floats(1e-5, 1))
def test_a_planted_line_is_found(overhead: float, per_sample: float) -> None:
    line = known(fit([(batch, exact(overhead + per_sample * batch)) for batch in BATCHES]))
    assert line.overhead.value == pytest.approx(overhead, rel=1e-6)
    assert line.per_sample.value == pytest.approx(per_sample, rel=1e-6, abs=1e-9 * overhead)
    assert line.deviation < 1e-6 and line.fits
    assert fit([(1, exact(1.0)), (2, exact(5.0))]) is None  # two sizes lie on any line


def test_a_size_that_is_known_well_draws_the_line() -> None:
    errors = ((0, 1, 0.01), (10, 2, 0.01), (20, 3, 0.01), (30, 8, 0.5))
    line = known(fit([(size, made.estimate(value, value * math.exp(error), 5)) for size, value, error in errors]))
    assert line.overhead.value == pytest.approx(1, abs=0.02)
    assert line.per_sample.value == pytest.approx(0.1, abs=0.003)


def test_three_trials_that_happen_to_agree_do_not_draw_the_line() -> None:
    lucky = made.estimate(3.0, 3.0 * (1 + 1e-9), 3)
    steps = [(batch, made.estimate(1.0 + 0.1 * batch, 1.1 + 0.11 * batch, 3)) for batch in (1, 5, 20, 40)]
    line = known(fit([*steps[:2], (10, lucky), *steps[2:]]))
    assert line.overhead.value + 10 * line.per_sample.value < 2.7


def test_a_series_that_is_no_line_is_not_explained_unless_its_intervals_allow_one() -> None:
    curved = known(fit([(batch, exact(math.sqrt(batch))) for batch in BATCHES]))
    assert curved.deviation > FIT_TOLERANCE and not curved.fits
    wide = made.estimate(1.5, 4.5, 3)
    line = known(fit([(1, made.estimate(1.01, 1.13, 3)), (10, wide), (100, made.estimate(2.0, 2.2, 3))]))
    assert line.deviation > FIT_TOLERANCE and line.fits


def test_one_round_has_no_errors_and_intervals_from_the_misfit_alone() -> None:
    wobbles = ((1, 1), (4, 1.2), (16, 0.9), (64, 1), (256, 1.01))
    overhead = known(fit([(batch, made.estimate(2 + 0.05 * batch * wobble)) for batch, wobble in wobbles])).overhead
    assert overhead.low < 2 < overhead.high
    assert overhead.high - overhead.low < 0.5
