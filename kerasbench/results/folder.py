"""Folders of result files, which report foreign and damaged ones; several runs of one machine as one record."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench.errors import ResultsError
from kerasbench.protocol.columns import DEFAULT
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.results.record import Counted, Group, Origin, Record, ScenarioRecord
from kerasbench.results.store import is_named_by_a_run, load, result_files
from kerasbench.text import complain


@dataclass(frozen=True)
class UnreadableFile:
    """A file of a folder that could not be read, and why."""

    file: Path
    why: str

    @property
    def is_damaged(self) -> bool:
        """Whether a run has given it its name; otherwise it is not kerasbench's."""
        return is_named_by_a_run(self.file)


Tell = Callable[[UnreadableFile], None]


def refuse_damaged(unread: UnreadableFile) -> None:
    """Say that a foreign file is passed over; raise ResultsError for a damaged one, which would be missed."""
    if unread.is_damaged:
        raise ResultsError(f"{unread.why}; move it out of {unread.file.parent} to go on without it")
    say_passed_over(unread)


def say_passed_over(unread: UnreadableFile) -> None:
    complain(f"{unread.why}; passed over")


def records(place: Path, tell: Tell = refuse_damaged, newest_first: bool = False) -> Iterator[tuple[Path, Record]]:
    """Read the result files of a folder one by one, oldest first, or the one file that is named.

    ``tell`` gets what cannot be read in a folder. Where nothing can be read, ResultsError is raised.
    """
    if not place.is_dir():
        yield place, load(place)
        return
    any_read = False
    files = result_files(place)
    for file in reversed(files) if newest_first else files:
        try:
            record = load(file)
        except ResultsError as error:
            tell(UnreadableFile(file, str(error)))
        else:
            any_read = True
            yield file, record
    if not any_read:
        raise ResultsError(
            f"{place}: no result files here that can be read; python -m kerasbench --results {place} makes one"
        )


def distinct(records: Iterable[Record]) -> list[Record]:
    """Return each run once: of its copies, and of what was superseded when it was resumed, what went furthest."""
    furthest: dict[object, Record] = {}
    for record in records:
        run = (record.machine.identity, record.started, *record.config.versus)
        furthest[run] = max(furthest.get(run, record), record, key=lambda one: (len(one.resumed), len(one.trials)))
    return list(furthest.values())


Rank = tuple[bool, bool, bool, str]


def rank(record: Record, group: Group) -> Rank:
    """Return the rank of a run among those that measured a group: the group is taken from the one with the highest.

    What counts is, in this order: the group's own protocol, a run of its own (not an explanation, a comparison of
    versions, a race or a soak), default columns, and the date.
    """
    config = record.config
    has_another_aim = config.explain or config.versus or config.race or config.soak
    fits = config.effort.protocol.kind == ("sweep" if group.sized else "steady")
    has_defaults = any(trial.options.unsized == DEFAULT for trial in record.trials if trial.group == group)
    return (fits, not has_another_aim, has_defaults, record.started)


@dataclass
class Merged(Record):
    """Groups of several runs as one record. Its own fields are those of the newest of them."""

    origins: dict[Group, Origin] = field(default_factory=dict)
    merged: int = 1

    def origin(self, group: Group) -> Origin:
        return self.origins[group] if group in self.origins else super().origin(group)

    @property
    def runs(self) -> int:
        return self.merged


def merge(records: Sequence[Record]) -> Record:
    """Return one record of one machine's runs, of which there is one at least (see ``merge_by_machine``)."""
    machine = _Machine(records[0])
    for record in records:
        machine.add(record)
    return machine.merged()


def merge_by_machine(records: Iterable[Record]) -> list[Record]:
    """Return one record for each machine: each group is that of the run with the highest ``rank``.

    A group is taken whole from one run, because its cases were paired there round by round. A run that nothing is taken
    from is not held in memory.
    """
    machines: dict[object, _Machine] = {}
    for record in records:
        machines.setdefault(record.machine.identity, _Machine(record)).add(record)
    return [machine.merged() for machine in machines.values()]


Share = tuple[Record, set[Group]]  # a run, and what is taken from it


@dataclass
class _Machine:
    """The runs of one machine that something is taken from."""

    newest: Record
    best: dict[Group, tuple[Rank, Record]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        if record.started > self.newest.started:
            self.newest = record
        for group in dict.fromkeys(trial.group for trial in record.trials):
            own = rank(record, group)
            if group not in self.best or own > self.best[group][0]:
                self.best[group] = own, record

    def merged(self) -> Record:
        taken: dict[int, Share] = {}
        for group, (_, record) in self.best.items():
            taken.setdefault(id(record), (record, set()))[1].add(group)
        shares = sorted(taken.values(), key=lambda share: share[0].started, reverse=True) or [(self.newest, set())]
        newest = shares[0][0]
        return Merged(
            **{each.name: getattr(newest, each.name) for each in dataclasses.fields(Record)}
            | {
                "scenarios": _scenarios(shares),
                "trials": [trial for record, groups in shares for trial in record.trials if trial.group in groups],
                "flops": _flops(shares),
                "minimal_effect": max(record.minimal_effect for record, _ in shares),
            },
            origins={group: record.origin(group) for record, groups in shares for group in groups},
            merged=len(shares),
        )


def _flops(shares: Sequence[Share]) -> list[Counted]:
    """Return the operations of each workload that something is taken of, as the newest run counted them."""
    flops: dict[tuple[str, str], Counted] = {}
    for record, groups in shares:
        workloads = {(group.scenario, group.workload) for group in groups}
        for counted in record.flops:
            if (counted.scenario, counted.workload) in workloads:
                flops.setdefault((counted.scenario, counted.workload), counted)
    return list(flops.values())


def _scenarios(shares: Sequence[Share]) -> list[ScenarioRecord]:
    """Return the scenarios that something is taken of, as the newest run has them, each workload as its own run has it.

    A run of a saved model describes the one size that it measured, and a scenario's file may have lost a workload
    since.
    """
    newest: dict[str, ScenarioRecord] = {}
    workloads: dict[str, dict[str, WorkloadDescription]] = {}
    for record, groups in shares:
        taken = {(group.scenario, group.workload) for group in groups}
        for scenario in record.scenarios:
            name = scenario.description.name
            own = {each.name: each for each in scenario.description.workloads if (name, each.name) in taken}
            if own:
                newest.setdefault(name, scenario)
                workloads[name] = own | workloads.get(name, {})
    scenarios = []
    for name, scenario in sorted(newest.items()):
        # Workloads that the newest run describes come first, in its order.
        taken_of = workloads[name]
        first = [workload.name for workload in scenario.description.workloads if workload.name in taken_of]
        ordered = [taken_of[workload] for workload in dict.fromkeys([*first, *taken_of])]
        description = dataclasses.replace(scenario.description, workloads=ordered)
        scenarios.append(dataclasses.replace(scenario, description=description))
    return scenarios
