import json
from pathlib import Path

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.exchange.options import DEFAULT, Options
from kerasbench.plan import steps
from kerasbench.results.record import TrialRecord
from tests import made

HASH = "hash of dense"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache"))
    return tmp_path / "cache" / "steps.json"


def remember(*trials: TrialRecord) -> None:
    steps.remember(summarize(made.record(*trials)))


def took(step_ms: float, backend: str, name: str = "dense", options: Options = DEFAULT) -> TrialRecord:
    return made.trial(name=name, found=made.measurement(step_ms, overhead_ms=0), backend=backend, options=options)


def recalled() -> dict[tuple[str, str], tuple[float, str]]:
    """Return what is remembered, without what a logarithm leaves behind the tenth digit."""
    return {key: (round(one.ms, 9), one.column) for key, one in steps.recalled().items()}


def test_nothing_is_recalled_before_anything_was_measured() -> None:
    assert steps.recalled() == {}


def test_the_fastest_column_of_the_newest_run_is_remembered() -> None:
    remember(took(2.0, "torch"), took(1.0, "jax"))
    assert recalled() == {(HASH, "default"): (1.0, "jax cpu")}
    remember(took(3.0, "torch"))
    assert recalled() == {(HASH, "default"): (3.0, "torch cpu")}


def test_other_scenarios_stay_remembered() -> None:
    remember(took(2.0, "torch"))
    remember(took(4.0, "torch", name="wide"))
    assert {file_hash for file_hash, _ in steps.recalled()} == {HASH, "hash of wide"}


def test_columns_with_options_and_failures_are_not_remembered() -> None:
    remember(took(1.0, "jax", options=Options(jit=False)), made.trial(backend="torch", failure=made.FAILURE))
    assert steps.recalled() == {}


def test_what_another_machine_measured_is_not_recalled(monkeypatch: pytest.MonkeyPatch) -> None:
    remember(took(2.0, "torch"))
    monkeypatch.setattr("platform.node", lambda: "another")
    assert steps.recalled() == {}


@pytest.mark.parametrize("damaged", ["", "[]", "{", '{"NODE": 3}', '{"NODE": {"a": 3}}', '{"NODE": {"a": {"b": [1]}}}'])
def test_a_damaged_file_is_not_believed_and_harms_no_run(
    cache: Path, damaged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.node", lambda: "NODE")
    cache.parent.mkdir()
    cache.write_text(damaged)
    assert steps.recalled() == {}
    remember(took(2.0, "torch"))
    assert recalled() == {(HASH, "default"): (2.0, "torch cpu")}


def test_a_file_that_is_too_large_is_not_read(cache: Path) -> None:
    remember(took(2.0, "torch"))
    cache.write_text(json.dumps(json.loads(cache.read_text())) + " " * steps.MAX_FILE_BYTES)
    assert steps.recalled() == {}


def test_a_cache_that_cannot_be_written_harms_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: "/proc/no/such/place")
    remember(took(2.0, "torch"))
    assert steps.recalled() == {}
