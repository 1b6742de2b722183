"""Several runs of one machine as one record."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from kerasbench.exchange.descriptions import RegimeDescription
from kerasbench.exchange.options import environment_of
from kerasbench.exchange.requests import ProtocolKind
from kerasbench.machine import Machine, told_apart
from kerasbench.results.asked import Counted
from kerasbench.results.keys import Column
from kerasbench.results.record import Group, Origin, Record, ScenarioRecord, TrialRecord, Unshown

Worth = tuple[bool, bool, bool, str]
ENOUGH_ROUNDS = 3  # what an interval needs: analysis.estimates.MIN_TRIALS_FOR_INTERVAL


class Columns(NamedTuple):
    """The columns of a group in one run: all that were asked for, and those that could be tried. No native twins."""

    asked: frozenset[Column]
    tried: frozenset[Column]


@dataclass(frozen=True)
class Outline:
    """What decides whether a run goes into its machine's page, without the run itself; ``file`` is where that is."""

    file: Path
    machine: Machine
    protocol: ProtocolKind
    explains: bool
    compares: bool
    rounds: int
    started: str
    groups: dict[Group, Columns]

    @property
    def has_intervals(self) -> bool:
        return self.rounds >= ENOUGH_ROUNDS

    @property
    def worth(self) -> Worth:
        """Return by what runs are put in order, the best last: the best one's title stands over a page."""
        return (self.protocol == "steady", self.has_intervals, self.is_run, self.started)

    @property
    def is_run(self) -> bool:
        """Whether it is neither an explanation nor a comparison of versions, which are about a few columns."""
        return not (self.explains or self.compares)

    def rank(self, group: Group) -> tuple[bool, bool]:
        """Return what of several runs that measured a group decides first.

        At other sizes a sweep goes before the few of an explanation; at the published one the steady protocol before
        the published one. Then a run goes before an explanation and before a comparison of versions.
        """
        return (self.protocol == ("sweep" if group.sized else "steady"), self.is_run)

    def replaces(self, older: "Outline", group: Group) -> bool:
        """Tell whether a newer run takes an older one's place: nothing that was on the page may vanish from it.

        It was asked for every backend on every device that the older one tried (on whatever other terms), also by an
        interpreter without a label where that one was, and has intervals where that one has.
        """
        asked, tried = self.groups[group].asked, older.groups[group].tried
        covers = {column[:2] for column in asked} >= {column[:2] for column in tried} and _plain(asked) >= _plain(tried)
        return covers and self.has_intervals >= older.has_intervals


@dataclass
class Merged(Record):
    """Groups of several runs as one record. Its own fields are those of the run that is worth most."""

    origins: dict[Group, Origin] = field(default_factory=dict)
    left_out: dict[Group, list[Unshown]] = field(default_factory=dict)
    merged: int = 1

    def origin(self, group: Group) -> Origin:
        return self.origins[group] if group in self.origins else super().origin(group)

    @property
    def unshown(self) -> dict[Group, list[Unshown]]:
        return self.left_out

    @property
    def runs(self) -> int:
        return self.merged


def outline(record: Record, file: Path = Path()) -> Outline:
    return Outline(
        file,
        record.machine,
        record.asked.effort.protocol.kind,
        record.asked.explain,
        bool(record.asked.versus),
        record.rounds_completed,
        record.started,
        _groups(record.trials),
    )


def _plain(columns: Iterable[Column]) -> set[tuple[str, str]]:
    """Return the backends and devices of those columns whose interpreter has no label."""
    return {(backend, device) for backend, device, options in columns if not environment_of(options)}


def _groups(trials: Sequence[TrialRecord]) -> dict[Group, Columns]:
    asked: dict[Group, set[Column]] = {trial.group: set() for trial in trials}
    tried: dict[Group, set[Column]] = {trial.group: set() for trial in trials}
    for trial in trials:
        if not trial.options.native:
            asked[trial.group].add(trial.column)
            tried[trial.group] |= {trial.column} if trial.round else set()
    return {group: Columns(frozenset(asked[group]), frozenset(tried[group])) for group in asked}


def by_machine(outlines: Sequence[Outline]) -> list[list[Outline]]:
    """Group runs by the machine that they ran on, in the order in which the machines first appear."""
    return [[outlines[index] for index in group] for group in told_apart([one.machine for one in outlines])]


def _shared_out(outlines: Sequence[Outline]) -> list[tuple[Outline, set[Group]]]:
    """Return the runs that some group is taken from, the best first, and which groups; any run where there are none."""
    best_first = sorted(outlines, key=lambda one: one.worth, reverse=True)
    chosen = {group: _chosen(best_first, group) for one in best_first for group in one.groups}
    shares = [(one, {group for group, by in chosen.items() if by is one}) for one in best_first]
    return [(one, groups) for one, groups in shares if groups] or shares[:1]


def _chosen(best_first: Sequence[Outline], group: Group) -> Outline:
    """Return the run that a group is taken from; of two that began at once, the better, if it can take the other's."""
    having = [one for one in reversed(best_first) if group in one.groups]
    rank = max(one.rank(group) for one in having)
    in_time = sorted((one for one in having if one.rank(group) == rank), key=lambda one: one.started)
    return reduce(lambda held, newer: newer if newer.replaces(held, group) else held, in_time)


def _unshown(outlines: Sequence[Outline], shown: Outline, group: Group) -> list[Unshown]:
    """Return what a page has to say of runs of a group that it does not show, the newest first.

    A newer run has tried its columns again, an older one those that are missing from the one that is shown.
    """
    found: list[Unshown] = []
    said: set[Column] = set()
    for one in sorted(outlines, key=lambda one: (one.started, one is shown), reverse=True):
        if one is shown:
            said |= one.groups[group].asked
        elif group in one.groups and one.rank(group) == shown.rank(group):
            columns = one.groups[group].tried - said
            said |= columns
            found += [Unshown(one.started, one.started > shown.started, tuple(sorted(columns)))] if columns else []
    return found


def merge(records: Sequence[Record]) -> Record:
    """Return one record of one machine's runs (see ``merge_outlined``).

    Raises:
        ValueError: there is nothing to merge.
    """
    outlines = [outline(record) for record in records]
    of = {id(one): record for one, record in zip(outlines, records, strict=True)}
    return merge_outlined(outlines, lambda one: of[id(one)])


def merge_outlined(outlines: Sequence[Outline], read: Callable[[Outline], Record]) -> Record:
    """Return one record of one machine's runs: of each group the run that has taken the others' places (``replaces``).

    A group is taken whole from one run, because its cells were paired there round by round. Only runs that something is
    taken from are read.

    Raises:
        ValueError: there is nothing to merge.
    """
    if not outlines:
        raise ValueError("nothing to merge")
    shares = _shared_out(outlines)
    records = [read(one) for one, _ in shares]
    trials: list[TrialRecord] = []
    origins: dict[Group, Origin] = {}
    left_out: dict[Group, list[Unshown]] = {}
    for (one, groups), record in zip(shares, records, strict=True):
        trials += [trial for trial in record.trials if trial.group in groups]
        origins |= {group: record.origin(group) for group in groups}
        left_out |= {group: _unshown(outlines, one, group) for group in groups}
    taken = [(record, groups) for (_, groups), record in zip(shares, records, strict=True)]
    own = {each.name: getattr(records[0], each.name) for each in dataclasses.fields(Record)}
    return Merged(
        **own
        | {
            "scenarios": _scenarios(taken),
            "trials": trials,
            "flops": _flops(taken),
            "minimal_effect": max(record.minimal_effect for record in records),
        },
        origins=origins,
        left_out=left_out,
        merged=len(shares),
    )


def _flops(shares: Sequence[tuple[Record, set[Group]]]) -> list[Counted]:
    """Return the operations of each regime that something is taken of, as the best run counted them."""
    found: dict[tuple[str, str], Counted] = {}
    for record, groups in shares:
        shown = {(group.scenario, group.regime) for group in groups}
        for one in record.flops:
            if (one.scenario, one.regime) in shown:
                found.setdefault((one.scenario, one.regime), one)
    return list(found.values())


def _scenarios(shares: Sequence[tuple[Record, set[Group]]]) -> list[ScenarioRecord]:
    """Return the scenarios that something is taken of, as the best run has them, each regime as the run it is taken of.

    A run of a saved model describes the one size that it measured, and a scenario's file may have lost a regime since.
    """
    kept: dict[str, ScenarioRecord] = {}
    regimes: dict[str, dict[str, RegimeDescription]] = {}
    for record, groups in shares:
        shown = {(group.scenario, group.regime) for group in groups}
        for scenario in record.scenarios:
            name = scenario.description.name
            own = {one.name: one for one in scenario.description.regimes if (name, one.name) in shown}
            if own:
                kept.setdefault(name, scenario)
                regimes[name] = own | regimes.get(name, {})
    return [_with_regimes(kept[name], regimes[name]) for name in sorted(kept)]


def _with_regimes(scenario: ScenarioRecord, regimes: Mapping[str, RegimeDescription]) -> ScenarioRecord:
    """Return a scenario with these regimes, its own in its own order and before all others."""
    own = [one.name for one in scenario.description.regimes if one.name in regimes]
    ordered = [regimes[name] for name in dict.fromkeys([*own, *regimes])]
    return dataclasses.replace(scenario, description=dataclasses.replace(scenario.description, regimes=ordered))
