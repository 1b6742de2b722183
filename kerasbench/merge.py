"""Several runs of one machine as one record."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench.machine import Machine, told_apart
from kerasbench.request import ProtocolKind
from kerasbench.results import Group, Origin, Record, ScenarioRecord, TrialRecord
from kerasbench.stats import MIN_TRIALS_FOR_INTERVAL

Worth = tuple[bool, bool, bool, str]


@dataclass(frozen=True)
class Outline:
    """What decides whether a run goes into its machine's page, without the run itself; ``file`` is where that is."""

    file: Path
    machine: Machine
    protocol: ProtocolKind
    explains: bool
    rounds: int
    started: str
    groups: frozenset[Group]

    def worth(self, sized: bool = False) -> Worth:
        """Return what of several runs that measured a group decides: the largest is taken.

        At other sizes a sweep goes before the few of an explanation; at the published one the steady protocol before
        the published one. Then intervals go before none, a run before an explanation, newer before older.
        """
        fits = self.protocol == ("sweep" if sized else "steady")
        return (fits, self.rounds >= MIN_TRIALS_FOR_INTERVAL, not self.explains, self.started)


@dataclass
class Merged(Record):
    """Groups of several runs as one record. Its own fields are those of the run that is worth most."""

    origins: dict[Group, Origin] = field(default_factory=dict)

    def origin(self, group: Group) -> Origin:
        return self.origins[group] if group in self.origins else super().origin(group)


def outline(record: Record, file: Path = Path()) -> Outline:
    return Outline(
        file,
        record.machine,
        record.asked.effort.protocol.kind,
        record.asked.explain,
        record.rounds_completed,
        record.started,
        frozenset(trial.group for trial in record.trials),
    )


def by_machine(outlines: Sequence[Outline]) -> list[list[Outline]]:
    """Group runs by the machine that they ran on, in the order in which the machines first appear."""
    return [[outlines[index] for index in group] for group in told_apart([one.machine for one in outlines])]


def needed(outlines: Sequence[Outline]) -> list[Outline]:
    """Return the runs of a machine that some group is taken from, the best first."""
    best_first, taken = _shared_out(outlines)
    return [one for one, groups in zip(best_first, taken, strict=True) if groups] or best_first[:1]


def _shared_out(outlines: Sequence[Outline]) -> tuple[list[Outline], list[set[Group]]]:
    """Return the runs, the best first, and for each the groups that are taken from it."""
    best_first = sorted(outlines, key=Outline.worth, reverse=True)
    taken: list[set[Group]] = [set() for _ in best_first]
    for group in {group for one in best_first for group in one.groups}:
        having = [index for index, one in enumerate(best_first) if group in one.groups]
        taken[max(having, key=lambda index: best_first[index].worth(group.sized))].add(group)
    return best_first, taken


def merge(records: Sequence[Record]) -> Record:
    """Return one record of one machine's runs: of each group the best run that measured it (see Outline.worth).

    A group is taken whole from one run, because its cells were paired there round by round.

    Raises:
        ValueError: there is nothing to merge.
    """
    if not records:
        raise ValueError("nothing to merge")
    outlines = [outline(record) for record in records]
    of = {id(one): record for one, record in zip(outlines, records, strict=True)}
    best_first, taken = _shared_out(outlines)
    scenarios: dict[str, ScenarioRecord] = {}
    trials: list[TrialRecord] = []
    origins: dict[Group, Origin] = {}
    for one, groups in zip(best_first, taken, strict=True):
        record = of[id(one)]
        for scenario in record.scenarios:
            if any(group.scenario == scenario.description.name for group in groups):
                scenarios.setdefault(scenario.description.name, scenario)
        trials += [trial for trial in record.trials if trial.group in groups]
        origins |= {group: record.origin(group) for group in groups}
    first = of[id(best_first[0])]
    own = {each.name: getattr(first, each.name) for each in dataclasses.fields(Record)}
    return Merged(
        **own
        | {
            "scenarios": [scenarios[name] for name in sorted(scenarios)],
            "trials": trials,
            "rounds_completed": max(record.rounds_completed for record in records),
            "minimal_effect": max(record.minimal_effect for record in records),
        },
        origins=origins,
    )
