import math

import pytest

from kerasbench.analysis.families import ASSUMED, TYPICAL_SCATTER, Family
from kerasbench.protocol.columns import Column
from tests.made import JAX, TORCH


@pytest.mark.parametrize(
    ("other", "family"),
    [
        (JAX.with_options(control=True), Family.REPEATED),
        (JAX.with_options(environment="keras-3.14", control=True), Family.REPEATED),
        (JAX.with_options(jit=False), Family.OPTIONS),
        (JAX.with_options(threads=1), Family.OPTIONS),
        (JAX.with_options(native=True), Family.OPTIONS),
        (JAX.with_options(jit=False, environment="keras-3.14"), Family.OPTIONS),
        (Column("jax", "gpu:0"), Family.BACKENDS),
        (TORCH, Family.BACKENDS),
        (TORCH.with_options(control=True), Family.BACKENDS),
    ],
)
def test_a_family_is_what_two_columns_have_in_common(other: Column, family: Family) -> None:
    assert Family.of(JAX, other) is Family.of(other, JAX) is family


@pytest.mark.parametrize("metric", ["train_step_ms", "predict_p50_ms", "predict_samples_per_s"])
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"])
def test_the_less_two_have_in_common_the_more_is_assumed_of_their_scatter(backend: str, metric: str) -> None:
    assumed = [ASSUMED[family].between_blocks(backend, metric) for family in Family]
    assert assumed == sorted(set(assumed))
    rooms = [ASSUMED[family].between_sessions for family in Family]
    assert rooms == sorted(rooms) and rooms[0] == 0 < rooms[1]


def test_what_is_assumed_is_of_a_backend_or_of_a_metric_where_that_is_known() -> None:
    repeated, backends = ASSUMED[Family.REPEATED], ASSUMED[Family.BACKENDS]
    assert repeated.between_blocks("jax", "train_step_ms") == pytest.approx(0.01 * math.sqrt(2))
    assert backends.between_blocks("jax", "train_step_ms") == TYPICAL_SCATTER == 0.07
    assert backends.between_blocks("jax", "predict_samples_per_s") == 0.06
