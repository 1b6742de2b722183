"""Pages and tables in markdown, and text that cannot break one. ``list`` draws with it too."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from urllib.parse import quote

from tabulate import tabulate

from kerasbench.report.sections import Inline, Page, Section, Strong, Table, Typed, Words, inlines
from kerasbench.text import one_line

# Inside a word an underscore is none. A brace begins attributes on the site, and addresses become links on GitHub.
_MARKUP = re.compile(r"[\\`*\[\]<>|#~{]|&(?=#|\w+;)|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.", re.IGNORECASE)
# A backslash before these escapes nothing on the site (Python-Markdown), and nothing at all inside HTML.
_OF_HTML = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
# Of a list, of a line across the page, or of a box (!!!) on the site.
_BEGINNING = re.compile(r"^(?P<number>[0-9]*)(?P<sign>[-+.)](?= |-|$)|!(?=!!))")


def rendered(page: Page, chart: str = "", data: str = "") -> str:
    """Return a page as markdown; ``chart``: the file of its chart, ``data``: that of its data."""
    title = [f"# {escape(page.title)}"] if page.title else []
    drawn = next((part for part in page.sections if part.chart is not None), None)
    shown = [section(part, chart=chart if part is drawn else "") for part in page.sections if not part.folded]
    folded = [section(part) for part in page.sections if part.folded]
    source = [f"Data: [JSON]({quote(data)})."] if data else []
    return "\n\n".join([*title, *shown, *source, *folded]) + "\n"


def section(part: Section, chart: str = "") -> str:
    body = list(_body(part, chart))
    if part.folded:
        # md_in_html: on the site, what is inside is markdown too, but for the summary.
        return "\n\n".join([f'<details markdown="1"><summary>{_in_html(part.title)}</summary>', *body, "</details>"])
    return "\n\n".join([*([f"## {escape(part.title)}"] if part.title else []), *body])


def _body(part: Section, chart: str) -> Iterator[str]:
    yield from map(words, part.intro)
    if part.code:
        yield "\n".join(f"    {one_line(line)}" for line in part.code)
    if chart and part.chart is not None:
        yield f"![{escape(part.chart.title)}]({chart})"
    if part.table is not None:
        yield table(part.table)
    yield from map(words, part.notes)
    if part.lines:
        yield "\n".join(f"- {words(line)}" for line in part.lines)
    if part.end:
        yield words(part.end)


def words(text: Words) -> str:
    first, *others = inlines(text) or [""]
    return _inline(first, escape) + "".join(_inline(part, _without_markup) for part in others)


def _without_markup(text: str) -> str:
    return _MARKUP.sub(lambda match: _OF_HTML.get(match[0], rf"\{match[0]}"), one_line(text))


def _in_html(text: str) -> str:
    """Return text for an element of HTML: of no markup whether a reader takes it for HTML or for markdown."""
    of_html = "".join(_OF_HTML.get(character, character) for character in one_line(text))
    return _MARKUP.sub(lambda match: match[0] if match[0] == "&" else f"&#x{ord(match[0]):X};", of_html)


def _inline(part: Inline, escaped: Callable[[str], str]) -> str:
    match part:
        case Typed(text):
            return _code(one_line(text))
        case Strong(text):
            return f"**{escape(text)}**"
    leading, trailing = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
    return f"{leading and ' '}{escaped(part)}{trailing and ' '}" if part.strip() else " "


def table(drawn: Table) -> str:
    rows = []
    for row in drawn.rows:
        stars = ["*" if cell.failed else "**" if cell.strong else "" for cell in row]
        rows.append([cell.marked(f"{star}{escape(cell.text)}{star}") for star, cell in zip(stars, row, strict=True)])
    numeric = [drawn.is_numeric(index) for index in range(len(drawn.columns))]
    return draw_table([escape(name) for name in drawn.columns], rows, numeric)


def draw_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    alignment = ["right" if is_number else "left" for is_number in numeric] or None
    # disable_numparse: cells are text already; tabulate would reformat "1,230".
    form = "pipe" if alignment else "github"
    return tabulate(rows, headers, tablefmt=form, disable_numparse=True, colalign=alignment if rows else None)


@lru_cache(4096)  # many cells have the same text
def escape(text: str) -> str:
    """Make text from a file or a child harmless in a markdown table: one line, no markup, no control characters."""
    return _BEGINNING.sub(r"\g<number>\\\g<sign>", _without_markup(text))


def _code(text: str) -> str:
    """Return it between more backticks than it has in a row: a command keeps its quotes, which a shell looks at."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{text}{space}{fence}"
