"""Tables out of a page, as a reader sees them."""


def section(page: str, title: str) -> str:
    """Return what stands below a heading, up to the next one of its level."""
    _, found, below = page.partition(f"## {title}\n")
    assert found, f"there is no section {title!r}"
    return below.partition("\n## ")[0]


def rows(page: str) -> list[list[str]]:
    """Return the cells of each line of the first table, the line below its header left out."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]
