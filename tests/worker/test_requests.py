"""How a worker serves a request and leaves, in real children without Keras."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from kerasbench.processes import process
from kerasbench.protocol.messages import Code, Failure, Message
from kerasbench.protocol.requests import DescribeRequest, FetchRequest, Request, encode_request

pytestmark = pytest.mark.processes

TOKEN = b"t0ken"
SCENARIO = """'''Mine, in one line.'''
from kerasbench import Workload, Scenario
mine = Scenario(build=print, data=print, workloads=(Workload(train=320, batch=16),))
"""
# Like one of a pool's workers: it ends by itself as soon as its parent has gone.
WITH_A_WORKER = """
import multiprocessing, os, time

def work(said, saying, orders, ordering):
    os.close(ordering)
    while time.process_time() < 0.3: pass
    os.write(saying, b".")
    os.read(orders, 1)

pipes = (*os.pipe(), *os.pipe())
worker = multiprocessing.get_context("fork").Process(target=work, args=pipes, daemon=True)
worker.start()
os.read(pipes[0], 1)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.py"


def serve(request: Request) -> tuple[list[Message], process.Exit]:
    """Have the real worker serve one request; return what it sent, and its end."""
    lines: list[bytes] = []
    line = TOKEN + b" " + encode_request(request)

    def take(said: bytes) -> bool:
        lines.append(said)
        return True

    ended = process.run(sys.executable, os.environ, line, 60, take)
    assert all(said.startswith(TOKEN + b" ") for said in lines)
    return [msgspec.json.decode(said.removeprefix(TOKEN), type=Message) for said in lines], ended


def failure(messages: list[Message]) -> Failure:
    assert messages[-1].failure is not None
    return messages[-1].failure


def test_an_answer_comes_last_after_the_phases_that_led_to_it(file: Path) -> None:
    file.write_text(SCENARIO + "print('no newline', end='')\n")
    messages, ended = serve(DescribeRequest([str(file)]))
    began, begun, done, answer = messages
    assert began.phase is not None and began.phase.name == "worker"
    assert begun.begun == "describe"
    assert done.phase is not None and done.phase.name == "describe"
    assert began.phase.end_ns <= done.phase.start_ns <= done.phase.end_ns
    assert answer.descriptions is not None
    assert [one.title for one in answer.descriptions] == ["Mine, in one line."]
    assert (ended.status, ended.stdout) == (0, "no newline")


def test_a_file_that_is_no_scenario_is_the_file_s_fault(file: Path) -> None:
    file.write_text("")
    messages, ended = serve(DescribeRequest([str(file)]))
    found = failure(messages)
    assert (found.code, found.phase, ended.status) == (Code.INVALID, "describe", 0)
    assert "mine.py" in found.cause and "docs/scenarios.md" in found.remedy


def test_what_a_file_raises_is_told_with_its_traceback(file: Path) -> None:
    file.write_text("1 / 0\n")
    messages, _ = serve(DescribeRequest([str(file)]))
    found = failure(messages)
    assert (found.code, found.phase) == (Code.ERROR, "describe")
    assert "ZeroDivisionError" in found.cause


def test_rows_that_cannot_be_had_are_no_fault_of_the_file_s(file: Path) -> None:
    file.write_text(SCENARIO)
    messages, _ = serve(FetchRequest(str(file), "default"))
    assert (failure(messages).code, failure(messages).phase) == (Code.UNAVAILABLE, "fetch")


def test_a_worker_leaves_with_its_parent(file: Path) -> None:
    file.write_text("import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(1)\n")
    line = TOKEN + b" " + encode_request(DescribeRequest([str(file)]))
    read_end, write_end = os.pipe()
    command = [sys.executable, str(process.WORKER), str(write_end)]
    worker = psutil.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(write_end,))
    try:
        worker.stdin.write(line)
        worker.stdin.flush()
        assert int(worker.stdout.readline()) == worker.pid
        worker.stdin.close()  # as the kernel does for a parent that was killed
        assert worker.wait(60) == 1
    finally:
        worker.stdout.close()
        if worker.is_running():
            worker.kill()
        for descriptor in (read_end, write_end):
            os.close(descriptor)


def test_the_processor_time_of_a_pool_that_lives_to_the_end_is_counted(file: Path) -> None:
    spent_s = []
    for text in (SCENARIO, SCENARIO + WITH_A_WORKER):
        file.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, ended = serve(DescribeRequest([str(file)]))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert ended.left_cpu_s == 0.0
    assert spent_s[1] > spent_s[0] + 0.2
