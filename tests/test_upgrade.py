"""Result files of earlier schemas are read for ever."""

from pathlib import Path

from kerasbench.options import DEFAULT
from kerasbench.results import load
from kerasbench.upgrade import SCHEMA, upgrade

GOLDEN = Path(__file__).parent / "golden"


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


def test_what_is_of_today_or_no_result_at_all_passes_through() -> None:
    for found in ({"schema": SCHEMA}, {"schema": "1"}, {"schema": 99}, {}, [], 7, None):
        assert upgrade(found) == found
