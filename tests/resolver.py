"""Resolves the extras with uv, in a process of its own while other tests run: it waits for the package index.

    python -m tests.resolver FOLDER CASE...            writes FOLDER/CASE.json for each, one after the other

Nothing is installed. What one resolution has fetched the others find in a cache of this session, which begins empty.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from uv import find_uv_bin

PROJECT = Path(__file__).parents[1]
FOLDER = "KERASBENCH_TEST_EXTRAS"  # in the environment: where the answers are put
TESTS = "test_extras.py"
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-apple-darwin")
LINUX, MACOS = PLATFORMS
PYTHONS = ("3.11", "3.12", "3.13")
OLDEST_MACOS = {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
ENDED = "ended"  # there will be no further answer
INDEX = "index"  # the first answer: does the package index answer at all?
TIMEOUT_S = 300
LOOK_S = 0.2


@dataclass(frozen=True)
class Answer:
    """How uv ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Background:
    """A plugin of pytest: it starts to resolve the extras whose tests were selected, and stops with the session."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def pytest_configure(self) -> None:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="kerasbench-extras-")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.begin([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self.begin(ids)

    def begin(self, selected: Sequence[str]) -> None:
        """Start the process, unless no test needs it or another worker, whose tests are the same, had it started."""
        parameters = [one.partition("[")[2].removesuffix("]") for one in selected if f"{TESTS}::" in one]
        names = [one for one in parameters if one.startswith(PLATFORMS)]  # other tests have parameters too
        if names and self.process is None:
            command = [sys.executable, "-m", "tests.resolver", os.environ[FOLDER], *names]
            self.process = subprocess.Popen(command, cwd=PROJECT, start_new_session=True)

    def pytest_unconfigure(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # uv too
            self.process.wait()
        shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)


def case(platform: str, extra: str, python: str) -> str:
    """Return the name of a case."""
    return "-".join([platform, extra, python])


def answer(name: str) -> Answer:
    """Wait for a case's answer; raise RuntimeError where there will be none."""
    folder = Path(os.environ[FOLDER])
    file = folder / f"{name}.json"
    while not (ended := (folder / ENDED).exists()) and not file.exists():
        time.sleep(LOOK_S)
    if ended and not file.exists():
        raise RuntimeError(f"{name} was not resolved: `python -m tests.resolver` ended before it, and printed why")
    return Answer(**json.loads(file.read_text()))


def main(folder: Path, names: Sequence[str]) -> None:
    try:
        variables = os.environ | OLDEST_MACOS | index() | {"UV_CACHE_DIR": str(folder / "uv")}
        put(folder / f"{INDEX}.json", uv(["-", "--no-deps"], variables, "packaging\n"))
        for name in names:
            put(folder / f"{name}.json", resolved(name, variables))
    finally:
        (folder / ENDED).touch()


def resolved(name: str, variables: dict[str, str]) -> Answer:
    """Resolve a case by what was fetched before, and else with the package index."""
    (platform,) = (one for one in PLATFORMS if name.startswith(one))
    extra, _, python = name.removeprefix(f"{platform}-").rpartition("-")
    wanted = ["pyproject.toml", "--extra", extra, "--python-platform", platform, "--python-version", python]
    found = uv([*wanted, "--offline"], variables)
    return uv(wanted, variables) if found.returncode else found


def uv(arguments: Sequence[str], variables: dict[str, str], requirements: str | None = None) -> Answer:
    command = [find_uv_bin(), "pip", "compile", "-q", "--only-binary", ":all:", "--no-annotate", "--no-header"]
    try:
        ended = subprocess.run(
            [*command, *arguments],
            check=False,
            env=variables,
            input=requirements,
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        return Answer(1, "", str(error))
    return Answer(ended.returncode, ended.stdout, ended.stderr)


def put(file: Path, found: Answer) -> None:
    """Write an answer, which is there as a whole or not at all."""
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(found)))
    partial.rename(file)


def index() -> dict[str, str]:
    """Return where pip is told to look, in uv's variables: uv reads no pip.conf."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True)
    # Of an option that is set twice the environment's comes first, and wins.
    options = [line.partition("=") for line in reversed(listed.stdout.splitlines())]
    told = {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in options}
    found = {"UV_DEFAULT_INDEX": told.get("index-url"), "SSL_CERT_FILE": told.get("cert")}
    return {name: value for name, value in found.items() if value and name not in os.environ}


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
