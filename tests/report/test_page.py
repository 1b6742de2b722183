import pytest

from kerasbench.analysis.findings import findings
from kerasbench.protocol.messages import Code, Failure
from kerasbench.report.page import document, explained
from kerasbench.report.tables import epochs
from kerasbench.results.record import Record
from tests import made
from tests.report.table import drawn


def cells_of(text: str, row: str) -> list[str]:
    """Return the cells of the first table row that begins with this text."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {row}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def three_rounds(**step_ms: float) -> Record:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step_ms=step + index / 1000, overhead_ms=0.001))
        for backend, step in step_ms.items()
        for index in (1, 2, 3)
    ]
    return made.record(*trials, rounds=3)


def test_the_headline_has_a_column_for_each_backend_and_marks_the_winner() -> None:
    text = document(findings(three_rounds(jax=1.0, torch=2.0)))
    assert cells_of(text, "scenario") == ["scenario", "jax cpu", "torch cpu"]
    assert cells_of(text, "dense") == [
        "dense", "**1.00 ms**", "2.00 ms, 2.00× ±0.1 %",
    ]  # fmt: skip


def test_what_cannot_be_told_apart_is_marked_and_nobody_wins() -> None:
    text = document(findings(three_rounds(jax=1.0, torch=1.001)))
    assert cells_of(text, "dense")[1:] == ["≈ 1.00 ms", "≈ 1.00 ms, 1.00× ±0.0 %"]


def test_one_round_gives_no_verdict_and_says_so() -> None:
    text = document(findings(made.record(made.trial(), made.trial(backend="jax", found=made.measurement(3)), rounds=1)))
    assert "**2.10 ms**" in text
    assert "the fastest measured in 1 complete round: too few for an interval" in text


def test_a_failure_stands_in_the_table_and_below_it_with_cause_and_remedy() -> None:
    text = document(findings(made.record(made.trial(backend="jax"), made.trial(failure=made.FAILURE))))
    assert cells_of(text, "dense")[1:] == ["2.10 ms", "*crash*"]
    below = text[text.index("## Failures") :]
    assert cells_of(below, "dense") == [
        "dense", "torch cpu", "crash", "died from SIGSEGV in phase 'train'", "look at the last lines",
    ]  # fmt: skip


def test_a_run_that_was_interrupted_at_once_has_a_page_too() -> None:
    assert "## Training step" in document(findings(made.record(rounds=0)))


def test_a_disturbed_trial_is_marked_and_its_reason_stands_below() -> None:
    text = document(findings(made.record(made.trial(noise=(made.DISTURBED,)))))
    assert cells_of(text, "dense")[1:] == ["2.10 ms ⚠"]
    assert "Other load disturbed at least one round: dense torch cpu. Remedy: " in text
    below = text[text.index("## Noise") :]
    assert cells_of(below, "others")[1:3] == ["1", "1"]


@pytest.mark.parametrize(
    ("overheads_ms", "said"),
    [
        ((9.0, 10.0, 11.0), "10.0"),
        ((-9.0, -1.0, 13.0), "not significantly above zero"),
        ((9.0, -1.0, 13.0), "not significantly above zero"),
        ((-9.0, -10.0, -11.0), "below zero"),
        ((10.0,), "10.0"),
        ((-10.0,), "not significantly above zero"),
    ],
)
def test_an_overhead_is_a_number_only_where_it_is_above_zero(overheads_ms: tuple[float, ...], said: str) -> None:
    trials = [
        made.trial(index, found=made.measurement(30.0, overhead))
        for index, overhead in enumerate(overheads_ms, start=1)
    ]
    table = drawn(epochs(findings(made.record(*trials, rounds=len(trials)))))
    (line,) = [line for line in table.splitlines() if "Epoch overhead" in line]
    assert line.split("|")[3].strip() == said


def test_scattered_trials_are_named() -> None:
    trials = [made.trial(index, found=made.measurement(step)) for index, step in enumerate((1.0, 1.3, 1.6), start=1)]
    assert "Trials scatter by 10% or more: dense torch cpu. Remedy: " in document(
        findings(made.record(*trials, rounds=3))
    )


def test_an_explanation_says_what_was_disturbed_and_how_it_was_measured() -> None:
    trials = [made.trial(index, found=made.with_parts(), noise=(made.DISTURBED,)) for index in (1, 2, 3)]
    titles = [section.title for section in explained(findings(made.record(*trials, rounds=3))).sections]
    assert titles == ["Where the time goes", "Warnings", "How this was measured"]


def test_verdicts_have_the_ratio_and_what_would_decide() -> None:
    text = document(findings(three_rounds(jax=1.0, torch=2.0)))
    below = text[text.index("## Verdicts") :]
    assert cells_of(below, "dense") == ["dense", "jax cpu", "torch cpu", "0.501 ±0.1 %", "faster", "3"]
    assert "## Verdicts" not in document(findings(made.record(made.trial(), made.trial(backend="jax"))))


def test_a_hostile_cause_stays_in_its_cell() -> None:
    failure = Failure(Code.ERROR, "x | y\n| <b>z</b>", "none")
    text = document(findings(made.record(made.trial(failure=failure))))
    assert "x \\| y \\| \\<b\\>z\\</b\\>" in text
