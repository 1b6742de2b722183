"""Pages and their parts, as a reader sees them."""

import io

from rich.console import Console

from kerasbench.analysis.summary import Summary
from kerasbench.pages import page
from kerasbench.report import console, markdown
from kerasbench.report.sections import Page, Section, Words, inlines


def plain(words: Words) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in inlines(words))


def drawn(shown: Section | Page | None) -> str:
    if shown is None:
        return ""
    return markdown.rendered(shown) if isinstance(shown, Page) else markdown.section(shown)


def brief(summary: Summary) -> str:
    """Return what a terminal shows of a run, as markdown."""
    return markdown.rendered(page.whole(summary).unfolded)


def on_terminal(shown: Page, colour: bool = False) -> str:
    terminal = Console(file=io.StringIO(), width=100, force_terminal=colour, highlight=False)
    with terminal.capture() as text:
        console.show(shown, terminal)
    return text.get()
