"""One run over scenario files that go wrong in one way each: every one is a row, and the fine one is complete."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from kerasbench.processes.group import MARK
from kerasbench.protocol.messages import Code
from kerasbench.results.record import Record
from kerasbench.results.store import load
from tests import whole_command

pytestmark = pytest.mark.real

EXPECTED = {
    "raises_in_predict": (Code.ERROR, r"raises_in_predict\.py, line 7: LookupError: nothing to say"),
    "has_the_wrong_shape": (Code.ERROR, r"incompatible shapes"),
    "speaks_in_markup": (Code.ERROR, r"line 10: ValueError: </td><img src=x> \|   \*bold\* \?"),
    "segfaults_in_build": (Code.CRASH, r"died from SIGSEGV in phase 'build'"),
    "is_killed_in_build": (Code.CRASH, r"killed by SIGKILL from outside in phase 'build'"),
    "eats_memory": (Code.OOM, r"used 1\.\d+ GiB in phase 'build', the limit is 1 GiB"),
    "forges_a_measurement": (Code.INVALID, r"other than kerasbench wrote to the result pipe in phase 'build'"),
    "closes_the_pipe": (Code.INVALID, r"the result pipe was taken from kerasbench in phase 'build'"),
}
LAST_WORDS = {
    "segfaults_in_build": "Fatal Python error: Segmentation fault, in segfaults_in_build.py, line 7",
    "is_killed_in_build": "good \\| \\<b\\>bye\\</b\\>",
}


class FinishedRun(NamedTuple):
    """What is left of the command: its process number, exit code and output."""

    number: int
    code: int
    tables: str
    progress: str


# One test, and so one process of the tests, for all that is said of the run: it is made once.
def test_every_fault_is_a_row_and_the_fine_one_is_complete(faults: Path, tmp_path: Path) -> None:
    ended = run_over(faults, tmp_path)
    assert ended.code == 2, ended.progress
    (data,) = tmp_path.glob("*.json")
    (page,) = tmp_path.glob("*.md")
    record = load(data)
    for name in EXPECTED:
        each_fault_is_a_failure_with_its_code_cause_and_remedy(record, name)
    the_others_are_complete(record)
    what_is_printed_begins_the_file_of_all_tables(ended, page)
    what_is_printed_has_every_row_and_nothing_that_a_scenario_could_do_with_it(ended)
    no_child_is_left(ended)


def run_over(faults: Path, folder: Path) -> FinishedRun:
    chosen = ",".join(str(faults / f"{name}.py") for name in ("fine", *EXPECTED))
    options = ["--backend", "jax", "--quick", "--memory-limit", "1g", "--results", str(folder)]
    command = whole_command.command(folder, "--scenario", chosen, *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tables, progress = process.communicate(timeout=400)
    return FinishedRun(process.pid, process.returncode, tables, progress)


def each_fault_is_a_failure_with_its_code_cause_and_remedy(record: Record, name: str) -> None:
    code, cause = EXPECTED[name]
    failure = next(trial.failure for trial in record.trials if trial.scenario == name)
    assert failure is not None
    assert failure.code is code
    assert re.search(cause, failure.cause)
    assert failure.remedy


def the_others_are_complete(record: Record) -> None:
    assert record.parent_cpu_ns > 0
    assert {trial.scenario for trial in record.trials} == {"fine", *EXPECTED}
    assert all(trial.measurement for trial in record.trials if trial.scenario == "fine")
    assert record.rounds_completed == 1


def what_is_printed_begins_the_file_of_all_tables(ended: FinishedRun, page: Path) -> None:
    begin = ended.tables.split("\n\n## Failures")[0]
    assert "| fine " in begin
    assert page.read_text().startswith(begin)


def what_is_printed_has_every_row_and_nothing_that_a_scenario_could_do_with_it(ended: FinishedRun) -> None:
    for name, (code, _) in EXPECTED.items():
        assert re.search(rf"^\| {name} .*\| \*{code}\*", ended.tables, re.MULTILINE)
    for name, words in LAST_WORDS.items():
        assert f"- {name} jax cpu: last output: {words}\n" in ended.tables
    for text in (ended.tables, ended.progress):
        assert all(c.isprintable() or c == "\n" for c in text)
    assert "\\</td\\>\\<img src=x\\>" in ended.tables


def no_child_is_left(ended: FinishedRun) -> None:
    left = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK, "")
            if mark.startswith(f"{ended.number}-") and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
        except psutil.Error:
            continue
    assert left == []
