"""Result files of earlier schemas are read for ever."""

import json
from pathlib import Path

import pytest

from kerasbench.analysis.findings import findings
from kerasbench.errors import ResultsError
from kerasbench.exchange.options import DEFAULT
from kerasbench.report import page
from kerasbench.results.store import load
from kerasbench.results.upgrade import SCHEMA, upgrade

GOLDEN = Path(__file__).parents[1] / "golden"


def test_schema_1_is_read_with_what_it_measured_and_nothing_that_it_did_not() -> None:
    record = load(GOLDEN / "schema_1.json")
    assert record.schema == SCHEMA
    (trial,) = record.trials
    assert trial.measurement is not None
    assert trial.measurement.usage.cpu_ns > 0
    assert 0 < trial.measurement.usage.processors <= record.machine.cores
    assert (trial.measurement.parity, trial.measurement.throughput) == (None, None)
    assert trial.measurement.resolved.fp32 == "ieee"
    assert (trial.options, trial.noise, trial.surroundings) == (DEFAULT, [], None)
    assert record.minimal_effect == 0.03


@pytest.mark.parametrize("schema", range(1, SCHEMA + 1))
def test_a_file_of_every_schema_is_read_and_drawn(schema: int) -> None:
    file = GOLDEN / f"schema_{schema}.json"
    assert json.loads(file.read_text())["schema"] == schema
    record = load(file)
    assert (record.schema, record.asked.seed, record.asked.effort.protocol.kind) == (SCHEMA, 0, "steady")
    assert "| iris_mlp " in page.document(findings(record))


def test_an_older_file_that_lacks_what_its_schema_has_is_refused(tmp_path: Path) -> None:
    for schema in range(1, SCHEMA):
        file = tmp_path / "x.json"
        file.write_text(json.dumps({"schema": schema, "trials": [7]}))
        with pytest.raises(ResultsError, match=f"not of schema {schema}, as it says"):
            load(file)


def test_what_is_of_today_or_no_result_at_all_passes_through() -> None:
    through: list[object] = [{"schema": SCHEMA}, {"schema": "1"}, {"schema": 99}, {}, [], 7, None]
    for found in through:
        assert upgrade(found) == found
