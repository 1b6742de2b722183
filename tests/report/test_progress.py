import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kerasbench import events
from kerasbench.analysis.cases import PREDICTED
from kerasbench.analysis.summary import summarize
from kerasbench.events import RoundEnded, RowEnded, RunEnded, RunStarted, StepsKnown, TrialEnded, TrialStarted
from kerasbench.host.noise import Severity, Signal
from kerasbench.modes import registry
from kerasbench.plan.cases import Case
from kerasbench.plan.duration import Eta, History, RunScatter
from kerasbench.processes.block import TrialState
from kerasbench.protocol.measurement import Slice
from kerasbench.protocol.messages import Code, Phase
from kerasbench.protocol.stages import BATCH
from kerasbench.report.progress import ConsoleProgress, foresight
from kerasbench.results import run as saved
from tests import made

XTERM: dict[str, Any] = {"force_terminal": True, "_environ": {"TERM": "xterm", "NO_COLOR": "1"}}
NOISE = Signal("slices", Severity.WARN, "slices spread by 12%")
TORCH, JAX = made.case(backend="torch"), made.case(backend="jax")


def started(*cases: Case, rounds: int | None = None, history: History | None = None) -> RunStarted:
    plan = made.plan(*cases, effort=saved.exactly(rounds)) if rounds else made.plan(*cases)
    return RunStarted(plan, made.record(), history or History())


def written(*of_run: events.Event, width: int = 80, **kind: Any) -> str:
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=width, **kind), registry.sentences)
    for event in of_run:
        progress(event)
    return out.getvalue().replace("\r", "")


def lines(*of_run: events.Event) -> list[str]:
    text = written(*of_run)
    assert "\x1b" not in text
    return text.splitlines()


def test_without_a_terminal_there_is_a_plain_line_for_each_trial() -> None:
    measured = made.trial(found=made.measurement(step_ms=2, overhead_ms=0), noise=(NOISE,))
    assert lines(
        started(TORCH, JAX, rounds=1),
        TrialStarted(TORCH.label),
        events.PhaseStarted(TORCH.label, "train"),
        events.Tick(),
        TrialEnded(TORCH, measured),
        TrialStarted(JAX.label),
        TrialEnded(JAX, made.trial(backend="jax", failure=made.FAILURE)),
        RowEnded([TORCH], "one round was asked for"),
        RunEnded(),
    ) == [
        "2 cases, 1 round: about 46 s",
        "fewer than 3 rounds: intervals come from the turns of each round and are wider",
        "[1/2] dense on PyTorch: 2.00 ms/step, though slices spread by 12% (measured in 9.0 s; about 9 s left)",
        "[2/2] dense on JAX: crash: died from SIGSEGV in phase 'train' (measured in 9.0 s; about 0 s left)",
    ]


def test_a_prediction_is_told_as_the_table_has_it() -> None:
    measurement = made.predicting((1.0, 2.0, 9.0))
    calls_ns = measurement.calls[BATCH].calls_ns
    calls_ns[10:20] = [1_500_000] * 9 + [6_500_000]  # the mean of a slice is not the median of its calls
    trial = made.in_block(1, measurement)
    assert "dense on PyTorch: 1.50 ms/prediction (" in lines(started(TORCH, rounds=1), TrialEnded(TORCH, trial))[-1]
    (case,) = summarize(made.record(trial)).rows[0].cases.values()
    assert made.estimated(case.estimate(PREDICTED)).value == pytest.approx(1.5)


def test_a_plan_says_how_long_it_takes_and_what_it_will_be_able_to_see() -> None:
    size, sight = lines(started(TORCH, JAX, history=History({TORCH.key: 10.0}, RunScatter(0.05, source="old.json"))))
    assert size.startswith("2 cases, 3 to 12 rounds: about ")
    assert sight.endswith("about 25 % after 3 rounds and 12 % after 12 rounds, judging by old.json.")
    assert "judging by other machines, because there are no earlier results" in written(started(TORCH, JAX), width=200)
    assert "about 30 min 00 s to 2 h 00 min" in lines(started(TORCH, history=History(trial_s={TORCH.key: 600.0})))[0]


def test_what_first_steps_show_is_told_and_goes_into_what_is_left() -> None:
    steps_ns = [(TORCH, 3_140_000), (JAX, 1_000_000)]
    said = lines(started(TORCH, JAX, rounds=2), StepsKnown(steps_ns, 10.0, 30.0))
    assert said[-1] == "dense: one of the first steps on PyTorch took 3.14 ms, so a round takes about 40 s"
    eta = Eta(made.plan(TORCH, JAX, effort=saved.exactly(2)))
    eta.foreseen([TORCH, JAX], 40.0)
    assert eta.left_s[1] == 80.0


def test_a_row_that_takes_minutes_is_told_a_batch_by_which_it_would_not() -> None:
    assert "--batch-size" not in foresight([(TORCH, 5_200_000_000)], 10.0, 400.0)  # a scenario has its own sizes
    saved = made.changed(TORCH, selected={"entry": {"file": Path("own.keras")}, "workload": {"batch": 128}})
    said = foresight([(saved, 5_200_000_000)], 20.0, 240.0)
    takes = "so a round takes about 4 min 20 s; --batch-size 16 takes about 50 s"
    assert said == f"dense: one of the first steps took 5.20 s, {takes}"
    assert "--batch-size 1 takes" in foresight([(saved, 5_200_000_000)], 20.0, 24_000.0)
    assert "--batch-size" not in foresight([(saved, 1_000_000_000)], 20.0, 90.0)


def test_a_row_that_is_decided_before_its_last_round_is_said_and_not_waited_for() -> None:
    said = lines(
        started(TORCH, JAX, made.case("conv"), rounds=4),
        *(TrialEnded(case, made.trial(3, backend=case.backend)) for case in (TORCH, JAX)),
        RowEnded([TORCH, JAX], "every time is known to ±5 %"),
        TrialEnded(made.case("conv"), made.trial(1, "conv")),
    )
    assert said[-2] == "dense: done, because every time is known to ±5 %"
    assert "/6]" in said[-1]


def test_after_a_round_that_is_not_the_last_each_row_s_answer_is_shown() -> None:
    last = made.record(made.trial(), made.trial(backend="jax", found=made.measurement(1)))
    said = lines(started(TORCH, JAX), RoundEnded(dataclasses.replace(last, stopped_because="")), RoundEnded(last))
    assert said.count("after round 1:") == 1
    assert "  dense: JAX had the shortest time in 1 round; PyTorch takes 1.91× as long." in said


def test_running_out_of_memory_beside_others_is_said_and_waited_for() -> None:
    oom = dataclasses.replace(made.FAILURE, code=Code.OOM, cause="no memory")
    first, second = lines(
        started(TORCH, JAX, rounds=1),
        TrialEnded(TORCH, dataclasses.replace(made.trial(failure=oom), block=1, crowded=True)),
        TrialEnded(TORCH, made.in_block(2, made.measurement(), round_index=1)),
    )[-2:]
    assert "oom beside other configurations, so from now on it runs by itself: no memory" in first
    assert second.startswith("[2/3]")


@pytest.mark.parametrize("kind", [{}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_without_a_terminal_that_moves_its_cursor_a_step_is_one_plain_line_before_it_begins(kind: Any) -> None:
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=20, **kind))
    with events.step(progress, "CIFAR-10 [bold]: getting its real rows"):
        assert out.getvalue() == "CIFAR-10 [bold]: getting its real rows\n"
    progress(RunEnded())
    assert out.getvalue().count("\n") == 1


def test_on_a_terminal_a_step_is_shown_while_it_lasts_and_leaves_nothing_however_it_ends() -> None:
    assert written(RunEnded(), **XTERM) == ""  # a run that ends before it has begun leaves no display
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=80, **XTERM))
    with pytest.raises(KeyboardInterrupt), events.step(progress, "asking"):
        raise KeyboardInterrupt
    with events.step(progress, events.asking(["jax", "torch"])):  # rich refuses a second display
        assert "asking jax, torch what they see" in out.getvalue()
        assert "0:00:00" in out.getvalue()
    assert out.getvalue().endswith("\x1b[2K")  # its line is erased


def test_a_terminal_shows_what_goes_on_now() -> None:
    begun = (events.Notice("a message"), started(TORCH), events.Waiting("dense", "level 1"), FIRST)
    measured = (TrialStarted(TORCH.label), cycles(0, torch=6.0, jax=2.0), RunEnded())
    text = written(*begun, *measured, width=200, **XTERM)
    for shown in (
        "a message",
        "dense: waiting for the machine to cool down (level 1)",
        "dense\n  PyTorch: starting\n  JAX: not started yet\n",
        "dense: JAX leads so far; PyTorch takes 3.0× as long\n"
        "  PyTorch: step 6.00 ms, measured in 3 turns\n  JAX: step 2.00 ms, measured in 3 turns\n",
    ):
        assert shown in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_lines_on_a_terminal_break_between_words_and_are_whole_in_a_log(width: int) -> None:
    line = " ".join(f"{'word' * (1 + number % 4)}-{number}" for number in range(60))
    shown = written(events.Notice(line), width=width, **XTERM).splitlines()
    assert len(shown) > 1 and max(map(len, shown)) <= width
    assert " ".join(part.strip() for part in shown) == line
    assert written(events.Notice(line), width=width).splitlines() == [line]


def test_a_promise_keeps_to_the_budget() -> None:
    plan = made.plan(TORCH, effort=saved.Effort(3, 12, budget_s=2_400.0))
    said = lines(RunStarted(plan, made.record(), History(trial_s={TORCH.key: 600.0})))
    assert "about 30 min 00 s to 40 min 00 s" in said[0]


def test_a_terminal_that_is_narrow_or_has_no_such_characters_shows_what_it_can() -> None:
    shown = io.BytesIO()
    file = io.TextIOWrapper(shown, encoding="ascii", write_through=True)
    progress = ConsoleProgress(Console(file=file, width=24, **XTERM))
    for event in (started(TORCH, JAX), FIRST, cycles(0, torch=6.0, jax=2.0), RunEnded(interrupted=True)):
        progress(event)
    assert b"dense: JAX leads so far;\n" in shown.getvalue()  # as wide as the terminal
    assert b"dense: JAX leads so far;\n    PyTorch takes 3.0x\n    as long\n" in shown.getvalue()


def cycles(first: int, *, is_last: bool = False, stage: str = "train", **steps_ms: float) -> events.CycleEnded:
    slices = {
        case.label: [Slice(10, int(10 * steps_ms[case.backend] * made.MS), first + cycle, 0) for cycle in range(3)]
        for case in (TORCH, JAX)
    }
    return events.CycleEnded(stage, slices, is_last)


FIRST = events.BlockStarted([TORCH, JAX], is_first=True, stage="train")
BLOCK = (
    TrialStarted(TORCH.label),
    events.PhaseStarted(TORCH.label, "first step"),
    events.PhaseEnded(TORCH.label, Phase("first step", 0, 250 * made.MS)),
    events.PhaseStarted(TORCH.label, "train"),
    events.PhaseStarted(TORCH.label, TrialState.READY),
    TrialStarted(JAX.label),
    events.PhaseStarted(JAX.label, "import"),
)


def test_a_log_has_a_line_for_each_step_of_a_row_s_first_block() -> None:
    trained = cycles(0, torch=6.0, jax=2.0, is_last=True)
    predicted = cycles(0, stage="predict_one", torch=1.0, jax=0.5, is_last=True)
    assert lines(started(TORCH, JAX), FIRST, *BLOCK, trained, predicted)[2:] == [
        "dense on PyTorch: starting",
        "dense on PyTorch: first step 250 ms",
        "dense on JAX: starting",
        "dense: step: PyTorch 6.00 ms, JAX 2.00 ms (3 turns)",
        "dense: JAX leads so far; PyTorch takes 3.0× as long",
        "dense: single prediction: PyTorch 1.00 ms, JAX 0.500 ms (3 turns)",
    ]
    later = dataclasses.replace(FIRST, is_first=False)
    assert len(lines(started(TORCH, JAX), later, *BLOCK)) == 2


def test_what_is_known_of_a_first_block_is_said_when_it_is_interrupted() -> None:
    head = "interrupted in the first round of a workload. This is known so far, but it is not saved:"
    tail = "It is undecided. --resume measures this round again from its start."
    early = lines(started(TORCH, JAX), FIRST, *BLOCK, RunEnded(interrupted=True))
    assert early[-5:] == [
        head,
        "dense",
        "  PyTorch: first step 250 ms, waiting for the others",
        "  JAX: importing the backend",
        tail,
    ]
    later = lines(started(TORCH, JAX), FIRST, *BLOCK, cycles(0, torch=6.0, jax=2000.0), RunEnded(interrupted=True))
    assert later[-5:] == [
        head,
        "dense: PyTorch leads so far; JAX takes 333× as long",
        "  PyTorch: first step 250 ms, step 6.00 ms, measured in 3 turns",
        "  JAX: step 2.00 s, measured in 3 turns",
        tail,
    ]
    second = dataclasses.replace(FIRST, is_first=False)
    assert lines(started(TORCH, JAX), second, *BLOCK, RunEnded(interrupted=True)) == lines(started(TORCH, JAX))


def test_later_blocks_sharpen_what_the_first_has_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsoleProgress, "REDRAW_CYCLE_S", 0.0)
    ended = [TrialEnded(case, made.trial(backend=case.backend)) for case in (TORCH, JAX)]
    first: list[events.Event] = [FIRST, cycles(0, torch=4.0, jax=1.0, is_last=True), *ended]
    second: list[events.Event] = [dataclasses.replace(FIRST, is_first=False), cycles(0, torch=9.0, jax=1.0)]
    _, second_block = written(started(TORCH, JAX), *first, *second, **XTERM).split("[2/24]")
    assert "4.0×" not in second_block
    assert "JAX leads so far; PyTorch takes 6.0× as long" in second_block
