"""The pages that are committed say what their data say, also where a user has measured since."""

import shutil
import subprocess
from pathlib import Path

import pytest

from kerasbench.report import pages

ROOT = Path(__file__).parent.parent


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """Return a folder with the results and the pages that git knows, as they are now; without git, with all of them."""
    command = ["git", "ls-files", "-z", "README.md", "docs", "results"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\0")
    everything = [file for folder in ("docs", "results") for file in (ROOT / folder).rglob("*") if file.is_file()]
    known = [ROOT / name for name in listed if name] or [ROOT / "README.md", *everything]
    for file in filter(Path.exists, known):
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return tmp_path


def test_readme_and_documentation_quote_results() -> None:
    quoting = pages.pages_with_quotations(ROOT)
    assert [page.name for page in quoting] == ["method.md", "reading.md", "why.md"]


def test_every_committed_page_is_what_its_data_say(committed: Path) -> None:
    assert pages.stale(pages.made_from(pages.default_places(committed))) == []
