from kerasbench.analysis.findings import Findings, findings
from kerasbench.report import charts
from kerasbench.report.sections import Bar
from tests import made


def found(rounds: int = 3, **step_ms: float) -> Findings:
    trials = [
        made.trial(index, name, backend, found=made.measurement(step + index / 100, overhead_ms=0))
        for index in range(1, rounds + 1)
        for name in ("dense", "conv")
        for backend, step in step_ms.items()
    ]
    return findings(made.record(*trials, rounds=rounds))


def drawn(run: Findings) -> list[Bar]:
    chart = charts.ratios(run)
    return [bar for group in chart.groups for bar in group.bars] if chart else []


def test_each_column_of_a_row_is_a_bar_with_its_ratio() -> None:
    chart = charts.ratios(found(jax=1.0, torch=4.0))
    assert chart is not None
    assert [group.label for group in chart.groups] == ["dense", "conv"]
    jax, torch = chart.groups[0].bars
    assert (jax.name, jax.text, jax.size, jax.strong, jax.low) == ("JAX", "fastest, 1.02 ms", 1.0, True, None)
    assert torch.text.startswith("3.9× (") and 3.9 < torch.size < 4.0
    assert torch.low is not None and torch.high is not None and torch.low < torch.size < torch.high


def test_the_scale_is_logarithmic_only_where_it_has_to_be_and_says_so() -> None:
    near, far = charts.ratios(found(jax=1.0, torch=4.0)), charts.ratios(found(jax=1.0, torch=90.0))
    assert near is not None and far is not None
    assert (near.logarithmic, far.logarithmic) == (False, True)
    assert ("Logarithmic" in near.caption, "Logarithmic" in far.caption) == (False, True)


def test_who_is_not_proven_to_be_fastest_is_not_called_so() -> None:
    level = [made.measurement(step) for step in (1.0, 1.4, 0.8)]
    trials = [
        made.trial(index, "dense", backend, found=level[(index + turn) % 3])
        for index in (1, 2, 3)
        for turn, backend in enumerate(("jax", "torch"))
    ]
    texts = [bar.text for bar in drawn(findings(made.record(*trials, rounds=3)))]
    assert len(texts) == 2 and all(text.startswith("≈ ") for text in texts)
    assert [bar.text for bar in drawn(found(1, jax=1.0, torch=4.0))][:2] == ["looks fastest, 1.01 ms", "4.0×"]


def test_an_interval_much_wider_than_the_bars_is_cut_off() -> None:
    steps = {"jax": (1.0, 1.01, 1.0), "torch": (2.0, 30.0, 1.5)}
    trials = [
        made.trial(index, "dense", backend, found=made.measurement(each[index - 1]))
        for index in (1, 2, 3)
        for backend, each in steps.items()
    ]
    chart = charts.ratios(findings(made.record(*trials, rounds=3)))
    assert chart is not None
    longest = max(bar.size for bar in chart.groups[0].bars)
    assert chart.groups[0].end < 2 * longest < max(bar.high or 0 for bar in chart.groups[0].bars)


def test_a_column_that_failed_has_its_code_in_place_of_a_bar() -> None:
    trials = [made.trial(backend=backend) for backend in ("jax", "torch")]
    failed = made.trial(backend="tensorflow", failure=made.FAILURE)
    texts = {bar.name: (bar.text, len(bar.pieces)) for bar in drawn(findings(made.record(*trials, failed)))}
    assert texts["TensorFlow"] == ("crash", 0)


def test_a_single_column_has_no_ratio() -> None:
    assert charts.ratios(found(jax=1.0)) is None
