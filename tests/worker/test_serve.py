"""Inventory and probe in folders of empty packages, and the worker in real children without Keras."""

import os
import platform
import resource
import sys
from pathlib import Path

import msgspec
import pytest

from kerasbench import backends
from kerasbench.processes import process
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import FIND, Code, Failure, Message
from kerasbench.protocol.requests import DescribeRequest, FetchRequest, ProbeRequest, Request, encode_request
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.serve import inventory, probe


def add_distribution(folder: Path, name: str, metadata: str | None) -> None:
    place = folder / f"{name}.dist-info"
    place.mkdir(parents=True)
    if metadata is not None:
        (place / "METADATA").write_text(metadata)


def test_versions_stand_by_normalised_names_of_which_the_first_on_the_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setattr(sys, "path", [str(first), str(second)])
    add_distribution(first, "jax-0.10.2", "Metadata-Version: 2.4\nName: jax\nVersion: 0.10.2\n")
    add_distribution(first, "~ax-0.10.2", None)  # broken, like the next
    add_distribution(first, "half-1.0", "Metadata-Version: 2.4\nName: half\n")
    add_distribution(second, "jax-0.4.0", "Metadata-Version: 2.4\nName: jax\nVersion: 0.4.0\n")
    add_distribution(second, "ml_dtypes-0.6.0", "Metadata-Version: 2.4\nName: Ml_Dtypes\nVersion: 0.6.0\n")
    found = inventory()
    assert found.packages == {"jax": "0.10.2", "ml-dtypes": "0.6.0"}
    assert (found.python, found.prefix) == (platform.python_version(), sys.prefix)
    assert found.architecture == platform.machine()


# What a backend sees.


GPU = Device("cuda", 0, "NVIDIA H200")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which packages are looked for; JAX's module answers for the framework."""
    jax = backends.get("jax")
    backends.get("tensorflow"), backends.get("torch")
    monkeypatch.setattr(jax, "devices", lambda: [Device("cpu"), GPU])
    monkeypatch.setattr(jax, "versions", lambda: {"jax": "0.10.2"})
    monkeypatch.setattr(sys, "modules", {name: module for name, module in sys.modules.items() if name != "keras"})
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    return tmp_path


def add_package(site: Path, name: str, version: str) -> None:
    (site / name).mkdir()
    (site / name / "__init__.py").touch()
    add_distribution(site, f"{name}-{version}", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_a_backend_that_loads_says_its_versions_and_what_it_sees(site: Path) -> None:
    add_package(site, "jax", "0.10.2")
    add_package(site, "keras", "3.15.1")
    add_package(site, "numpy", "2.4.6")
    found = probe(ProbeRequest("jax"))
    assert found.versions == {"keras": "3.15.1", "numpy": "2.4.6", "jax": "0.10.2"}
    assert (found.backend, found.devices, found.python) == ("jax", [Device("cpu"), GPU], sys.version.split()[0])
    (site / "jax" / "__init__.py").write_text("raise ImportError('libcuda.so.1: cannot open')")
    sys.modules.pop("jax")
    with pytest.raises(ImportError, match="libcuda"):
        probe(ProbeRequest("jax"))


@pytest.mark.parametrize(("there", "missing"), [((), "jax"), (("jax",), "keras")])
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    site: Path, there: tuple[str, ...], missing: str
) -> None:
    for name in there:
        add_package(site, name, "1.0")
    with pytest.raises(TrialFailure) as error:
        probe(ProbeRequest("jax"))
    failure = error.value.failure
    assert (failure.code, failure.phase) == (Code.UNAVAILABLE, FIND)
    assert failure.cause == f"{missing} is not installed in {sys.prefix}"
    assert failure.remedy.endswith("-m pip install keras jax")


# A whole request.


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


KNOWN = """
from kerasbench.protocol.messages import Code, Failure
from kerasbench.worker.failure import TrialFailure
raise TrialFailure(Failure(Code.UNSUPPORTED, "known, in a phase of which it does not tell", "none"))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mine.py"


def served(request: Request) -> tuple[list[Message], process.Exit]:
    """Have the real worker serve one request; return what it sent, and its end."""
    lines: list[bytes] = []
    line = TOKEN + b" " + encode_request(request)

    def take(said: bytes) -> bool:
        lines.append(said)
        return True

    ended = process.run(process.Task(sys.executable, os.environ, line, process.Limits(60, "60 s")), take)
    assert all(said.startswith(TOKEN + b" ") for said in lines)
    return [msgspec.json.decode(said.removeprefix(TOKEN), type=Message) for said in lines], ended


def failure(messages: list[Message]) -> Failure:
    assert messages[-1].failure is not None
    return messages[-1].failure


@pytest.mark.processes
def test_an_answer_comes_last_after_the_phases_that_led_to_it(file: Path) -> None:
    file.write_text(SCENARIO + "print('no newline', end='')\n")
    messages, ended = served(DescribeRequest([str(file)]))
    began, begun, done, answer = messages
    assert began.phase is not None and began.phase.name == "worker"
    assert begun.begun == "describe"
    assert done.phase is not None and done.phase.name == "describe"
    assert began.phase.end_ns <= done.phase.start_ns <= done.phase.end_ns
    assert answer.descriptions is not None
    assert [one.title for one in answer.descriptions] == ["Mine, in one line."]
    assert (ended.status, ended.stdout) == (0, "no newline")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("", Code.INVALID, "mine.py"),
        ("1 / 0\n", Code.ERROR, "ZeroDivisionError"),
        (KNOWN, Code.UNSUPPORTED, "known, in a phase"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(file: Path, text: str, code: Code, cause: str) -> None:
    file.write_text(text)
    messages, ended = served(DescribeRequest([str(file)]))
    found = failure(messages)
    assert (found.code, found.phase, ended.status) == (code, "describe", 0)
    assert cause in found.cause


@pytest.mark.processes
def test_rows_that_cannot_be_had_are_no_fault_of_the_file_s(file: Path) -> None:
    file.write_text(SCENARIO)
    messages, _ = served(FetchRequest(str(file), "default"))
    assert (failure(messages).code, failure(messages).phase) == (Code.UNAVAILABLE, "fetch")


@pytest.mark.processes
def test_the_processor_time_of_a_pool_that_lives_to_the_end_is_counted(file: Path) -> None:
    spent_s = []
    for text in (SCENARIO, SCENARIO + WITH_A_WORKER):
        file.write_text(text)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _, ended = served(DescribeRequest([str(file)]))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert ended.status == 0
    assert spent_s[1] > spent_s[0] + 0.2
