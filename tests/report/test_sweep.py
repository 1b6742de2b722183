import dataclasses

import pytest

from kerasbench.analysis.estimates import Interval
from kerasbench.analysis.findings import findings
from kerasbench.analysis.series import CostModel
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report import tables
from kerasbench.report.answer import sentences
from kerasbench.report.page import document
from kerasbench.results.record import Record
from tests import made
from tests.report.table import cells_of, drawn

BATCHES = (1, 8, 64, 512)


def swept(rounds: int = 3, /, **series: tuple[float, ...]) -> Record:
    """Backends by their steps, in ms, at each of BATCHES, give or take a thousandth."""
    trials = [
        made.trial(
            index, backend=backend, found=made.measurement(step_ms * (1 + index / 1000)), options=Options(batch=batch)
        )
        for backend, steps in series.items()
        for batch, step_ms in zip(BATCHES, steps, strict=False)
        for index in range(1, rounds + 1)
    ]
    return made.record(*trials, rounds=rounds)


CROSSING = {"jax": (0.2, 0.5, 3.0, 24.0), "torch": (1.0, 1.1, 1.7, 6.0)}


def test_the_table_has_a_line_for_each_size() -> None:
    text = document(findings(swept(**CROSSING)))
    assert cells_of(text, "scenario") == ["scenario", "batch", "jax cpu", "torch cpu"]
    table = [line for line in text.splitlines() if line.startswith("| dense")][:4]
    assert [line.split("|")[2].strip() for line in table] == ["1", "8", "64", "512"]
    assert "**0.200 ms" in table[0] and "**6.01 ms" in table[3]
    assert "What an epoch costs once is not in it" in text
    assert "## Training step" not in text


@pytest.mark.parametrize(
    ("torch", "sentence"),
    [
        (CROSSING["torch"], "torch is faster than JAX from about batch 27 (26–28) on."),
        ((1.0, 1.1, 4.0, 30.0), "JAX is faster than torch at every size (batch 1 to 512)."),
        ((0.1, 0.1, 1.0, 6.0), "torch is faster than JAX at every size (batch 1 to 512)."),
        (CROSSING["jax"], "no significant difference between JAX and torch (batch 1 to 512)."),
        ((1.0, 1.1, 3.0, 24.0), "JAX is faster than torch at batch 1 to 512, but not significantly at 64 and 512."),
    ],
)
def test_who_overtakes_whom_is_said_within_what_was_measured(torch: tuple[float, ...], sentence: str) -> None:
    found = findings(swept(jax=CROSSING["jax"], torch=torch))
    assert sentences(found) == [f"dense: {sentence}"]
    assert "A crossover lies between two sizes" in drawn(tables.sweep(found))


def test_a_series_that_comes_back_has_each_crossover() -> None:
    (sentence,) = sentences(findings(swept(jax=CROSSING["jax"], torch=(1.0, 0.4, 4.0, 30.0))))
    assert sentence.count("is faster than") == 2 and sentence.count("from about batch") == 2


def test_one_column_crosses_nothing() -> None:
    found = findings(swept(jax=CROSSING["jax"]))
    assert sentences(found) == [] and "rossover" not in drawn(tables.sweep(found))


def test_overhead_and_cost_per_sample_are_those_of_the_line() -> None:
    steps = tuple(0.5 + 0.01 * batch for batch in BATCHES)
    text = drawn(tables.costs(findings(swept(jax=steps, torch=(1.0, 3.0, 3.0, 4.0)))))
    line = cells_of(text, "dense      | jax")
    assert line[2].startswith("0.501 (") and line[3].startswith("10.0 (")
    assert line[5] == "yes"
    assert cells_of(text, "dense      | torch")[5] == "no"


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (Interval(0.05, 0.04, 0.06), "0.0500 (0.0400 to 0.0600)"),
        (Interval(0.05, -1.0, 1.1), "not significantly above zero (-1.00 to 1.10)"),
        (Interval(-0.5, -0.8, -0.2), "below zero (-0.800 to -0.200)"),
    ],
)
def test_an_overhead_is_a_number_only_where_it_is_above_zero(
    amount: Interval, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CostModel(amount, Interval(0.01, 0.009, 0.011), 0.01, 8, fits=True)
    monkeypatch.setattr("kerasbench.analysis.series.fit", lambda steps_ms: model)
    assert cells_of(drawn(tables.costs(findings(swept(jax=CROSSING["jax"])))), "dense      | jax")[2] == said


def test_a_series_that_ended_for_want_of_memory_says_so() -> None:
    record = swept(jax=(1.0, 2.0))
    for batch, cause in ((64, "no memory"), (512, "not tried: out of memory at batch 64")):
        failure = Failure(Code.OOM, cause, "less of it")
        record.trials.append(made.trial(1, backend="jax", failure=failure, options=Options(batch=batch)))
    text = document(findings(record))
    assert "- dense jax cpu: out of memory at batch 64; the series ends there." in text
    assert cells_of(text[text.index("## Failures") :], "dense batch=512")[3] == "not tried: out of memory at batch 64"
    assert "*oom*" in text


def test_a_page_of_both_has_both_and_each_its_own_verdicts() -> None:
    record = swept(**CROSSING)
    plain = [made.trial(index, backend=backend) for backend in ("jax", "torch") for index in (1, 2, 3)]
    both = dataclasses.replace(record, trials=[*record.trials, *plain])
    text, alone = document(findings(both)), document(findings(made.record(*plain, rounds=3)))
    assert text.index("## Training step") < text.index("## Sweep")
    assert drawn(tables.training(findings(both))) in alone


def test_nothing_swept_is_no_section() -> None:
    found = findings(made.record(made.trial()))
    assert not any(build(found) for build in (tables.sweep, tables.costs, tables.by_size))


def test_widths_have_a_column_and_no_cost_model() -> None:
    trials = [
        made.trial(1, options=Options(width=width), found=made.measurement(width), device=Device("cuda", 0, "H200"))
        for width in (0.5, 1.0, 2.0)
    ]
    found = findings(made.record(*trials))
    assert cells_of(drawn(tables.sweep(found)), "scenario") == ["scenario", "width", "torch gpu"]
    assert drawn(tables.costs(found)) == ""
