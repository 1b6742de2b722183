"""One run over scenario files that go wrong in one way each: every one is a row, and the fine one is complete."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from kerasbench.children.group import MARK
from kerasbench.exchange.messages import Code, Failure
from kerasbench.results.record import Record
from kerasbench.results.store import load

pytestmark = [pytest.mark.real, pytest.mark.alone]

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


class Ended(NamedTuple):
    """What is left of the command: its process number, exit code and output."""

    number: int
    code: int
    tables: str
    progress: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many")


@pytest.fixture(scope="module")
def ended(folder: Path) -> Ended:
    files = Path(__file__).parents[1] / "faults"
    chosen = ",".join(str(files / f"{name}.py") for name in ("fine", *EXPECTED))
    options = ["--backend", "jax", "--quick", "--memory-limit", "1g", "--results", str(folder)]
    command = [sys.executable, "-m", "kerasbench", "--scenario", chosen, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tables, progress = process.communicate(timeout=400)
    return Ended(process.pid, process.returncode, tables, progress)


@pytest.fixture(scope="module")
def record(ended: Ended, folder: Path) -> Record:
    assert ended.code == 2, ended.progress
    (data,) = folder.glob("*.json")
    return load(data)


def failure_of(record: Record, name: str) -> Failure:
    failure = next(trial.failure for trial in record.trials if trial.scenario == name)
    assert failure is not None
    return failure


@pytest.mark.parametrize("name", EXPECTED)
def test_each_fault_is_a_failure_with_its_code_cause_and_remedy(record: Record, name: str) -> None:
    code, cause = EXPECTED[name]
    failure = failure_of(record, name)
    assert failure.code is code
    assert re.search(cause, failure.cause)
    assert failure.remedy


def test_the_others_are_complete(record: Record) -> None:
    assert record.parent_cpu_ns > 0
    assert {trial.scenario for trial in record.trials} == {"fine", *EXPECTED}
    assert all(trial.measurement for trial in record.trials if trial.scenario == "fine")
    assert record.rounds_completed == 1


def test_what_is_printed_begins_the_file_of_all_tables(ended: Ended, folder: Path) -> None:
    (page,) = folder.glob("*.md")
    begin = ended.tables.split("\n\n## Failures")[0]
    assert "| fine " in begin
    assert page.read_text().startswith(begin)


def test_what_is_printed_has_every_row_and_nothing_that_a_scenario_could_do_with_it(
    ended: Ended,
) -> None:
    for name, (code, _) in EXPECTED.items():
        assert re.search(rf"^\| {name} .*\| \*{code}\*", ended.tables, re.MULTILINE)
    for name, words in LAST_WORDS.items():
        assert f"- {name} jax cpu said last: {words}\n" in ended.tables
    for text in (ended.tables, ended.progress):
        assert all(c.isprintable() or c == "\n" for c in text)
    assert "\\</td\\>\\<img src=x\\>" in ended.tables


def test_no_child_is_left(ended: Ended) -> None:
    left = []
    for process in psutil.process_iter():
        try:
            mark = process.environ().get(MARK, "")
            if mark.startswith(f"{ended.number}-") and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
        except psutil.Error:
            continue
    assert left == []
