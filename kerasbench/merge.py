"""Several runs of one machine as one record."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kerasbench.machine import Machine
from kerasbench.request import ProtocolKind
from kerasbench.results import Record, ScenarioRecord, TrialRecord
from kerasbench.stats import MIN_TRIALS_FOR_INTERVAL

Group = tuple[str, str, bool]  # scenario, regime, whether it was swept: what is taken whole from one run


@dataclass(frozen=True)
class Outline:
    """What decides whether a run goes into its machine's page, without the run itself; ``file`` is where that is."""

    file: Path
    machine: Machine
    protocol: ProtocolKind
    rounds: int
    started: str
    regimes: frozenset[Group]

    @property
    def worth(self) -> tuple[bool, bool, str]:
        """The steady protocol goes before the published one, intervals before none, newer before older."""
        return (self.protocol == "steady", self.rounds >= MIN_TRIALS_FOR_INTERVAL, self.started)


def outline(record: Record, file: Path = Path()) -> Outline:
    regimes = frozenset(_group(trial) for trial in record.trials)
    protocol = record.asked.effort.protocol.kind
    return Outline(file, record.machine, protocol, record.rounds_completed, record.started, regimes)


def _group(trial: TrialRecord) -> Group:
    return (trial.scenario, trial.regime, trial.options.size is not None)


def by_machine(outlines: Sequence[Outline]) -> list[list[Outline]]:
    """Group runs by the machine that they ran on, in the order in which the machines first appear."""
    groups: list[list[Outline]] = []
    for one in outlines:
        group = next((group for group in groups if group[0].machine.same_as(one.machine)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return groups


def needed(outlines: Sequence[Outline]) -> list[Outline]:
    """Return the runs of a machine that some regime is taken from, the best first."""
    taken: set[Group] = set()
    chosen: list[Outline] = []
    for one in sorted(outlines, key=lambda one: one.worth, reverse=True):
        if one.regimes - taken or not chosen:
            chosen.append(one)
            taken |= one.regimes
    return chosen


def merge(records: Sequence[Record]) -> Record:
    """Return one record of one machine's runs: of each regime the best run that measured it (see Outline.worth).

    A regime is taken whole from one run, because its cells were paired there round by round; so is a sweep of it.

    Raises:
        ValueError: there is nothing to merge.
    """
    if not records:
        raise ValueError("nothing to merge")
    best_first = sorted(records, key=lambda record: outline(record).worth, reverse=True)
    scenarios: dict[str, ScenarioRecord] = {}
    trials: list[TrialRecord] = []
    taken: set[Group] = set()
    for record in best_first:
        here = outline(record).regimes - taken
        for scenario in record.scenarios:
            if any(name == scenario.description.name for name, *_ in here):
                scenarios.setdefault(scenario.description.name, scenario)
        trials += [trial for trial in record.trials if _group(trial) in here]
        taken |= here
    return dataclasses.replace(
        best_first[0],
        scenarios=[scenarios[name] for name in sorted(scenarios)],
        trials=trials,
        rounds_completed=max(record.rounds_completed for record in best_first),
        minimal_effect=max(record.minimal_effect for record in best_first),
    )
