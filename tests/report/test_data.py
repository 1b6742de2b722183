"""What ``--json`` prints, where the golden files do not have it."""

import json
from typing import Any

import msgspec

from kerasbench.analysis.bisect import bisect
from kerasbench.analysis.findings import Findings
from kerasbench.report import data
from kerasbench.report.document import Document
from tests import made
from tests.records import exactly


def printed(document: Document) -> dict[str, Any]:
    """Return what a script reads, which fits the types that the schema in docs/ is made of."""
    text = json.dumps(document.to_data(), allow_nan=False)
    assert msgspec.json.decode(text, type=Document) == document
    read: dict[str, Any] = json.loads(text)
    return read


def test_a_loss_that_is_no_number_is_none() -> None:
    lost = made.changed(made.measurement(), learning={"loss": float("nan")})
    run = made.record(made.trial(found=lost), made.trial(backend="jax"))
    document = printed(data.of_run(Findings.of(run), [run]))
    losses = [result["configuration"]["backend"] for result in document["results"] if result["metric"] == "final_loss"]
    assert losses == ["jax"]


def test_a_search_that_finds_nothing_has_no_versions_between() -> None:
    names = [f"keras==3.{minor}" for minor in range(6)]
    none = printed(data.of_search(bisect(6, exactly([1.0] * 6)), names, None))["search"]
    assert (none["outcome"], none["last_fast"], none["first_slow"], none["case"]) == ("none", None, None, None)
