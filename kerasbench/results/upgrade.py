"""Older result files: what each schema changed, one function for each step, applied in a chain."""

from collections.abc import Callable
from typing import Any

SCHEMA = 4


class Incomplete(Exception):
    """A file that says that it is of an older schema and lacks what that had."""


def upgrade(found: Any) -> Any:
    """Return a result file's content in today's schema; what is no result file passes through, to be refused later.

    Raises:
        Incomplete: an older file lacks what its schema has.
    """
    if not isinstance(found, dict):
        return found
    for schema in range(_schema(found), SCHEMA):
        try:
            found = _STEPS[schema](found) | {"schema": schema + 1}
        except (KeyError, TypeError, AttributeError) as error:
            raise Incomplete(f"not of schema {schema}, as it says: {error!r}") from None
    return found


def _schema(found: dict[str, Any]) -> int:
    schema = found.get("schema")
    return schema if isinstance(schema, int) and schema in _STEPS else SCHEMA


def _from_1(record: dict[str, Any]) -> dict[str, Any]:
    """Schema 2 knows options, noise, parity and throughput, which schema 1 did not measure."""
    trials = [_trial_from_1(trial) for trial in record["trials"]]
    return record | {"minimal_effect": 0.03, "trials": trials}


def _trial_from_1(trial: dict[str, Any]) -> dict[str, Any]:
    old = trial["measurement"]
    if old is None:
        return trial
    wall_ns = sum(phase["end_ns"] - phase["start_ns"] for phase in trial["phases"] if phase["name"] == "train")
    new = {
        "throughput": None,
        "parity": None,
        "usage": {"cpu_ns": old["cpu_ns"], "wall_ns": wall_ns, "involuntary_switches": None},
        "resolved": old["resolved"] | _TERMS_OF_1,
    }
    return trial | {"measurement": {name: value for name, value in old.items() if name != "cpu_ns"} | new}


def _from_2(record: dict[str, Any]) -> dict[str, Any]:
    """Schema 3 holds what was asked, as a whole, so that a run can be resumed."""
    effort = {"max_rounds": record["max_rounds"], "protocol": {"kind": record["protocol"]}}
    gone = ("seed", "data", "protocol", "max_rounds")
    kept = {name: value for name, value in record.items() if name not in gone}
    return kept | {"asked": {"seed": record["seed"], "data": record["data"], "effort": effort}}


def _from_3(record: dict[str, Any]) -> dict[str, Any]:
    """Schema 4 has short epochs as blocks: it measures in slices, of which one may hold several."""
    return record | {"trials": [_trial_from_3(trial) for trial in record["trials"]]}


def _trial_from_3(trial: dict[str, Any]) -> dict[str, Any]:
    measurement = trial["measurement"]
    if measurement is None:
        return trial
    training = measurement["training"]
    epochs = [{"count": 1, "ns": ns} for ns in training["epochs_ns"]]
    kept = {name: value for name, value in training.items() if name != "epochs_ns"} | {"epochs": epochs}
    return trial | {"measurement": measurement | {"training": kept}}


# Only float32 could be asked for, and only CPUs had been measured, which know no TF32.
_TERMS_OF_1 = {"compute_dtypes": ["float32"], "weight_dtypes": ["float32"], "fp32": "ieee"}
_STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _from_1, 2: _from_2, 3: _from_3}
