"""Blocks of columns that are small scripts: whose turn it is, who is stopped, what becomes of those that go wrong."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace
from unittest.mock import DEFAULT, Mock, patch

import psutil
import pytest

from kerasbench.processes import block, process
from kerasbench.processes.block import PhaseEnded, PhaseStarted, TrialStarted
from kerasbench.processes.process import Child, Limits
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Samples
from kerasbench.protocol.messages import Code, Failure, Phase
from tests import made, stand_in
from tests.processes.columns import CYCLES, FINE, Clock, Columns
from tests.untraced import untraced

pytestmark = pytest.mark.processes
TRAINS = "slices('train')\nanswer()"
LOGS = "glob.glob(os.path.dirname(sys.argv[0]) + '/*.log')"
MEET = f"import glob\nwhile len({LOGS}) < 2: time.sleep(0.001)\n"
INTERRUPTED = "say(begun='set up')\nsay(ready='train')\nturn()\nsay(begun='turn')\nhang()"
LEAVING = "say(ready='train')\nsay(slice=dict(turn(), count=1, ns=1))\nturn()\n"


def stopped(number: int) -> bool:
    return psutil.Process(number).status() == psutil.STATUS_STOPPED


def gone(number: int) -> bool:
    return all(map(stand_in.is_gone, stand_in.existing([number])))


def test_every_column_has_one_turn_a_cycle_in_the_order_that_the_rules_draw(columns: Columns) -> None:
    assert columns.codes(FINE, FINE, FINE) == [None] * 3
    for index, turns in enumerate([("0 0", "1 2"), ("0 1", "1 0"), ("0 2", "1 1")]):
        assert columns.log(index)[1:] == [f"{stage} {turn}" for stage in ("train", "epoch") for turn in turns]
    assert columns.stages == [(stage, [count] * 3) for stage in ("train", "epoch") for count in (1, 2)]
    assert columns.drawn == [3, 3]


def test_first_steps_are_made_in_turns_and_answered_with_the_sizes_of_the_row(columns: Columns) -> None:
    columns.pilots = 2
    leaving = "say(ready='pilot')\nturn()\nos._exit(3)"
    assert columns.codes("pilot(5)\n" + TRAINS, leaving, "pilot(7)\n" + TRAINS) == [None, Code.CRASH, None]
    assert columns.steps_ns == [{0: [5], 2: [7]}, {0: [5, 5], 2: [7, 7]}]
    assert columns.log(2)[1:] == ["pilot 0 2", "pilot 1 1", "sized 65", "train 0 1", "train 1 0"]


def test_a_policy_is_not_asked_where_all_columns_have_died_in_their_first_steps(columns: Columns) -> None:
    assert columns.codes("say(ready='pilot')\nturn()\nos._exit(3)") == [Code.CRASH]
    assert columns.steps_ns == []


def test_a_column_that_is_left_behind_ends_and_the_sizes_are_those_of_the_others(columns: Columns) -> None:
    slow = Failure(Code.SLOW, "a step takes 20 s", "leave --quick out")
    columns.leaving = {"pilot": {1: slow}}
    assert columns.failures("pilot(5)\n" + TRAINS, "pilot(999)\n" + TRAINS) == [None, slow]
    assert columns.steps_ns == [{0: [5]}]
    assert columns.log(1)[1:] == ["pilot 0 1"]


def test_a_column_that_leaves_answers_and_the_others_go_on_without_it(columns: Columns) -> None:
    columns.leaving = {"train": {1: None}}
    leaves = "pilot(9)\nleft_out = slices('train')['left_out']\nlog(left_out[0])\nanswer()"
    assert columns.codes("pilot(5)\n" + FINE, leaves) == [None, None]
    assert columns.log(1)[1:] == ["pilot 0 1", "sized 65", "train 0 1", "epoch"]
    assert columns.stages == [("train", [1]), ("train", [2]), ("epoch", [1]), ("epoch", [2])]


def test_so_many_start_at_once(columns: Columns) -> None:
    assert columns.codes(*[MEET + TRAINS] * 4, at_once=2) == [None] * 4


@pytest.mark.parametrize(
    ("on_gpu", "turns"),
    [
        ([0, 2], [["0 1 led in", "1 2"], ["0 0", "1 0"], ["0 2", "1 1 led in"]]),
        ([0, 1], [["0 0", "1 1"], ["0 1", "1 0"]]),  # alone they need no lead-in
    ],
)
def test_columns_on_a_gpu_come_last_and_lead_in(columns: Columns, on_gpu: list[int], turns: list[list[str]]) -> None:
    columns.devices = dict.fromkeys(on_gpu, Device("cuda"))
    assert columns.codes(*[TRAINS] * len(turns)) == [None] * len(turns)
    for index, of_column in enumerate(turns):
        assert columns.log(index)[1:] == [f"train {turn}" for turn in of_column]


def test_nobody_runs_in_the_rest_before_a_turn(columns: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []

    def rest(seconds: float) -> None:
        stand_in.wait_for(lambda: all(stopped(columns.number(index)) for index in range(2)))
        rests.append(seconds)

    monkeypatch.setattr(block, "time", SimpleNamespace(sleep=rest))
    columns.rest_s = 0.25
    assert columns.codes(TRAINS, TRAINS) == [None] * 2
    assert rests == [0.25] * (2 * CYCLES)


def test_an_order_may_have_a_column_several_times(columns: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "orders", lambda count: iter([[0, 1], [1, 1, 1], [0, 1]]))
    assert columns.codes(TRAINS, TRAINS) == [None, None]
    assert columns.log(1)[1:] == ["train 0 1", "train 1 0", "train 1 1", "train 1 2", "train 2 1"]


def test_a_column_takes_part_in_the_stages_that_it_is_ready_for(columns: Columns) -> None:
    bodies = [f"slices('{stage}')\nslices('parts')\nanswer()" for stage in ("train", "predict_one")]
    assert columns.codes(*bodies, "answer()") == [None] * 3
    counts = [(stage, len(of_stage)) for stage, of_stage in columns.stages]
    assert counts == [columns for columns in (("train", 1), ("predict_one", 1), ("parts", 2)) for _ in range(CYCLES)]


def test_a_measurement_has_the_slices_of_its_turns_and_of_a_sum_what_the_child_says(columns: Columns) -> None:
    of_parts = "ANSWER['measurement']['samples'] = {'parts_bare': {'count': [3], 'ns': [7]}}\n"
    (outcome,) = columns.measure(f"pilot(5)\nslices('train')\nslices('parts')\n{of_parts}answer()")
    samples = made.known(made.known(outcome).measurement).samples
    assert samples == {
        "train": Samples([1] * CYCLES, [1000] * CYCLES, [*range(CYCLES)]),
        "parts_bare": Samples([3], [7]),
    }


def test_a_block_tells_what_becomes_of_each_column_and_what_each_cycle_has_measured(columns: Columns) -> None:
    spent = {"name": "first step", "start_ns": 1, "end_ns": 3}
    first, _ = columns.measure(f"say(begun='first step')\nsay(phase={spent})\nslices('train')\nanswer()", "sys.exit(3)")
    of_first = [PhaseStarted("0", "first step"), PhaseEnded("0", Phase("first step", 1, 3)), PhaseStarted("0", "ready")]
    of_second = [TrialStarted("1"), PhaseStarted("1", "failed")]
    assert columns.events == [TrialStarted("0"), *of_first, *of_second, PhaseStarted("0", "done")]
    assert columns.cycles == [("train", {"0": 1}, False), ("train", {"0": 2}, True)]
    assert first is not None and first.started_alone


def test_columns_start_side_by_side_where_no_cold_figures_are_needed(columns: Columns) -> None:
    before = psutil.Process().children()
    outcomes = columns.measure(MEET + FINE, MEET + FINE, at_once=9)
    assert psutil.Process().children() == before  # no guardian either
    assert [outcome and (outcome.failure, outcome.started_alone) for outcome in outcomes] == [(None, False)] * 2
    (single,) = columns.measure(FINE, at_once=9)
    assert single is not None and single.started_alone


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_columns_on_cards_start_one_by_one_where_others_start_side_by_side(columns: Columns, platform: str) -> None:
    columns.devices = {2: Device(platform), 3: Device(platform), 4: Device("mps")}

    def began(index: int, name: str) -> None:
        if (index, name) == (3, "began"):  # the other one is ready, and parked
            stand_in.wait_for(lambda: stopped(columns.number(2)))

    columns.on_phase = began
    outcomes = columns.measure(MEET + FINE, MEET + FINE, FINE, FINE, FINE, at_once=9)
    assert [outcome and (outcome.failure, outcome.started_alone) for outcome in outcomes] == [(None, False)] * 5
    columns.devices = {0: Device(platform), 1: Device(platform)}
    assert [outcome and outcome.started_alone for outcome in columns.measure(FINE, FINE, at_once=9)] == [True] * 2


def test_columns_that_started_side_by_side_go_on_side_by_side_and_measure_alone(columns: Columns) -> None:
    meet = MEET.replace(LOGS, f"[1 for log in {LOGS} if 'done' in open(log).read()]")
    body = f"slices('train')\nlog('done')\n{meet}slices('epoch')\nanswer()"
    assert columns.codes(body, body, at_once=9) == [None, None]
    assert columns.log(0)[1:] == ["train 0 0", "train 1 1", "done", "epoch 0 0", "epoch 1 1"]


def test_all_others_are_stopped_while_one_runs(columns: Columns) -> None:
    measuring = "while (given := turn()):\n    say(begun='turn')\n    say(slice=dict(given, count=1, ns=1))\n"
    body = f"say(begun='set up')\nsay(ready='train')\n{measuring}say(begun='finish')\nanswer()"
    seen: list[tuple[str, int]] = []
    started: dict[int, int] = {}

    def look(index: int, name: str) -> None:
        if name != "began":
            started[index] = columns.number(index)
            others = [number for other, number in started.items() if other != index]
            stand_in.wait_for(lambda: all(gone(number) or stopped(number) for number in others))
            assert not stopped(started[index])
            seen.append((name, index))

    columns.on_phase = look
    assert columns.codes(body, body, body) == [None] * 3
    places = {"set up": [0, 1, 2], "turn": [0, 1, 2, 1, 2, 0], "finish": [0, 1, 2]}
    assert seen == [(name, index) for name, of_name in places.items() for index in of_name]


def test_what_a_column_has_started_is_stopped_with_it(columns: Columns) -> None:
    looks: list[int] = []

    def look() -> None:
        (worker,) = psutil.Process(columns.number(0)).children()
        stand_in.wait_for(lambda: stopped(worker.pid))
        looks.append(worker.pid)

    columns.on_cycle = look
    closed = "    for pipe in (0, 1, 2, fd): os.close(pipe)\n"  # nobody waits for what it might say
    assert columns.codes(f"if os.fork() == 0:\n{closed}    hang()\nslices('train')\nanswer()") == [None]
    assert len(looks) == CYCLES
    assert gone(looks[0])


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("say(failure=dict(code='error', cause='a', remedy='b', phase='build', detail=''))", Code.ERROR),
        ("os._exit(3)", Code.CRASH),
        ("answer()", None),
    ],
)
def test_without_a_column_that_leaves_in_its_turn_others_go_on(columns: Columns, ending: str, code: Code) -> None:
    assert columns.codes(FINE, LEAVING + ending, FINE) == [None, code, None]
    assert columns.stages == [("train", [1] * 3), ("train", [2] * 2), ("epoch", [1] * 2), ("epoch", [2] * 2)]
    assert columns.drawn == [3, 2]
    assert columns.log(0)[1:3] == ["train 0 0", "train 1 2"]
    assert columns.log(2)[1:3] == ["train 0 2", "train 1 1"]


def test_a_column_that_is_killed_while_it_is_parked_is_left_out(columns: Columns) -> None:
    columns.on_cycle = lambda: None if columns.stages else os.kill(columns.number(1), signal.SIGKILL)
    assert columns.codes(FINE, FINE) == [None, Code.CRASH]
    assert columns.stages[1:] == [("train", [2]), ("epoch", [1]), ("epoch", [2])]


def test_where_all_columns_leave_the_block_is_over(columns: Columns) -> None:
    codes = columns.codes(LEAVING + "os._exit(3)", "os._exit(3)", "/no/such/python")
    assert codes == [Code.CRASH, Code.CRASH, Code.UNAVAILABLE]


@pytest.mark.parametrize("hang", ["hang()", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_a_column_that_does_not_answer_is_timed_out_alone(columns: Columns, clock: Clock, hang: str) -> None:
    columns.on_phase = lambda index, name: clock.leap() if name == "hang" else None
    assert columns.codes(FINE, LEAVING + "say(begun='hang')\n" + hang, FINE) == [None, Code.TIMEOUT, None]


def test_the_limit_of_time_is_for_what_a_column_has_run_in_all(columns: Columns, clock: Clock) -> None:
    columns.on_phase = lambda index, name: clock.leap(600 * 10**9) if name.startswith("long") else None
    once, twice = "say(begun='long')\n", "say(begun='long')\nslices('train')\nsay(begun='long too')\nhang()"
    assert columns.codes(once + FINE, twice, once + FINE) == [None, Code.TIMEOUT, None]


def test_a_compilation_has_a_limit_of_its_own(columns: Columns, clock: Clock) -> None:
    columns.limits = Limits(900.0, "900 s", compile_s=240.0)
    columns.on_phase = lambda index, name: clock.leap(300 * 10**9) if name in ("load", "first step") else None
    long, compiles = "say(begun='load')\nsay(begun='train')\n" + FINE, "say(begun='first step')\nhang()"
    first, second = columns.failures(long, compiles)
    assert first is None and second is not None
    assert second.cause == "stopped in phase 'first step': compiling took more than 240 s"


def test_side_by_side_the_start_counts_for_each(columns: Columns, clock: Clock) -> None:
    columns.on_phase = lambda index, name: clock.leap() if name == "long" else None
    assert columns.codes(MEET + "hang()", MEET + "say(begun='long')\nhang()", at_once=9) == [Code.TIMEOUT] * 2


def test_a_parked_column_that_holds_too_much_is_ended(columns: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    def held(group: int) -> int:
        return 5 << 30 if stopped(group) and group == columns.number(0) else 0

    def first_is_stopped() -> bool:  # memory is asked for when the one before is ready; the first look is soon after
        stand_in.wait_for(lambda: stopped(columns.number(0)))
        return True

    columns.fits = first_is_stopped
    monkeypatch.setattr(process, "LOOK_S", 0.0)
    monkeypatch.setattr(process, "group_bytes", held)
    columns.limits = Limits(900.0, "900 s", memory_bytes=4 << 30)
    first, second = columns.failures(FINE, FINE)
    assert first is not None and first.code is Code.OOM and "5 GiB" in first.cause
    assert second is None


@pytest.mark.parametrize("alone", [True, False])
def test_what_does_not_fit_is_not_started_and_what_comes_after_it_is(columns: Columns, alone: bool) -> None:
    answers = [True, False, True]
    columns.fits = lambda: answers.pop(0)
    outcomes = columns.measure(FINE, FINE, "hang()", FINE, at_once=1 if alone else 9)
    assert [outcome and outcome.failure is None for outcome in outcomes] == [True, True, None, True]
    assert [event.label for event in columns.events if isinstance(event, TrialStarted)] == ["0", "1", "3"]
    assert answers == []


@pytest.mark.parametrize(
    ("place", "number", "is_left_out"),
    [(1, errno.EAGAIN, True), (1, errno.EMFILE, True), (1, errno.EIO, False), (0, errno.EAGAIN, False)],
)
def test_what_lacks_what_others_have_is_left_out(columns: Columns, place: int, number: int, is_left_out: bool) -> None:
    effects = [OSError(number, os.strerror(number)) if index == place else DEFAULT for index in range(3)]
    with patch.object(block, "Child", wraps=Child, side_effect=effects):
        outcomes = columns.measure(FINE, FINE, FINE)
    without = outcomes.pop(place)
    assert all(outcome and outcome.measurement for outcome in outcomes)
    assert (without is None) is is_left_out
    assert without is None or (without.failure and os.strerror(number) in without.failure.cause)


def test_columns_that_break_the_protocol_are_ended_and_another_goes_on(columns: Columns) -> None:
    bodies = (
        "say(slice=dict(count=1, ns=1))",
        "say({'ready': 'train'}, slice=dict(count=1, ns=1))",
        "say({'ready': 'train'}, **ANSWER)",
        "say(ready='pilot')\nturn()\nsay(ready='train')",
        "say(ready='train')\nturn()\nsay(slice=dict(count=0, ns=1))",
        "say(ready='train')\nturn()\nsay(slice=dict(count=1, ns=0))",
        "slices('train')\nsay(ready='train')",
        "say(ready='lunch')",
        "answer()\nanswer()",
        "os.write(fd, b'nonsense\\n')",
    )
    codes = columns.codes(FINE, *(f"{body}\nhang()" for body in bodies))
    assert codes == [None, *[Code.INVALID] * len(bodies)]


def test_where_there_is_no_guardian_nothing_is_started(columns: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable")))
    assert columns.codes(FINE, FINE) == [Code.CRASH] * 2


def test_a_scratch_folder_is_there_as_long_as_its_child_and_gone_after_the_block(columns: Columns) -> None:
    body = "log(os.environ['TMPDIR'])\nslices('train')\nassert os.path.isdir(os.environ['TMPDIR'])\nanswer()"
    assert columns.codes(body, body) == [None, None]
    folders = {columns.log(index)[1] for index in (0, 1)}
    assert len(folders) == 2
    assert not any(Path(folder).exists() for folder in folders)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("place", ["fits", "on_cycle", "on_tick", "began", "set up", "turn"])
def test_ctrl_c_anywhere_leaves_nothing(columns: Columns, place: str, again: bool) -> None:
    before, interrupt = psutil.Process().num_fds(), Mock(side_effect=KeyboardInterrupt)
    if place in ("began", "set up", "turn"):
        columns.on_phase = lambda index, name: interrupt() if (index, name) == (1, place) else None
    else:
        setattr(columns, place, interrupt)
    sweep = patch("kerasbench.processes.group.sweep", interrupt) if again else nullcontext()
    with sweep, pytest.raises(KeyboardInterrupt):
        columns.measure(FINE, INTERRUPTED if place in ("set up", "turn") else FINE, FINE)
    for log in columns.folder.glob("*.log"):
        assert gone(int(log.read_text().split()[0]))
    assert psutil.Process().num_fds() == before


PARENT = """
import sys
from pathlib import Path
from tests.processes.columns import FINE, Columns
columns = Columns(Path(sys.argv[1]))
columns.on_cycle = lambda: print(flush=True) or sys.stdin.read()
daemon = "if os.fork() == 0:\\n    os.setsid(); log(os.getpid()); hang()\\n"
columns.measure(daemon + FINE, FINE)
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_parent_that_is_killed_leaves_no_child_that_is_parked(columns: Columns, ending: signal.Signals) -> None:
    command = [sys.executable, "-c", PARENT, str(columns.folder)]
    with untraced(), subprocess.Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (guardian,) = [child for child in psutil.Process(parent.pid).children() if "-I" in child.cmdline()]
        daemons = [psutil.Process(int(turn)) for turn in columns.log(0)[1:] if " " not in turn]
        stand_in.wait_for(lambda: stopped(columns.number(0)) and stopped(columns.number(1)))
        parent.send_signal(ending)
    marked = daemons if sys.platform == "linux" else []
    stand_in.wait_for(lambda: all(gone(columns.number(index)) for index in (0, 1)))
    stand_in.wait_for(lambda: all(map(stand_in.is_gone, [guardian, *marked])))
