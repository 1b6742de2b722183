"""What all tests share: a cache folder and a lock of their own, scenario files to measure, whole runs without Keras."""

import itertools
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from kerasbench.cli import main
from kerasbench.processes.variables import PASSED_ON
from kerasbench.protocol.columns import processors
from kerasbench.results.store import Store
from tests import stand_in
from tests.stand_in import Command
from tests.untraced import untraced

FAULTS = Path(__file__).parent / "faults"
NUMBERS = itertools.count()
EXAMPLES = 20  # made-up inputs for each test that draws them
SEED = "KERASBENCH_TEST_SEED"  # in the environment: what was drawn at random is drawn again


@pytest.fixture(scope="session")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(autouse=True)
def _apart(private: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Descriptions, which are remembered by what they describe, stay out of the user's cache folder.
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(private))
    # Unit tests run beside a measurement, and none waits for what another has left.
    monkeypatch.setattr("kerasbench.host.lock.LOCK", private / f"{next(NUMBERS)}.lock")
    # Coverage gets into the children of the tests: those of users have nothing of it.
    monkeypatch.setattr("kerasbench.processes.variables.PASSED_ON", (*PASSED_ON, "COVERAGE_*"))


@pytest.fixture(autouse=True)
def _untraced(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave coverage out of the children of real tests, but for those that are there to show what children run."""
    traced = request.node.get_closest_marker("real") is None or request.node.get_closest_marker("traced")
    with nullcontext() if traced else untraced():
        yield


class Shell:
    """The command line in this process, in an empty folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Run one command; return its exit code, and what it wrote to stdout and stderr."""
        return (main.main([*words]), *self._capsys.readouterr())

    def out(self, *words: str) -> str:
        """Run a command that must not fail; return what it wrote to stdout."""
        code, out, err = self(*words)
        assert code == 0, err
        return out

    def refused(self, *words: str) -> str:
        """Run a command that must be refused in one line; return that line."""
        code, out, err = self(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path, "2026-01-02T03:04:05Z")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Return a test's own random numbers; where it fails, their seed stands in its report."""
    print(f"to draw the same again: {SEED}={os.environ[SEED]}")
    return random.Random(f"{os.environ[SEED]} {request.node.name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write the files in tests/golden/ again")


def pytest_report_header() -> str:
    return f"random numbers: {SEED}={os.environ[SEED]}"


def pytest_configure(config: pytest.Config) -> None:
    """Have Ctrl-C heeded; draw a seed, of which xdist's workers hear; keep each, and its children, on one processor.

    Frameworks that run side by side take threads for all processors each, and their threads wait for one another.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what a shell has put into the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children inherit what is ignored, too
    settings.register_profile("kerasbench", max_examples=EXAMPLES, deadline=None)
    settings.load_profile("kerasbench")
    os.environ.setdefault(SEED, str(random.SystemRandom().getrandbits(32)))
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    if worker and hasattr(os, "sched_setaffinity"):
        mine = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {mine[int(worker) % processors()]})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs weekly, unless it is named: ``-m weekly``."""
    if "weekly" not in config.getoption("markexpr"):
        items[:] = [item for item in items if item.get_closest_marker("weekly") is None]


@pytest.fixture(scope="module")
def forks() -> Iterator["subprocess.Popen[str]"]:
    with stand_in.forks() as process:
        yield process


@pytest.fixture
def command(tmp_path: Path, forks: "subprocess.Popen[str]", rng: random.Random) -> Iterator[Command]:
    """Return kerasbench as a user starts it, with a stand-in for the interpreter that runs the children."""
    stand_in.furnish(tmp_path)
    made = Command(tmp_path, forks, rng)
    yield made
    made.tidy()


@pytest.fixture
def faults() -> Path:
    return FAULTS
