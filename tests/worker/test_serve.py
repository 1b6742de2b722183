"""Inventory, probe, descriptions and old interpreters here, and the worker in real children without Keras."""

import io
import json
import os
import platform
import resource
import signal
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from kerasbench import backends
from kerasbench.datasets import DataError
from kerasbench.processes import process
from kerasbench.protocol import requests
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import FIND, Code, Message, TrialFailure
from kerasbench.scenario import ScenarioError
from kerasbench.worker.__main__ import refuse_old_python
from kerasbench.worker.describe import DeferredModule, count, fetch
from kerasbench.worker.serve import forget_children, inventory, probe
from tests import stand_in


def test_an_old_python_says_so_in_the_words_of_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    refuse_old_python(-1)  # this one is new enough
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b't0ken {"kind": "ProbeRequest"}\n')))
    with pytest.raises(SystemExit):
        refuse_old_python(write_end)
    token, _, line = os.read(read_end, 10_000).partition(b" ")
    failure = msgspec.json.decode(line, type=Message).failure
    assert failure is not None
    assert (token, failure.code, failure.phase) == (b"t0ken", Code.UNAVAILABLE, "import")
    assert failure.cause == f"{sys.executable} is Python 3.9"
    assert "3.11 or newer" in failure.remedy
    assert json.loads(line).keys() == {"failure"}


def test_the_end_of_a_child_raises_nothing_while_an_answer_is_sent() -> None:
    def handle(number: int, frame: object) -> None:  # as torch's DataLoader does where it loses a worker
        raise RuntimeError("DataLoader worker is killed by signal: Killed.")

    with stand_in.handling(signal.SIGCHLD, handle):
        with pytest.raises(RuntimeError):
            signal.raise_signal(signal.SIGCHLD)
        forget_children()
        signal.raise_signal(signal.SIGCHLD)


@pytest.mark.parametrize(
    "line",
    ["import costly; costly.value", "from costly import value", "from costly.part import inner", "import costly.part"],
)
def test_a_deferred_module_is_loaded_where_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "costly").mkdir()
    (tmp_path / "costly" / "__init__.py").write_text("value = 7\nimport costly.part")
    (tmp_path / "costly" / "part.py").write_text("inner = 8")
    monkeypatch.syspath_prepend(str(tmp_path))
    deferred: ModuleType = DeferredModule("costly")
    monkeypatch.setattr(sys, "modules", {**sys.modules, "costly": deferred})
    exec("import costly", {})
    assert sys.modules["costly"] is deferred
    exec(line, {})
    assert sys.modules["costly"] is not deferred
    assert deferred.value == 7  # also for who imported it before
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        _ = DeferredModule("no_such_package").layers


ROWS = """
import numpy as np
from kerasbench import Workload, Scenario
from kerasbench.datasets import Dataset

def load():
    return np.zeros(({rows}, 4), np.float32), np.zeros({rows}, np.int32)

data = Dataset("Four numbers", (4,), None, load)
scenario = Scenario(build=print, data=data, workloads=(Workload(train=60, validation=20, test=20),))
"""


def asked(folder: Path, rows: int, workload: str = "default") -> requests.FetchRequest:
    (folder / "mine.py").write_text(ROWS.format(rows=rows))
    return requests.FetchRequest(str(folder / "mine.py"), workload)


def test_real_rows_are_fetched_or_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch(asked(tmp_path, rows=100)) == "Four numbers"
    with pytest.raises(DataError, match="has 99 samples, 100 are needed"):
        fetch(asked(tmp_path, rows=99))
    with pytest.raises(ScenarioError, match="large"):
        fetch(asked(tmp_path, rows=100, workload="large"))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    with pytest.raises(ScenarioError, match="changed while the run was going on"):
        count(requests.CountRequest(str(tmp_path / "mine.py"), "the hash that it had", "default"))


def add_distribution(folder: Path, directory: str, *lines: str) -> None:
    place = folder / f"{directory}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", *lines, ""]))


def test_of_versions_the_first_by_a_normalised_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setattr(sys, "path", [str(first), str(second)])
    add_distribution(first, "jax-0.10.2", "Name: jax", "Version: 0.10.2")
    (first / "~ax-0.10.2.dist-info").mkdir()  # broken, like the next
    add_distribution(first, "half-1.0", "Name: half")
    add_distribution(second, "jax-0.4.0", "Name: jax", "Version: 0.4.0")
    add_distribution(second, "ml_dtypes-0.6.0", "Name: Ml_Dtypes", "Version: 0.6.0")
    answer = inventory()
    assert answer.packages == {"jax": "0.10.2", "ml-dtypes": "0.6.0"}
    assert (answer.python, answer.prefix) == (platform.python_version(), sys.prefix)
    assert answer.architecture == platform.machine()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which packages are looked for; JAX's module answers for the framework."""
    jax = backends.get("jax")
    backends.get("tensorflow"), backends.get("torch")
    monkeypatch.setattr(jax, "devices", lambda: [Device("cpu"), Device("cuda", 0, "NVIDIA H200")])
    monkeypatch.setattr(jax, "versions", lambda: {"jax": "0.10.2"})
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if name != "keras"})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    return tmp_path


def add_package(site: Path, name: str, version: str) -> None:
    (site / name).mkdir()
    (site / name / "__init__.py").touch()
    add_distribution(site, f"{name}-{version}", f"Name: {name}", f"Version: {version}")


def test_a_backend_says_its_versions_and_what_it_sees_or_what_is_not_installed(site: Path) -> None:
    add_package(site, "numpy", "2.4.6")
    for missing, version in ("jax", "0.10.2"), ("keras", "3.15.1"):
        with pytest.raises(TrialFailure) as error:
            probe(requests.ProbeRequest("jax"))
        failure = error.value.failure
        assert (failure.code, failure.phase) == (Code.UNAVAILABLE, FIND)
        assert failure.cause == f"{missing} is not installed in {sys.prefix}"
        assert failure.remedy.endswith("-m pip install keras jax")
        add_package(site, missing, version)
    answer = probe(requests.ProbeRequest("jax"))
    assert answer.versions == {"keras": "3.15.1", "numpy": "2.4.6", "jax": "0.10.2"}
    assert [device.name for device in answer.devices] == ["", "NVIDIA H200"]
    assert (answer.backend, answer.python) == ("jax", sys.version.split()[0])
    (site / "jax" / "__init__.py").write_text("raise ImportError('libcuda.so.1: cannot open')")
    sys.modules.pop("jax")
    with pytest.raises(ImportError, match="libcuda"):
        probe(requests.ProbeRequest("jax"))
    answer = probe(requests.ProbeRequest("jax", imports=False))  # there is a CPU alone, and nothing else to see
    assert answer.versions == {"keras": "3.15.1", "numpy": "2.4.6", "jax": "0.10.2"}
    assert [device.label for device in answer.devices] == ["cpu"]


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
print(time.process_time(), end="")
"""
KNOWN = """
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.messages import TrialFailure
raise TrialFailure(Failure(Code.UNSUPPORTED, "known, in a phase of which it does not tell", "none"))
"""


def served(request: requests.Request) -> tuple[list[Message], process.Exit, float]:
    """Have the real worker serve one request; return what it sent, its end, and the processor time of its processes."""
    lines: list[bytes] = []
    line = TOKEN + b" " + requests.encode_request(request)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def take(said: bytes) -> bool:
        lines.append(said)
        return True

    ended = process.run(process.Task(sys.executable, os.environ, line, process.Limits(60, "60 s")), take)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(said.startswith(TOKEN + b" ") for said in lines)
    messages = [msgspec.json.decode(said.removeprefix(TOKEN), type=Message) for said in lines]
    return messages, ended, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.processes
def test_an_answer_comes_last_after_the_phases_that_led_to_it_and_the_time_of_a_pool_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SCENARIO + "print('no newline', end='')\n")
    messages, ended, _ = served(requests.DescribeRequest([str(file)]))
    began, begun, done, answer = messages
    assert began.phase is not None and began.phase.name == "worker"
    assert begun.begun == "describe"
    assert done.phase is not None and done.phase.name == "describe"
    assert began.phase.end_ns <= done.phase.start_ns <= done.phase.end_ns
    assert answer.descriptions is not None
    assert [description.title for description in answer.descriptions] == ["Mine, in one line."]
    assert (ended.status, ended.stdout) == (0, "no newline")
    file.write_text(SCENARIO + WITH_A_WORKER)
    _, ended, of_both_s = served(requests.DescribeRequest([str(file)]))
    assert ended.status == 0
    assert of_both_s > float(ended.stdout) + 0.29  # what the worker's parent had spent by itself, and the worker


@pytest.mark.processes
@pytest.mark.parametrize(
    ("text", "phase", "code", "cause"),
    [
        ("", "describe", Code.INVALID, "mine.py"),
        ("1 / 0\n", "describe", Code.ERROR, "ZeroDivisionError"),
        (KNOWN, "describe", Code.UNSUPPORTED, "known, in a phase"),
        (SCENARIO, "fetch", Code.UNAVAILABLE, ""),  # rows that cannot be had are no fault of the file's
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, text: str, phase: str, code: Code, cause: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    messages, ended, _ = served(
        requests.DescribeRequest([str(file)]) if phase == "describe" else requests.FetchRequest(str(file), "default")
    )
    failure = messages[-1].failure
    assert failure is not None
    assert (failure.code, failure.phase, ended.status) == (code, phase, 0)
    assert cause in failure.cause
