"""What ``--json`` prints, where the golden files do not have it."""

import json

import msgspec

from kerasbench.analysis.findings import Findings
from kerasbench.pages import data
from kerasbench.report.document import Document
from tests import made


def test_a_loss_that_is_no_number_is_none() -> None:
    lost = made.changed(made.measurement(), learning={"loss": float("nan")})
    run = made.record(made.trial(found=lost), made.trial(backend="jax"))
    printed = data.of_run(Findings.of(run), [run])
    losses = [result.configuration.backend for result in printed.results if result.metric == "final_loss"]
    assert losses == ["jax"]
    text = json.dumps(printed.to_data(), allow_nan=False)  # fits the types that the schema in docs/ is made of
    assert msgspec.json.decode(text, type=Document) == printed
