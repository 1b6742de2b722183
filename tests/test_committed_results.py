"""The pages that are committed say what their data say."""

from pathlib import Path

from kerasbench.report import pages

ROOT = Path(__file__).parent.parent


def test_readme_and_documentation_quote_results() -> None:
    quoting = pages.pages_with_quotations(ROOT)
    assert [page.name for page in quoting] == ["method.md", "reading.md", "why.md"]


def test_every_committed_page_is_what_its_data_say() -> None:
    assert pages.stale(pages.made_from(pages.default_places(ROOT))) == []
