"""The tables in the repository are those of its data."""

import re
from pathlib import Path

import pytest

from kerasbench.report.markdown import document
from kerasbench.results import load
from kerasbench.summary import summarize

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "results").glob("*.json"))


def test_there_is_a_result() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_page_of_tables_is_what_its_data_say(file: Path) -> None:
    assert file.with_suffix(".md").read_text() == document(summarize(load(file)))


def test_the_readme_s_tables_stand_in_the_page_that_it_names() -> None:
    readme = (ROOT / "README.md").read_text()
    found = re.search(r"<!-- tables of (\S+) -->\n(.*?)<!-- /tables -->", readme, re.DOTALL)
    assert found is not None
    page = (ROOT / found[1]).read_text()
    sections = [section.strip() for section in re.split(r"\n(?=### )", found[2].strip())]
    assert len(sections) == 2
    assert all(section.removeprefix("#") in page for section in sections)
