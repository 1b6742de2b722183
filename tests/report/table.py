"""Tables out of a page, as a reader sees them."""

from kerasbench.report import markdown
from kerasbench.report.sections import Page, Section


def section(page: str, title: str) -> str:
    """Return what stands below a heading, up to the next one of its level."""
    _, found, below = page.partition(f"## {title}\n")
    assert found, f"there is no section {title!r}"
    return below.partition("\n## ")[0]


def rows(page: str) -> list[list[str]]:
    """Return the cells of each line of the first table, the line below its header left out."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def drawn(found: Section | Page | None) -> str:
    """Return a section or a page as markdown, nothing for none."""
    if found is None:
        return ""
    return markdown.rendered(found) if isinstance(found, Page) else markdown.section(found)
