import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_schema_in_docs_is_that_of_the_types() -> None:
    found = subprocess.run(
        [sys.executable, "docs/tools/schema.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    page = (ROOT / "docs" / "results.schema.json").read_text("utf-8")
    assert page == found.stdout, "python docs/tools/schema.py > docs/results.schema.json"
