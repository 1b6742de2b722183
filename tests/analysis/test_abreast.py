"""What follows from a run is computed once, however many sections tell it."""

import dataclasses
import sys
from typing import Any

import pytest

from kerasbench.analysis.abreast import abreast, light
from kerasbench.analysis.published import PublishedSide, figures
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.modes import fastest, soak, versus
from kerasbench.modes.mode import Mode
from kerasbench.plan import catalog
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Compiler
from kerasbench.results.merge import merge
from kerasbench.results.run import Trial
from tests import made
from tests.made import JAX, TORCH, known


@pytest.mark.parametrize("mode", [versus.MODE, fastest.MODE, soak.MODE], ids=lambda mode: mode.name)
def test_a_newer_run_of_another_kind_takes_nothing_from_the_page_of_what_others_measured(mode: Mode[Any]) -> None:
    older, newer = (
        made.record(*made.in_blocks({JAX: 1.0, TORCH: 2.0}, name=name), rounds=3) for name in ("dense", "conv")
    )
    newer = made.changed(newer, started="2026-02", config=mode.configured(newer.config))
    alone, merged = summarize(newer), summarize(merge([older, newer]))
    assert (alone.mode, alone.is_ranked) == (mode.name, False)
    assert (merged.mode, merged.is_ranked) == ("run", True)
    assert {row.label for row in merged.plain.rows} == {"dense", "conv"}


def machine(*trials: Trial) -> Summary:
    return summarize(made.record(*trials))


def test_the_fastest_of_each_machine_and_of_all_and_every_ratio() -> None:
    mac = machine(made.trial(backend="jax", found=made.measurement(2, 0)), made.trial())
    box = machine(made.trial(backend="jax", found=made.measurement(1, 0)))
    columns, (row,) = abreast([("mac", mac), ("box", box)])
    assert columns == [("mac", JAX), ("mac", TORCH), ("box", JAX)]
    assert row.firsts == {("mac", JAX), ("box", JAX)} and row.fastest == ("box", JAX)
    assert row.ratios["mac", JAX] == pytest.approx(2.0)
    failed, other = machine(made.trial(failure=made.FAILURE)), machine(made.trial(name="conv"))
    _, (dense, conv) = abreast([("mac", failed), ("box", other)])
    assert (dense.fastest, dense.ratios, len(dense.cases)) == (None, {}, 1)
    assert conv.fastest == ("box", TORCH)


def test_what_does_not_compete_is_not_the_fastest_either_where_trials_were_dropped() -> None:
    eager = dataclasses.replace(made.measurement(0.5, 0), compiler=Compiler(programs=9, while_measured=1))
    baseline = made.trial(found=made.measurement(1, 0), options=Options(native=True))
    mac = machine(made.trial(backend="jax", found=eager), made.trial(found=made.measurement(2, 0)), baseline)
    box = machine(made.trial(found=made.measurement(4, 0)))
    for summary in (mac, light(mac)):
        _, (row,) = abreast([("mac", summary), ("box", box)])
        assert row.fastest == ("mac", TORCH) and row.firsts == {("mac", TORCH), ("box", TORCH)}
        assert row.ratios["mac", TORCH.with_options(native=True)] == pytest.approx(0.5)
    _, (alone,) = abreast([("mac", machine(baseline))])
    assert (alone.fastest, alone.firsts, alone.ratios) == (None, frozenset(), {})


def test_the_figures_are_of_workloads_that_are_built_in() -> None:
    named = {scenario for scenario, _ in figures()}
    assert {file.stem for file in catalog.suite_files("published")} <= named
    chosen = catalog.select(list(named), sys.executable)
    assert set(figures()) <= {(selected.entry.name, selected.workload.name) for selected in chosen}


def test_a_workload_may_have_figures_of_several_machines() -> None:
    bert, metal = figures()["bert", "base"], figures()["resnet50", "base"][0]
    assert [figure.software for figure in bert][:2] == ["Keras 3.0.5 on TensorFlow", "Keras 3.0.5 on JAX"]
    sides = (side for figure in figures()["mnist_mlp", "minibatch"] for side in (figure.cpu, figure.gpu))
    assert any(side and side.flag for side in sides)  # the run that never learned
    assert known(metal.gpu).step_ms == pytest.approx((128 / 0.140, 128 / 0.140), rel=1e-3)
    (ranges,), (of_one,) = figures()["mnist_linear", "per_sample"], figures()["cifar10_mlp", "default"]
    assert ranges.gpu_over_cpu(391) == pytest.approx((14.1 + 15.8) / (14.4 + 15.2))
    assert of_one.gpu_over_cpu(1563) is None


@pytest.mark.parametrize(
    ("side", "steps", "span"),
    [
        (PublishedSide(total_s=(194, 194), epochs=20, epoch_s=(9, 11), step_ms=(6, 7)), 1594, (6.085, 6.085)),
        (PublishedSide(epoch_s=(14.4, 15.2)), 391, (36.83, 38.87)),
        (PublishedSide(step_ms=(3, 3)), 25, (3, 3)),
    ],
)
def test_a_step_is_of_the_most_exact_figure(side: PublishedSide, steps: int, span: tuple[float, float]) -> None:
    assert side.ms_per_step(steps) == pytest.approx(span, rel=1e-3)
