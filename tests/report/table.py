"""Tables out of a page, as a reader sees them."""

import io
import re

from rich.console import Console

from kerasbench.analysis.findings import Findings
from kerasbench.report import console, markdown, page
from kerasbench.report.sections import Page, Section, Words, inlines


def plain(words: Words) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in inlines(words))


def section(text: str, title: str) -> str:
    """Return what stands below a heading, up to the next one."""
    _, found, below = text.partition(f"# {title}\n")
    assert found, f"there is no section {title!r}"
    return re.split(r"\n#+ ", below)[0]


def rows(text: str) -> list[list[str]]:
    """Return the cells of each line of the first table, the line below its header left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def cells_of(text: str, row: str) -> list[str]:
    """Return the cells of the first table row that begins with this text."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {row}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def drawn(found: Section | Page | None) -> str:
    """Return a section or a page as markdown, nothing for none."""
    if found is None:
        return ""
    return markdown.rendered(found) if isinstance(found, Page) else markdown.section(found)


def brief(found: Findings) -> str:
    """Return what a terminal shows of a run, as markdown."""
    return markdown.rendered(page.whole(found).unfolded)


def on_terminal(shown: Page, colour: bool = False) -> str:
    """Return a page as a terminal of 100 columns shows it."""
    terminal = Console(file=io.StringIO(), width=100, force_terminal=colour, highlight=False)
    with terminal.capture() as text:
        console.show(shown, terminal)
    return text.get()
