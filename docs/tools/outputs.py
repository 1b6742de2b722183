"""Fill in what commands print, between markers in README.md and docs/*.md; ``--check`` only compares.

    <!-- output of kerasbench compare results/a.json results/b.json [0:9] -->
    <!-- output of section explained of results/a.json [mnist_dense, jax cpu +5] -->

and ``<!-- /output -->``. Only commands that measure nothing. ``[0:9]``: these lines alone, as Python counts;
``[text +5]``: five lines after the first one that has the text, without blank ones. A section is one that
``kerasbench report`` can quote; of several files it is the section of what they are merged to.

    python docs/tools/outputs.py [--check]
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kerasbench.analysis.findings import Findings

ROOT = Path(__file__).resolve().parents[2]
MARKER = re.compile(r"(<!-- output of ([^\n]+?)(?: \[([^\]\n]+)\])? -->\n)(.*?)(<!-- /output -->)", re.DOTALL)
SLICE = re.compile(r"(\d*):(\d*)")
WIDTH = "100"  # columns of the terminal that the commands see


def filled(text: str) -> str:
    """Return a page with its outputs filled in."""
    return MARKER.sub(lambda found: f"{found[1]}{_shown(found[2], found[3] or ':')}\n{found[5]}", text)


def _shown(what: str, wanted: str) -> str:
    is_section = what.startswith("section ")
    lines = (_section(what) if is_section else _printed(what)).splitlines()
    chosen = "\n".join(_chosen(lines, wanted))
    return chosen if is_section else f"```text\n{chosen}\n```"


def _chosen(lines: list[str], wanted: str) -> list[str]:
    if numbers := SLICE.fullmatch(wanted):
        return lines[int(numbers[1] or 0) : int(numbers[2]) if numbers[2] else None]
    text, _, count = wanted.rpartition(" +")
    first = next(index for index, line in enumerate(lines) if text in line)
    return [line for line in lines[first + 1 :] if line][: int(count)]


def _section(what: str) -> str:
    from kerasbench.report.pages import quotable

    _, name, _, *files = what.split()
    return quotable(name, _found(*files))


@cache
def _found(*files: str) -> "Findings":
    from kerasbench.analysis.findings import findings
    from kerasbench.results.store import load, merge

    records = [load(ROOT / file) for file in files]
    return findings(merge(records) if len(records) > 1 else records[0])


@cache  # pages may show several parts of one output
def _printed(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "kerasbench" and arguments[0] in ("list", "report", "compare"), command
    called = [sys.executable, "-m", "kerasbench", *arguments]
    with tempfile.TemporaryDirectory() as home:  # a reader's machine remembers no run
        of_home = {"HOME": home, "XDG_CACHE_HOME": home}
        environment = os.environ | of_home | {"COLUMNS": WIDTH, "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
        return subprocess.run(called, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


def main() -> int:
    stale = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text("utf-8")
        if (new := filled(text)) != text:
            stale += 1
            print(page.relative_to(ROOT))
            if "--check" not in sys.argv:
                page.write_text(new, "utf-8")
    return int("--check" in sys.argv and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
