"""Result files of schema 5, read as those of schema 6."""

from dataclasses import replace
from typing import Any

import msgspec

from kerasbench.results.run import SCHEMA, Run, RunConfig, Trial

OLDER = 5


class _OldTrial(msgspec.Struct):
    sitting: int = 1


class _OldScenario(msgspec.Struct):
    twins: dict[str, str] = {}


class _OldRun(msgspec.Struct):
    """What has another name or another place now; all else is read as it is."""

    config: dict[str, Any]
    scenarios: list[_OldScenario]
    trials: list[_OldTrial] = []


def run_of(content: bytes) -> Run:
    run, old = msgspec.json.decode(content, type=Run), msgspec.json.decode(content, type=_OldRun)
    pairs = zip(run.scenarios, old.scenarios, strict=True)
    return replace(
        run,
        config=msgspec.convert(_config(old.config), RunConfig),
        scenarios=[replace(facts, baselines=before.twins) for facts, before in pairs],
        trials=[replace(trial, session=b.sitting) for trial, b in zip(run.trials, old.trials, strict=True)],
        schema=SCHEMA,
    )


def trial_of(line: bytes) -> Trial:
    trial, old = msgspec.json.decode(line, type=Trial), msgspec.json.decode(line, type=_OldTrial)
    return replace(trial, session=old.sitting)


def _config(old: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration whose mode is a field, and no longer told by what it was asked."""
    versions = (
        {"base": old["versus"][0], "head": old["versus"][1], "threshold": old.get("threshold", 0.0)}
        if (len(old.get("versus") or []) == 2)
        else None
    )
    sweeps = old.get("effort", {}).get("protocol", {}).get("kind") == "sweep"
    alone = {"ranks": False, "general": False}
    if old.get("race"):
        return old | alone | {"mode": "fastest", "own": old["race"]}
    if old.get("soak"):
        return old | alone | {"mode": "soak", "own": old["soak"], "paired": True}
    if versions:
        return old | alone | {"mode": "versus", "own": versions, "paired": True}
    if old.get("explain"):
        return old | {"mode": "explain", "general": False}
    return old | ({"mode": "sweep", "own": {"refine": old.get("refine", False)}} if sweeps else {})
