"""The tables of a page, as a reader finds them there."""

import dataclasses
from typing import Literal

import pytest

from kerasbench.analysis.findings import Figure, Findings, Side, findings
from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Latency
from kerasbench.protocol.messages import Phase
from kerasbench.protocol.requests import Protocol
from kerasbench.report import tables
from kerasbench.report.figures import metric_section
from kerasbench.report.page import document, explained
from kerasbench.report.tables import (
    beside_published,
    calls,
    each_sitting,
    epochs,
    what_a_warm_cache_saves,
    what_keras_costs,
)
from kerasbench.results.record import Record, TrialRecord
from kerasbench.text import NOTHING
from tests import made
from tests.analysis.test_rankings import in_sittings
from tests.report import table
from tests.report.table import brief, cells_of, drawn
from tests.report.test_answer import three_rounds


def test_the_headline_has_a_column_for_each_backend_and_marks_the_winner() -> None:
    text = document(findings(three_rounds(jax=1.0, torch=2.0)))
    assert cells_of(text, "scenario") == ["scenario", "jax cpu", "torch cpu"]
    assert cells_of(text, "dense") == ["dense", "**1.00 ms**", "2.00 ms, 2.00× ±4 %"]
    level = document(findings(three_rounds(jax=1.0, torch=1.001)))
    assert cells_of(level, "dense")[1:] == ["≈ 1.00 ms", "≈ 1.00 ms, 1.00× ±4 %"]


def test_a_failure_stands_in_the_table_and_below_it_with_cause_and_remedy() -> None:
    text = document(findings(made.record(made.trial(backend="jax"), made.trial(failure=made.FAILURE))))
    assert cells_of(text, "dense")[1:] == ["2.10 ms", "*crash*"]
    below = text[text.index("## Failures") :]
    assert cells_of(below, "dense") == [
        "dense", "torch cpu", "crash", "died from SIGSEGV in phase 'train'", "look at the last lines",
    ]  # fmt: skip


def test_a_disturbed_trial_is_marked_and_its_reason_stands_below() -> None:
    text = document(findings(made.record(made.trial(noise=(made.DISTURBED,)))))
    assert cells_of(text, "dense")[1:] == ["2.10 ms ⚠"]
    assert "Other load disturbed at least one round: dense torch cpu. Remedy: " in text


@pytest.mark.parametrize(
    ("overheads_ms", "said"),
    [
        ((9.0, 10.0, 11.0), "10.0"),
        ((-9.0, -1.0, 13.0), "not significantly above zero"),
        ((-9.0, -10.0, -11.0), "below zero"),
    ],
)
def test_an_overhead_is_a_number_only_where_it_is_above_zero(overheads_ms: tuple[float, ...], said: str) -> None:
    trials = [
        made.trial(index, found=made.measurement(30.0, overhead))
        for index, overhead in enumerate(overheads_ms, start=1)
    ]
    text = drawn(epochs(findings(made.record(*trials, rounds=len(trials)))))
    (line,) = [line for line in text.splitlines() if "Epoch overhead" in line]
    assert line.split("|")[3].strip() == said


def test_an_explanation_says_what_was_disturbed_and_how_it_was_measured() -> None:
    trials = [made.trial(index, found=made.with_parts(), noise=(made.DISTURBED,)) for index in (1, 2, 3)]
    titles = [section.title for section in explained(findings(made.record(*trials, rounds=3))).sections]
    assert titles == ["Where the time goes", "Warnings", "How this was measured"]


def test_a_table_has_a_line_for_each_figure_that_some_cell_has() -> None:
    summary = summarize(made.record(made.trial(backend="jax"), made.trial(failure=made.FAILURE)))
    page = drawn(metric_section(summary, "Steps", ["steady_step_ms", "total_s"], ["A note."]))
    assert table.rows(table.section(page, "Steps")) == [
        ["scenario", "figure", "jax cpu", "torch cpu"],
        ["dense", "Step inside an epoch (ms)", "2.00", NOTHING],
    ]
    assert page.endswith("A note.")
    assert drawn(metric_section(summary, "Epochs", ["total_s"], [])) == ""
    assert drawn(metric_section(summary, "Epochs", ["steady_step_ms"], [], needed="total_s")) == ""
    assert drawn(metric_section(summary, "Epochs", ["steady_step_ms"], [], needed="epoch_s")) != ""


def test_where_columns_started_together_a_sentence_says_how_to_get_the_figures_of_their_start() -> None:
    quick = [made.in_block(1, made.measurement(), alone=False, backend=one) for one in ("jax", "torch")]
    page = document(findings(made.record(*quick)))
    how = "were not measured: columns started together. To measure them: run without --quick."
    assert f"Start-up, build, first step and compiling {how}" in table.section(page, "How this was measured")
    cold = table.section(page, "Before the first result")
    assert [line[1] for line in table.rows(cold)[1:]] == ["Peak memory of the process (MiB)"]
    assert (how in cold, "First step:" in cold, "Start-up:" in cold) == (True, False, False)
    beside = document(findings(made.record(*quick, made.in_block(2, made.measurement(), name="conv"))))
    cold = table.section(beside, "Before the first result")
    assert f"compiling of dense {how}" in cold
    assert "First step:" in cold
    assert how not in document(findings(made.record(made.in_block(1, made.measurement()))))


CONTROL = "A/A control: what this machine cannot distinguish"


def in_rounds(backend: str, *steps_ms: float) -> list[TrialRecord]:
    return [
        made.trial(index, backend=backend, found=made.measurement(step, overhead_ms=0))
        for index, step in enumerate(steps_ms, start=1)
    ]


def found_in(*given: TrialRecord) -> Findings:
    return findings(made.record(*given, rounds=max(one.round for one in given)))


def verdicts(found: Findings) -> list[list[str]]:
    return table.rows(table.section(document(found), "Verdicts"))[1:]


CLEAR = in_rounds("jax", 1.0, 1.001, 0.999)


def test_the_fastest_is_judged_against_each_of_the_others() -> None:
    ((*cells, ratio, found, rounds),) = verdicts(found_in(*CLEAR, *in_rounds("torch", 2.0, 2.001, 1.999)))
    assert (*cells, found, rounds) == ("dense", "jax cpu", "torch cpu", "faster", "3")
    assert float(ratio.split()[0]) == pytest.approx(0.5, rel=0.01)


def test_that_two_backends_are_the_same_is_nothing_that_rounds_of_one_sitting_can_show() -> None:
    found = found_in(*CLEAR, *in_rounds("torch", 1.002, 1.003, 1.001))
    assert verdicts(found)[0][-2:] == ["inconclusive", "another day"]
    assert "More rounds of one sitting would not show 5 % in all of them." in document(found)


def test_what_is_not_decided_says_how_many_rounds_would_decide_it() -> None:
    (row,) = verdicts(found_in(*CLEAR, *in_rounds("torch", 1.10, 1.18, 1.09)))
    assert row[4] == "inconclusive"
    assert int(row[5]) > 3
    (row,) = verdicts(found_in(*CLEAR, *in_rounds("torch", 1.15, 1.9, 0.8)))
    assert row[4:] == ["inconclusive", "over 30"]


@pytest.mark.parametrize(("data", "shown"), [("synthetic", "MNIST, synthetic"), ("real", "MNIST")])
def test_a_row_says_what_it_was_fed_and_how_long_its_epoch_is(data: Literal["synthetic", "real"], shown: str) -> None:
    record = made.record(*CLEAR)
    record.config = dataclasses.replace(record.config, data=data)
    (row,) = table.rows(table.section(document(findings(record)), "What was measured"))[1:]
    assert row == ["dense", shown, "32", "100"]


def in_turn(backend: str, factor: float, blocks: int = 1, control: bool = False) -> list[TrialRecord]:
    """Trials that took turns, in slices that scatter by a percent."""
    slices = [factor * (1 + 0.01 * (cycle % 3)) for cycle in range(12)]
    options = Options(control=control)
    return [
        made.in_block(block, made.sliced(slices), backend=backend, options=options) for block in range(1, blocks + 1)
    ]


def test_columns_that_took_turns_are_compared_block_by_block() -> None:
    text = document(found_in(*in_turn("jax", 1.0, 3), *in_turn("torch", 2.0, 3)))
    assert "compared block by block" in text
    assert "paired by rounds" not in text
    assert "from the slices" not in text
    assert "paired by rounds" in document(found_in(*CLEAR, *in_rounds("torch", 2.0, 2.0, 2.0)))


def test_one_block_has_a_verdict_from_its_slices_and_says_so() -> None:
    text = document(found_in(*in_turn("jax", 1.0), *in_turn("torch", 2.0)))
    (row,) = table.rows(table.section(text, "Training step"))[1:]
    assert row[1:] == ["**1.11 ms**", "2.12 ms, 1.91× ±17 %"]
    assert "Fewer than 3 rounds, so the intervals are wide: dense." in text
    assert "no interval" not in text


def test_a_control_is_a_line_of_its_own_and_no_column() -> None:
    found = found_in(*in_turn("jax", 1.0), *in_turn("torch", 2.0), *in_turn("jax", 1.0, control=True))
    for text in (document(found), brief(found)):
        assert "- dense: jax cpu against itself: 1.00 ±" in table.section(text, CONTROL)
        assert table.rows(table.section(text, "Training step"))[0][-2:] == ["jax cpu", "torch cpu"]
        assert "so the row has no verdicts" not in text


def test_a_control_that_is_off_takes_the_row_s_verdicts_away() -> None:
    found = found_in(*in_turn("jax", 1.0, 3), *in_turn("torch", 2.0, 3), *in_turn("jax", 1.5, 3, control=True))
    text = document(found)
    assert [row[4] for row in verdicts(found)] == ["inconclusive"]
    assert "so the row has no verdicts." in table.section(text, CONTROL)
    assert "No verdict: a column measured twice differs from itself: dense." in text
    assert "**" not in table.section(text, "Training step")


def test_columns_that_did_not_fit_into_memory_together_are_named() -> None:
    apart = [
        dataclasses.replace(one, round=1, block=block)
        for block, backends in ((1, ("jax", "tensorflow")), (2, ("jax", "torch")))
        for backend in backends
        for one in in_turn(backend, 1.0)
    ]
    text = document(found_in(*apart))
    assert "for lack of memory: dense jax cpu, tensorflow cpu; dense jax cpu, torch cpu." in text
    assert "for lack of memory" not in document(found_in(*in_turn("jax", 1.0, 3), *in_turn("torch", 1.0, 3)))


def test_a_run_without_a_trial_says_so_in_place_of_a_table() -> None:
    text = document(findings(made.record(rounds=0)))
    assert "## Training step\n\n- Nothing was measured.\n" in text
    assert "| scenario |" not in text


GPU = Device("cuda", 0, "NVIDIA H200")


def three_of(step_ms: float, backend: str = "torch", device: Device = made.CPU) -> list[TrialRecord]:
    return [
        made.trial(index, backend=backend, device=device, found=made.measurement(step_ms * (1 + index / 1000)))
        for index in (1, 2, 3)
    ]


def page_of(*trials: TrialRecord) -> str:
    return document(findings(made.record(*trials, rounds=max((one.round for one in trials), default=0))))


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        (
            "Epoch",
            {"Training step (ms)": "2.10", "Epoch overhead (ms)": "10.0", "Training throughput (samples/s)": "15,200"},
        ),
        (
            "Prediction",
            {"predict_on_batch, one batch, 90th percentile (ms)": "2.00", "predict, throughput (samples/s)": "20,000"},
        ),
        ("Before the first result", {"First step (ms)": "300", "Peak memory of the process (MiB)": "512"}),
        # What follows the first step, without compiling, takes 20 ms.
        ("Before the first result", {"Of which tracing and compiling (ms)": "280"}),
        ("Learning", {"Loss after these steps": "1.50"}),
    ],
)
def test_a_section_has_the_figures_of_each_column(title: str, expected: dict[str, str]) -> None:
    header, *rows = table.rows(table.section(page_of(made.trial(), made.trial(backend="jax")), title))
    assert header == ["scenario", "figure", "jax cpu", "torch cpu"]
    figures = {figure: values for _, figure, *values in rows}
    assert [figures[figure] for figure in expected] == [[value, value] for value in expected.values()]


def test_a_backend_on_both_devices_is_compared_with_itself() -> None:
    text = page_of(*three_of(1.0, "jax"), *three_of(0.1, "jax", GPU), *three_of(2.0))
    (row,) = table.rows(table.section(text, "CPU against GPU"))[1:]
    assert row == ["dense", "jax cpu", "jax gpu, NVIDIA H200", "5.50 ±4.0 %", "GPU faster"]
    assert "## CPU against GPU" not in page_of(*three_of(1.0, "jax"), *three_of(0.1, "torch", GPU))


def test_a_signal_has_its_trials_and_an_example() -> None:
    trials = three_of(1.0)
    trials[1] = dataclasses.replace(trials[1], noise=[made.DISTURBED])
    (row,) = table.rows(table.section(page_of(*trials), "Noise"))[1:]
    assert row == ["others", "1", "1", "other processes used 40 % of the CPU (dense torch cpu, round 2)"]
    assert "## Noise" not in page_of(*three_of(1.0))


SCATTER = (1.0, 1.001, 0.999)
NATIVE = Options(native=True)
KERAS_COSTS = "What Keras costs"


def baselines(keras_ms: float, native_ms: float, name: str = "dense", rounds: int = 3) -> list[TrialRecord]:
    return [
        made.trial(index, name, options=options, found=made.measurement(ms * SCATTER[index - 1], overhead_ms=0.0))
        for options, ms in ((Options(), keras_ms), (NATIVE, native_ms))
        for index in range(1, rounds + 1)
    ]


def costs(*trials: TrialRecord, rounds: int = 3) -> str:
    found: Record = made.record(*trials, rounds=rounds)
    return drawn(what_keras_costs(findings(found)))


def test_each_model_has_a_line_for_its_step_and_one_for_its_epoch() -> None:
    header, *lines = table.rows(table.section(costs(*baselines(3.0, 2.0)), KERAS_COSTS))
    assert header == ["scenario", "column", "of", "with Keras", "without", "Keras / native", "Keras is"]
    assert lines[0][:3] == ["dense", "torch cpu", "step inside an epoch"]
    assert lines[0][3:] == ["3.00 ms ±0.2 %", "2.00 ms ±0.2 %", lines[0][5], "slower"]
    assert lines[0][5].startswith("1.50 ±")
    assert lines[1][2:5] == ["epoch", "0.300 s ±0.2 %", "0.200 s ±0.2 %"]


def called(columns: dict[Options, float]) -> Record:
    """A run of calls in which each column's calls take so long, in ms; those with jit compile."""
    ways = ("predict_on_batch", "call", "compiled_call", "predict_call")
    trials = []
    for index, factor in enumerate(SCATTER, start=1):
        for options, ms in columns.items():
            calls_ns = [int(ms * factor * 1e6)] * 20
            latencies = [
                Latency(batch, calls_ns, way=way, first_ns=5_000_000)
                for way in ways
                for batch in (1, 32)
                if options.jit or way != "compiled_call"
            ]
            found = dataclasses.replace(made.measurement(), training=None, learning=None, prediction=latencies)
            trials.append(made.trial(index, options=options, found=found))
    record = made.record(*trials, rounds=3)
    effort = dataclasses.replace(record.config.effort, protocol=Protocol("calls"))
    return made.untrained(dataclasses.replace(record, config=dataclasses.replace(record.config, effort=effort)))


def test_each_way_to_predict_has_a_line_and_each_mode_a_column() -> None:
    found = findings(called({Options(): 2.0, Options(jit=True): 1.0}))
    header, *lines = table.rows(table.section(drawn(calls(found)), "Calls"))
    assert header == ["scenario", "figure", "torch cpu", "torch cpu jit=on"]
    figures = {name: values for _, name, *values in lines}
    assert figures["model(x), one sample (ms)"] == ["2.00 ±0.2 %", "1.00 ±0.2 %"]
    assert figures["model(x) compiled, one batch (ms)"] == ["–", "1.00 ±0.2 %"]
    assert figures["First compiled call (ms)"] == ["–", "5.00 ±0.0 %"]
    assert calls(findings(made.record(made.trial()))) is None


def test_keras_costs_something_in_each_way_to_predict() -> None:
    found = findings(called({Options(): 3.0, NATIVE: 2.0}))
    _, *lines = table.rows(table.section(drawn(what_keras_costs(found)), KERAS_COSTS))
    assert [line[2] for line in lines] == [
        "model(x), one sample",
        "model(x), one batch",
        "predict_on_batch, one sample",
        "predict_on_batch, one batch",
        "predict, one sample",
        "predict, one batch",
    ]
    assert {line[5].split(" ±")[0] for line in lines} == {"1.50"}


def test_what_the_verdicts_mean_is_said_with_the_effect_in_force() -> None:
    text = costs(*baselines(3.0, 2.0))
    assert "significantly, by more than 3 %" in text and "Fewer than" not in text
    assert "(2 ratios judged together: at most 5 % of the verdicts are wrong on average)" in text
    assert "their first six losses agree" in text
    once = costs(*baselines(3.0, 2.0, rounds=1), rounds=1)
    assert [line[-1] for line in table.rows(once)[1:]] == ["inconclusive"] * 2
    assert "Fewer than 3 rounds: no interval, no verdict." in once and "significantly" not in once


@pytest.mark.parametrize(("read", "shown"), [(13, "13"), (None, NOTHING)])
def test_a_first_step_that_found_a_cache_stands_beside_the_cold_one(read: int | None, shown: str) -> None:
    trials = []
    for options, first_ms, cached in ((Options(), 4100, 0), (Options(warm_cache=True), 1300, read)):
        for index in range(1, 4):
            one = made.measurement()
            first_ns = int(first_ms * made.MS * SCATTER[index - 1])
            training = dataclasses.replace(made.trained(one), first_step_ns=first_ns)
            one = dataclasses.replace(one, training=training, resolved=dataclasses.replace(one.resolved, cached=cached))
            trials.append(made.trial(index, backend="jax", options=options, found=one))
    found = findings(made.record(*trials, rounds=3))
    text = table.section(drawn(what_a_warm_cache_saves(found)), "What a warm cache saves")
    assert "dense: JAX: first step 4.10 s cold, 1.30 s warm." in text
    _, line = table.rows(text)
    assert line[:3] == ["dense", "jax cpu", "First step"]
    assert line[-3].startswith("0.317 ±") and line[-2:] == ["faster", shown]
    (ranking,) = found.summary.rankings
    assert ranking.fastest is None
    assert what_a_warm_cache_saves(findings(made.record(made.trial()))) is None


def test_the_memory_of_a_device_stands_beside_that_of_the_process_phase_by_phase() -> None:
    peaks = {"device": (100, None), "build": (120, 8), "train": (300, 64)}
    phases = [
        Phase(name, 0, made.MS, 0, rss << 20, None if card is None else card << 20)
        for name, (rss, card) in peaks.items()
    ]
    trial = dataclasses.replace(made.trial(device=Device("cuda", 0, "NVIDIA H200")), phases=phases)
    text = table.section(document(findings(made.record(trial))), "Before the first result")
    found = {line[1]: line[2] for line in table.rows(text)[1:]}
    assert found["Peak memory after building (MiB)"] == "120"
    assert (found["Device memory after building (MiB)"], found["Device memory after training (MiB)"]) == (
        "8.00",
        "64.0",
    )
    assert "Device memory after start-up (MiB)" not in found


PUBLISHED = "Beside the published figures"
FIGURE = Figure(
    "dense", "default", "MacBook | M1", "TensorFlow 2.9", "somewhere", Side(step_ms=(3, 3)), Side(epoch_s=(0.5, 0.7))
)


def published(monkeypatch: pytest.MonkeyPatch, *figures: Figure, name: str = "dense") -> str:
    known: dict[tuple[str, str], list[Figure]] = {}
    for figure in figures:
        known.setdefault((figure.scenario, figure.workload), []).append(figure)
    monkeypatch.setattr(tables, "figures", lambda: known)
    trials = [made.trial(name=name, backend="torch"), made.trial(name=name, backend="jax", failure=made.FAILURE)]
    return drawn(beside_published(findings(made.record(*trials))))


def test_both_devices_their_ratio_and_what_is_measured_stand_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert published(monkeypatch, FIGURE, name="mine") == published(monkeypatch) == ""
    text = published(monkeypatch, FIGURE)
    lines = [line.replace("\\|", "/") for line in text.splitlines()]
    header, line = table.rows("\n".join(lines))
    assert header[1:] == ["published CPU", "published GPU", "GPU / CPU", "their machine", "jax cpu", "torch cpu"]
    # 100 steps in half a second to 0.7 s; against 3 ms that is the double.
    assert line == ["dense", "3.00", "5.00–7.00", "2.00", "MacBook / M1; TensorFlow 2.9", NOTHING, "2.10"]


def test_a_device_of_which_nothing_was_published_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = dataclasses.replace(FIGURE, gpu=None, hardware="a PC")
    assert table.rows(published(monkeypatch, alone))[1][1:4] == ["3.00", NOTHING, NOTHING]
    empty = dataclasses.replace(alone, gpu=Side(accuracy=0.9))
    assert table.rows(published(monkeypatch, empty))[1][1:4] == ["3.00", NOTHING, NOTHING]


def test_a_figure_that_must_not_be_believed_is_marked_and_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    flagged = dataclasses.replace(FIGURE, hardware="a PC", cpu=Side(step_ms=(3, 3), flag="never learned"))
    text = published(monkeypatch, flagged)
    assert table.rows(text)[1][1:3] == ["3.00 ⚠", "5.00–7.00"]
    assert text.count("\n- dense: the CPU run never learned.\n") == 1


def test_what_else_was_published_is_one_remark_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = dataclasses.replace(
        FIGURE, cpu=Side(step_ms=(3, 3), accuracy=0.0), gpu=Side(step_ms=(6, 6), accuracy=0.9), note="*two* runs"
    )
    assert published(monkeypatch, noted).count("- dense: accuracy 0 / 0.9; \\*two\\* runs.") == 1
    assert Figure("a", "b", "", "", "", Side(accuracy=0.0), None).remarks == ["accuracy 0 / –"]


@pytest.mark.parametrize(("suite", "shown"), [("published", True), (None, True), ("", False)])
def test_nothing_was_published_of_one_s_own_scenario_of_the_same_name(
    monkeypatch: pytest.MonkeyPatch, suite: str | None, shown: bool
) -> None:
    monkeypatch.setattr(tables, "figures", lambda: {("dense", "default"): [FIGURE]})
    record = made.record(made.trial())
    record.scenarios = [dataclasses.replace(one, suite=suite) for one in record.scenarios]
    assert (beside_published(findings(record)) is not None) is shown


def test_each_machine_has_a_line_with_its_batch_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(FIGURE, hardware="A100", software="Keras 3", batch=128, precision="float16")
    lines = table.rows(published(monkeypatch, dataclasses.replace(FIGURE, hardware="a PC"), other))[1:]
    assert [line[4] for line in lines] == ["a PC; TensorFlow 2.9", "A100; Keras 3; batch 128; float16"]


def test_each_sitting_s_ratios_are_shown_and_by_how_much_two_differ() -> None:
    found = findings(in_sittings([2.0, 2.5]))
    said = drawn(each_sitting(found))
    header, line = table.rows(table.section(said, "Sittings"))
    assert header == ["scenario", "column", "against", "sitting 1", "sitting 2", "apart"]
    assert line[:3] == ["dense", "torch cpu", "jax cpu"]
    assert line[-1] == "25 % ⚠"
    assert "Sitting 2: its rounds ended from 2026-01-02T00:00:00Z to 2026-01-02T00:02:00Z." in said
    assert "## Sittings" in document(found) and "## Sittings" in brief(found)
    *_, line = table.rows(drawn(each_sitting(findings(in_sittings([2.0, 2.5, 2.2])))))
    assert line[-1] == "–"  # of three no two are compared
    assert each_sitting(findings(in_sittings([2.0]))) is None
