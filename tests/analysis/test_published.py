import json
import sys
from pathlib import Path

import pytest

from kerasbench.analysis import findings
from kerasbench.analysis.findings import Side
from kerasbench.plan import catalog


def test_the_figures_are_of_scenarios_that_are_built_in() -> None:
    named = {scenario for scenario, _ in findings.figures()}
    assert named <= {file.stem for file in catalog.builtin_files()}
    assert {file.stem for file in catalog.suite_files("published")} <= named


def test_the_figures_are_of_workloads_that_there_are() -> None:
    chosen = catalog.select([scenario for scenario, _ in findings.figures()], sys.executable)
    assert set(findings.figures()) <= {(one.entry.name, one.workload.name) for one in chosen}


def test_a_workload_may_have_figures_of_several_machines() -> None:
    found = findings.figures()["bert", "base"]
    assert [one.software for one in found][:2] == ["Keras 3.0.5 on TensorFlow", "Keras 3.0.5 on JAX"]
    assert {(one.batch, one.precision, one.hardware) for one in found} == {(32, "float32", "A100 40 GB, 12 vCPU")}
    metal = findings.figures()["resnet50", "base"][0]
    assert metal.gpu is not None and metal.gpu.step_ms == pytest.approx((128 / 0.140, 128 / 0.140), rel=1e-3)


def test_figures_of_other_networks_say_where_they_are_from() -> None:
    file = Path(catalog.builtin_folder()).parent / "results" / "published" / "others.json"
    found = json.loads(file.read_text("utf-8"))
    assert len(found) > 50
    for one in found:
        assert {"model", "task", "batch", "precision", "hardware", "software", "source", "unit", "value"} == set(one)
        assert one["value"] > 0 and one["batch"] >= 1 and one["source"]


@pytest.mark.parametrize(
    ("side", "steps", "span"),
    [
        (Side(total_s=(194, 194), epochs=20, epoch_s=(9, 11), step_ms=(6, 7)), 1594, (6.085, 6.085)),
        (Side(epoch_s=(14.4, 15.2)), 391, (36.83, 38.87)),
        (Side(step_ms=(3, 3)), 25, (3, 3)),
    ],
)
def test_a_step_is_derived_from_the_most_exact_figure(side: Side, steps: int, span: tuple[float, float]) -> None:
    assert side.ms_per_step(steps) == pytest.approx(span, rel=1e-3)


@pytest.mark.parametrize(
    ("key", "steps", "ratio"),
    [
        (("boston_mlp", "default"), 1, 29.112 / 11.980),
        (("iris_mlp", "default"), 1, 2.514 / 0.889),
        (("mnist_mlp", "full_batch"), 1, 7.353 / 34.183),
        (("tabular_conv1d", "default"), 25, 13 / 3),
        (("mnist_dense", "default"), 1594, 256 / 194),
        (("mnist_linear", "per_sample"), 391, (14.1 + 15.8) / (14.4 + 15.2)),
        (("mnist_mlp", "tiny"), 1, None),
        (("cifar10_mlp", "default"), 1563, None),
    ],
)
def test_the_published_ratio_of_gpu_to_cpu(key: tuple[str, str], steps: int, ratio: float | None) -> None:
    (figure,) = findings.figures()[key]
    assert figure.gpu_over_cpu(steps) == pytest.approx(ratio)


def test_other_published_figures_are_remarks() -> None:
    known = {key: figures[0] for key, figures in findings.figures().items()}
    assert known["tabular_conv1d", "default"].remarks[0] == "predict in s, CPU / GPU: 0.07378 / 0.2596"
    assert known["cifar100_dense", "default"].remarks[0] == "validation accuracy 0.2052 / 0.2105"
    assert known["iris_mlp", "default"].remarks == []


def test_the_run_that_never_learned_is_flagged() -> None:
    known = findings.figures().items()
    flagged = [key for key, figures in known for figure in figures for _, side in figure.sides if side.flag]
    assert flagged == [("mnist_mlp", "minibatch")]
