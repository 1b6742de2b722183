"""The tables that README.md and the documentation name are those of their data."""

import re
from pathlib import Path

from kerasbench.report.files import stale

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TABLES = re.compile(r"<!-- tables of (\S+) -->\n(.*?)<!-- /tables -->", re.DOTALL)


def quoted() -> list[tuple[Path, str]]:
    """Return each page of results that is quoted somewhere, and the quotation."""
    return [(ROOT / name, text) for page in PAGES for name, text in TABLES.findall(page.read_text("utf-8"))]


def test_readme_and_documentation_quote_results() -> None:
    assert len(quoted()) >= 2


def test_every_quoted_page_is_what_its_data_say() -> None:
    assert stale(sorted({page.with_suffix(".json") for page, _ in quoted()})) == []


def test_every_quoted_table_stands_in_its_page() -> None:
    for page, text in quoted():
        table = "\n".join(line for line in text.splitlines() if line.startswith("|"))
        assert table
        assert all(line in page.read_text("utf-8") for line in table.splitlines())
