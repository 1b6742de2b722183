"""What follows from a run is computed once, however many sections tell it."""

import dataclasses
import sys
from typing import Any

import pytest

from kerasbench.analysis import series
from kerasbench.analysis.findings import Findings, abreast, light
from kerasbench.analysis.published import PublishedSide, figures
from kerasbench.analysis.summary import summarize
from kerasbench.plan import catalog
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Compiler
from kerasbench.report import answer, charts, html, markdown, page
from kerasbench.results.merge import merge
from kerasbench.results.run import RaceConfig, SoakConfig
from tests import made
from tests.records import CROSSING, swept
from tests.report.table import brief


def test_a_sweep_s_bootstrap_runs_once_for_tables_terminal_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    compute = series.crossing_interval

    def counted(ratios: series.Ratios) -> tuple[float, float]:
        calls.append(ratios)
        return compute(ratios)

    monkeypatch.setattr(series, "crossing_interval", counted)
    found = Findings.of(swept(**CROSSING))
    texts = markdown.file(page.whole(found)), brief(found), html.document([("here", found)])
    assert all("PyTorch overtakes JAX at about batch" in text for text in texts)
    assert charts.curves(found, "")
    assert len(calls) == 1


@pytest.mark.parametrize("aim", [{"versus": ["old", "new"]}, {"race": RaceConfig()}, {"soak": SoakConfig()}])
def test_a_newer_run_of_another_kind_takes_nothing_from_the_page_of_what_others_measured(aim: dict[str, Any]) -> None:
    older, newer = (
        made.record(
            *(
                made.in_block(block, made.sliced([ms * (1 + block / 1000)] * 6), name=name, backend=backend)
                for block in (1, 2, 3)
                for backend, ms in (("jax", 1.0), ("torch", 2.0))
            ),
            rounds=3,
        )
        for name in ("dense", "conv")
    )
    newer = dataclasses.replace(newer, started="2026-02", config=dataclasses.replace(newer.config, **aim))
    alone, found = Findings.of(newer), Findings.of(merge([older, newer]))
    assert [alone.is_versus, bool(alone.races), bool(alone.soaks)] == [one in aim for one in ("versus", "race", "soak")]
    assert (found.is_versus, found.races, found.soaks) == (False, [], [])
    assert any(line.startswith("dense: JAX is fastest") for line in answer.sentences(found))
    assert {"dense", "conv"} <= {row[0].text for row in made.known(page.whole(found).sections[0].table).rows}


def test_the_fastest_of_each_machine_and_of_all_and_every_ratio() -> None:
    mac = summarize(made.record(made.trial(backend="jax", found=made.measurement(2, 0)), made.trial()))
    box = summarize(made.record(made.trial(backend="jax", found=made.measurement(1, 0))))
    columns, (row,) = abreast([("mac", mac), ("box", box)])
    jax, torch = Column("jax", "cpu"), Column("torch", "cpu")
    assert columns == [("mac", jax), ("mac", torch), ("box", jax)]
    assert row.firsts == {("mac", jax), ("box", jax)}
    assert row.fastest == ("box", jax)
    assert row.ratios["mac", jax] == pytest.approx(2.0)
    failed, other = (summarize(made.record(one)) for one in (made.trial(failure=made.FAILURE), made.trial(name="conv")))
    _, (dense, conv) = abreast([("mac", failed), ("box", other)])
    assert (dense.fastest, dense.ratios, len(dense.cases)) == (None, {}, 1)
    assert conv.fastest == ("box", torch)


def test_what_is_not_ranked_is_not_the_fastest_either_where_trials_were_dropped() -> None:
    odd = dataclasses.replace(made.measurement(1, 0), compiler=Compiler(programs=9, while_measured=1))
    box = summarize(made.record(made.trial(backend="jax", found=odd), made.trial(found=made.measurement(2, 0))))
    for summary in (box, light(box)):
        _, (row,) = abreast([("box", summary)])
        assert row.fastest == ("box", Column("torch", "cpu"))


def test_a_native_baseline_is_not_the_fastest() -> None:
    baseline = made.trial(found=made.measurement(1, 0), options=Options(native=True))
    mac = summarize(made.record(made.trial(found=made.measurement(2, 0)), baseline))
    box = summarize(made.record(made.trial(found=made.measurement(4, 0))))
    torch = Column("torch", "cpu")
    _, (row,) = abreast([("mac", mac), ("box", box)])
    assert (row.fastest, row.firsts) == (("mac", torch), frozenset({("mac", torch), ("box", torch)}))
    assert row.ratios["mac", Column("torch", "cpu", Options(native=True))] == pytest.approx(0.5)
    _, (alone,) = abreast([("mac", summarize(made.record(baseline)))])
    assert (alone.fastest, alone.firsts, alone.ratios) == (None, frozenset(), {})


def test_the_figures_are_of_workloads_that_are_built_in() -> None:
    named = {scenario for scenario, _ in figures()}
    assert {file.stem for file in catalog.suite_files("published")} <= named
    chosen = catalog.select(list(named), sys.executable)
    assert set(figures()) <= {(one.entry.name, one.workload.name) for one in chosen}


def test_a_workload_may_have_figures_of_several_machines() -> None:
    found = figures()["bert", "base"]
    assert [one.software for one in found][:2] == ["Keras 3.0.5 on TensorFlow", "Keras 3.0.5 on JAX"]
    assert {(one.batch, one.precision, one.hardware) for one in found} == {(32, "float32", "A100 40 GB, 12 vCPU")}
    metal = figures()["resnet50", "base"][0]
    assert metal.gpu is not None and metal.gpu.step_ms == pytest.approx((128 / 0.140, 128 / 0.140), rel=1e-3)


@pytest.mark.parametrize(
    ("side", "steps", "span"),
    [
        (PublishedSide(total_s=(194, 194), epochs=20, epoch_s=(9, 11), step_ms=(6, 7)), 1594, (6.085, 6.085)),
        (PublishedSide(epoch_s=(14.4, 15.2)), 391, (36.83, 38.87)),
        (PublishedSide(step_ms=(3, 3)), 25, (3, 3)),
    ],
)
def test_a_step_is_derived_from_the_most_exact_figure(
    side: PublishedSide, steps: int, span: tuple[float, float]
) -> None:
    assert side.ms_per_step(steps) == pytest.approx(span, rel=1e-3)


@pytest.mark.parametrize(
    ("key", "steps", "ratio"),
    [
        (("boston_mlp", "default"), 1, 29.112 / 11.980),
        (("tabular_conv1d", "default"), 25, 13 / 3),
        (("mnist_dense", "default"), 1594, 256 / 194),
        (("mnist_linear", "per_sample"), 391, (14.1 + 15.8) / (14.4 + 15.2)),
        (("cifar10_mlp", "default"), 1563, None),
    ],
)
def test_the_published_ratio_of_gpu_to_cpu(key: tuple[str, str], steps: int, ratio: float | None) -> None:
    (figure,) = figures()[key]
    assert figure.gpu_over_cpu(steps) == pytest.approx(ratio)


def test_the_run_that_never_learned_is_flagged() -> None:
    known = ((key, figure) for key, of_key in figures().items() for figure in of_key)
    flagged = [key for key, figure in known for side in (figure.cpu, figure.gpu) if side and side.flag]
    assert flagged == [("mnist_mlp", "minibatch")]
