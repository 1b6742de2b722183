"""What the quick commands do not load. validation/studies/start-up.md has durations."""

import sys
from pathlib import Path

import pytest

from tests import made
from tests.records import DATED
from tests.repository import printed

pytestmark = pytest.mark.processes

# What measures, what starts processes, what computes, and what only some of the commands need.
SLOW = {"concurrent", "filelock", "msgspec", "numpy", "psutil", "pydantic", "rich", "scipy", "tomlkit"}
SLOW |= {"keras", "jax", "tensorflow", "torch"}
ROOMS = {"analysis", "environments", "host", "native", "processes", "results", "runs", "worker"}
OF_LIST = {"platformdirs"}
LOADED = """
import sys
from kerasbench.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sys.modules)
"""


def loaded(*arguments: object, cache: Path) -> set[str]:
    """Return the modules that a command has loaded: packages of others by name, our own by room and by name."""
    told = printed(sys.executable, "-c", LOADED, *arguments, XDG_CACHE_HOME=str(cache), HOME=str(cache))
    modules = told.splitlines()[-1].split()
    ours = {name for name in modules if name.startswith("kerasbench.")}
    return {name.partition(".")[0] for name in modules} | {".".join(name.split(".")[:2]) for name in ours} | ours


OWN = {f"kerasbench.{room}" for room in ROOMS}


@pytest.mark.parametrize("argument", ["--help", "-h", "--version"])
def test_help_loads_what_it_takes_to_parse_a_line_and_nothing_else(argument: str, tmp_path: Path) -> None:
    modules = loaded(argument, cache=tmp_path)
    rest = {f"kerasbench.{name}" for name in ("api", "backends", "plan", "protocol", "report", "scenario")}
    assert "click" in modules
    assert not modules & (SLOW | OF_LIST | OWN | rest)


def test_list_loads_nothing_that_measures_once_all_is_remembered(tmp_path: Path) -> None:
    first = loaded("list", cache=tmp_path)
    assert {"kerasbench.processes", "psutil"} <= first  # a child described the files
    second = loaded("list", cache=tmp_path)
    assert second >= OF_LIST
    assert not second & (SLOW | OWN | {"kerasbench.protocol.measurement", "kerasbench.protocol.messages"})


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made.stored(tmp_path / "results", DATED[0])
    return tmp_path / "results"


def test_report_loads_nothing_that_measures_or_draws_on_a_terminal(results: Path) -> None:
    modules = loaded("report", results, cache=results.parent)
    assert {"scipy", "kerasbench.analysis"} <= modules
    unused = {"environments", "native", "processes", "runs", "worker", "pages.html", "report.console"}
    assert not modules & ({"keras", "psutil", "rich"} | {f"kerasbench.{name}" for name in unused})


def test_commands_that_only_read_start_no_threads_to_compute(results: Path) -> None:
    command = f"{LOADED}\nimport psutil; print(psutil.Process().num_threads())"
    for words in (["report", results], ["compare", results, results], ["history", results]):
        *_, modules, threads = printed(sys.executable, "-c", command, *words).splitlines()
        assert ("scipy" in modules.split(), threads) == (True, "1")
