"""A page on stdout: for a terminal, as wide as it is; as markdown where it is piped."""

import sys
from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from kerasbench.report import markdown
from kerasbench.report.sections import Page, Section, Strong, Table, Typed, Words, inlines
from kerasbench.text import blanked


def print_page(page: Page) -> None:
    if sys.stdout.isatty():
        show(page, Console(highlight=False))
    else:
        print(markdown.rendered(page.unfolded))


def show(page: Page, console: Console) -> None:
    if page.title:
        console.print(Text(blanked(page.title), style="bold"))
    for section in page.unfolded.sections:
        for part in _section(section):
            console.print(part)


def _section(section: Section) -> Iterator[RenderableType]:
    """Yield what a section shows, but its chart, which has no number that the table has not."""
    yield Text(f"\n{blanked(section.title)}" if section.title else "", style="bold")
    yield from map(_words, section.intro)
    yield from (Text(f"    {blanked(line)}") for line in section.code)
    if section.table is not None:
        yield _table(section.table)
    for note in section.notes:
        words = _words(note)
        words.stylize("dim")
        yield words
    yield from (Padding(Text("• ") + _words(line), (0, 0, 0, 1)) for line in section.lines)
    if section.end:
        yield _words(section.end)


def _words(words: Words) -> Text:
    text, styles = Text(), {Strong: "bold", Typed: "cyan"}
    for part in inlines(words):
        text.append(blanked(part if isinstance(part, str) else part.text), style=styles.get(type(part), ""))
    return text


def _table(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for index, name in enumerate(table.columns):
        grid.add_column(Text(blanked(name)), justify="right" if table.is_numeric(index) else "left", overflow="fold")
    for row in table.rows:
        styles = ["bold green" if cell.strong else "italic" if cell.failed else "" for cell in row]
        texts = (Text(blanked(cell.marked(cell.text)), style) for cell, style in zip(row, styles, strict=True))
        grid.add_row(*texts)
    return grid
