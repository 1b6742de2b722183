import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.report import charts
from kerasbench.report.sections import DotChart, round_numbers
from tests import made
from tests.records import of_backends


def test_many_workloads_have_a_line_each_by_kind_of_model() -> None:
    run = of_backends(workloads=6, jax=1.0, torch=4.0).record
    kinds = ["transformer", "dense", "cnn", "dense", "other", "layer"]
    of_kinds = zip(run.scenarios, kinds, strict=True)
    scenarios = [made.changed(facts, description={"kind": kind}) for facts, kind in of_kinds]
    chart = charts.ratios(summarize(made.changed(run, scenarios=scenarios)), "a title")
    assert isinstance(chart, DotChart)
    assert [(kind, [label for label, _ in groups]) for kind, groups in chart.kinds] == [
        ("image CNNs", ["model2"]),
        ("dense networks", ["model1", "model3"]),
        ("transformers", ["model0"]),
        ("single layers", ["model5"]),
        ("other models", ["model4"]),
    ]
    for _, groups in chart.kinds:
        for _, (fastest, other) in groups:
            assert fastest.size == 1.0 < other.size < made.known(other.high) < chart.end


def test_a_backend_has_its_look_whatever_stands_beside_it() -> None:
    together = charts.looks([Column(backend, "cpu") for backend in ("torch", "jax", "tensorflow")])
    for column, look in together.items():
        assert charts.looks([column])[column] == look
    assert len({look.colour for look in together.values()}) == len({look.shape for look in together.values()}) == 3
    others = charts.looks([Column("jax", "cpu"), *(Column(f"other{index}", "cpu") for index in range(4))])
    assert len({look.colour for look in others.values()}) == 5


def test_configurations_of_one_backend_are_paler_one_after_the_other() -> None:
    jits = [Column("jax", "cpu", Options(jit=jit)) for jit in (True, False)]
    opacities = [look.opacity for look in charts.looks([Column("jax", "cpu"), Column("jax", "gpu"), *jits]).values()]
    assert opacities == sorted(opacities, reverse=True) and min(opacities) >= 0.25


@pytest.mark.parametrize(
    ("end", "ticks"), [(7.0, [1, 2, 5]), (60, [1, 2, 5, 10, 20, 50]), (30_000, [1, 10, 100, 1_000, 10_000])]
)
def test_ticks_are_round_and_few(end: float, ticks: list[float]) -> None:
    assert round_numbers(1, end) == pytest.approx(ticks)
