"""What programs read, where the golden files do not have it."""

import csv
import io
import json

import msgspec
import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.pages import data
from kerasbench.pages.files import as_csv
from kerasbench.report.document import Document
from tests import made


def test_a_loss_that_is_no_number_is_none() -> None:
    lost = made.changed(made.measurement(), learning={"loss": float("nan")})
    run = made.record(made.trial(found=lost), made.trial(backend="jax"))
    printed = data.of_run(summarize(run), [run])
    losses = [result.configuration.backend for result in printed.results if result.metric == "final_loss"]
    assert losses == ["jax"]
    text = json.dumps(printed.to_data(), allow_nan=False)  # fits the types that the schema in docs/ is made of
    assert msgspec.json.decode(text, type=Document) == printed


def test_the_ratio_of_columns_that_did_not_fit_into_memory_together_is_that_of_the_page() -> None:
    steps = {1: {"jax": 2.0, "torch": 1.0}, 2: {"jax": 6.0, "tensorflow": 9.0}}  # the machine slows down in between
    trials = [
        made.in_block(
            2 * index + block, made.sliced([ms * (1 + index / 100)] * 6), round_index=1 + index, backend=backend
        )
        for index in range(3)
        for block, columns in steps.items()
        for backend, ms in columns.items()
    ]
    summary = summarize(made.record(*trials, rounds=3))
    (ranking,) = summary.rankings
    contrast = made.known(ranking.over_fastest(made.TENSORFLOW))
    rows = csv.DictReader(io.StringIO(as_csv([summary])))
    lines = {(row["backend"], row["metric"]): row for row in rows}
    assert float(lines["tensorflow", "train_step_ms"]["ratio"]) == pytest.approx(contrast.ratio.value)
    assert float(lines["tensorflow", "steady_step_ms"]["ratio"]) > 2.9
