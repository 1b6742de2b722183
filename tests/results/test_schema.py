from pathlib import Path

from kerasbench.results import schema

PAGE = Path(__file__).parents[2] / "docs" / "results.schema.json"


def test_the_schema_in_docs_is_that_of_the_types() -> None:
    assert PAGE.read_text("utf-8") == schema.document(), (
        "python -m kerasbench.results.schema > docs/results.schema.json"
    )
