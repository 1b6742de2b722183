"""Result files of schema 5, read as those of schema 6."""

from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.results.run import SCHEMA, Run, RunConfig, Trial
from kerasbench.variants import of_file

OLDER = 5

Kind = TypeVar("Kind")


def decoded(content: bytes, kind: type[Kind]) -> Kind:
    """Return a part of a file; raise msgspec's errors. What a column has is the one thing that types do not say."""
    known = {DEFAULT: DEFAULT}

    def options(_: type, values: Any) -> Options:
        chosen = of_file(values)
        return known.setdefault(chosen, chosen)  # one object for all trials, which are compared by it again and again

    return msgspec.json.decode(content, type=kind, dec_hook=options)


class _Config(msgspec.Struct):  # what told the mode of a run, which is a field now
    race: dict[str, Any] | None = None
    soak: dict[str, Any] | None = None
    versus: list[str] = []
    threshold: float = 0.0
    explain: bool = False
    refine: bool = False


class _Trial(msgspec.Struct):
    sitting: int = 1


class _Scenario(msgspec.Struct):
    twins: dict[str, str] = {}


class _Run(msgspec.Struct):  # what has another name or another place now; all else is read as it is
    config: _Config
    scenarios: list[_Scenario]
    trials: list[_Trial] = []


def upgraded(run: Run, content: bytes) -> Run:
    """Return what a file holds that was read as if it were a newer one."""
    old = msgspec.json.decode(content, type=_Run)
    config = _config(run.config, old.config)
    scenarios = [replace(now, baselines=then.twins) for now, then in zip(run.scenarios, old.scenarios, strict=True)]
    trials = [replace(now, session=then.sitting) for now, then in zip(run.trials, old.trials, strict=True)]
    return replace(run, config=config, scenarios=scenarios, trials=trials, schema=SCHEMA)


def trial_of(line: bytes) -> Trial:
    trial, old = decoded(line, Trial), msgspec.json.decode(line, type=_Trial)
    return replace(trial, session=old.sitting)


def _config(now: RunConfig, then: _Config) -> RunConfig:
    if then.race is not None:
        return replace(now, mode="fastest", own=then.race, ranks=False, general=False)
    if then.soak is not None:
        effort = replace(now.effort, protocol=replace(now.effort.protocol, lasts=True))
        return replace(now, mode="soak", own=then.soak, effort=effort, ranks=False, general=False, paired=True)
    if len(then.versus) == 2:
        own = dict(zip(("base", "head"), then.versus, strict=True)) | {"threshold": then.threshold}
        return replace(now, mode="versus", own=own, ranks=False, general=False, paired=True)
    if then.explain:
        return replace(now, mode="explain", general=False)
    if now.effort.protocol.kind == "sweep":
        return replace(now, mode="sweep", own={"refine": then.refine})
    return now
