"""Reading folders of result files: what of a folder is none, or is damaged, ends nothing unsaid.

Several runs of one machine as one record: each row is that of the newest run that measured it.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kerasbench.errors import ResultsError
from kerasbench.host import Machine
from kerasbench.protocol.columns import DEFAULT
from kerasbench.protocol.messages import WorkloadDescription
from kerasbench.results.record import Counted, Group, Origin, Record, ScenarioRecord, TrialRecord
from kerasbench.results.store import is_named_by_a_run, load, result_files
from kerasbench.text import complain


@dataclass(frozen=True)
class UnreadableFile:
    """A file of a folder that could not be read, and why; ``is_damaged`` where a run has given it its name."""

    file: Path
    why: str

    @property
    def is_damaged(self) -> bool:
        return is_named_by_a_run(self.file)


Tell = Callable[[UnreadableFile], None]


def refuse_damaged(unread: UnreadableFile) -> None:
    """Say that a file of others is passed over; raise ResultsError for a damaged one, which would be missed."""
    if unread.is_damaged:
        raise ResultsError(f"{unread.why}; move it out of {unread.file.parent} to go on without it")
    say_passed_over(unread)


def say_passed_over(unread: UnreadableFile) -> None:
    complain(f"{unread.why}; passed over")


def records(place: Path, tell: Tell = refuse_damaged, newest_first: bool = False) -> Iterator[tuple[Path, Record]]:
    """Read the result files of a folder one by one, oldest first, or the one file that is named.

    ``tell`` hears of what cannot be read in a folder.

    Raises:
        ResultsError: there are none, or the one that is named cannot be read.
    """
    if not place.is_dir():
        yield place, load(place)
        return
    found = False
    files = result_files(place)
    for file in reversed(files) if newest_first else files:
        try:
            record = load(file)
        except ResultsError as error:
            tell(UnreadableFile(file, str(error)))
            continue
        found = True
        yield file, record
    if not found:
        raise ResultsError(
            f"{place}: no result files here that can be read; python -m kerasbench --results {place} makes one"
        )


Rank = tuple[bool, bool, bool, str]


@dataclass(frozen=True)
class Outline:
    """What decides which rows are taken from a run, without the run itself; ``file`` is where that is."""

    file: Path
    machine: Machine
    started: str
    ranks: dict[Group, Rank]


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


def outline(record: Record, file: Path = Path()) -> Outline:
    groups = dict.fromkeys(trial.group for trial in record.trials)
    return Outline(file, record.machine, record.started, {group: rank(record, group) for group in groups})


def rank(record: Record, group: Group) -> Rank:
    """Return by what one of several runs that measured a group is chosen: the largest is.

    At its own protocol, by a run of its own and not an explanation or a comparison of versions, with default columns,
    and lately.
    """
    asked = record.config
    fits = asked.effort.protocol.kind == ("sweep" if group.sized else "steady")
    has_defaults = any(trial.options.unsized == DEFAULT for trial in record.trials if trial.group == group)
    return (fits, not (asked.explain or asked.versus), has_defaults, record.started)


def by_machine(outlines: Sequence[Outline]) -> list[list[Outline]]:
    """Group runs by the machine that they ran on, in the order in which the machines first appear."""
    found: dict[object, list[Outline]] = {}
    for one in outlines:
        found.setdefault(one.machine.identity, []).append(one)
    return list(found.values())


def merge(records: Sequence[Record]) -> Record:
    """Return one record of one machine's runs (see ``merge_outlined``)."""
    outlines = [outline(record) for record in records]
    of = {id(one): record for one, record in zip(outlines, records, strict=True)}
    return merge_outlined(outlines, lambda one: of[id(one)])


def merge_outlined(outlines: Sequence[Outline], read: Callable[[Outline], Record]) -> Record:
    """Return one record of one machine's runs: of each group the run of the largest ``rank``.

    A group is taken whole from one run, because its cases were paired there round by round. Only runs that something is
    taken from are read.

    Raises:
        ValueError: there is nothing to merge.
    """
    if not outlines:
        raise ValueError("nothing to merge")
    newest_first = sorted(outlines, key=lambda one: one.started, reverse=True)
    chosen = {
        group: max((one for one in newest_first if group in one.ranks), key=lambda one: one.ranks[group])
        for one in newest_first
        for group in one.ranks
    }
    shares = [(one, {group for group, by in chosen.items() if by is one}) for one in newest_first]
    taken = [(read(one), groups) for one, groups in [share for share in shares if share[1]] or shares[:1]]
    first = taken[0][0]
    return Merged(
        **{each.name: getattr(first, each.name) for each in dataclasses.fields(Record)}
        | {
            "scenarios": _scenarios(taken),
            "trials": [trial for record, groups in taken for trial in _of(record, groups)],
            "flops": _flops(taken),
            "minimal_effect": max(record.minimal_effect for record, _ in taken),
        },
        origins={group: record.origin(group) for record, groups in taken for group in groups},
        merged=len(taken),
    )


def _of(record: Record, groups: set[Group]) -> list[TrialRecord]:
    return [trial for trial in record.trials if trial.group in groups]


def _flops(shares: Sequence[tuple[Record, set[Group]]]) -> list[Counted]:
    """Return the operations of each workload that something is taken of, as the newest run counted them."""
    found: dict[tuple[str, str], Counted] = {}
    for record, groups in shares:
        shown = {group[:2] for group in groups}
        for one in record.flops:
            if (one.scenario, one.workload) in shown:
                found.setdefault((one.scenario, one.workload), one)
    return list(found.values())


def _scenarios(shares: Sequence[tuple[Record, set[Group]]]) -> list[ScenarioRecord]:
    """Return the scenarios that something is taken of, as the newest run has them, each workload as its own run has it.

    A run of a saved model describes the one size that it measured, and a scenario's file may have lost a workload
    since.
    """
    kept: dict[str, ScenarioRecord] = {}
    workloads: dict[str, dict[str, WorkloadDescription]] = {}
    for record, groups in shares:
        shown = {group[:2] for group in groups}
        for scenario in record.scenarios:
            name = scenario.description.name
            own = {one.name: one for one in scenario.description.workloads if (name, one.name) in shown}
            if own:
                kept.setdefault(name, scenario)
                workloads[name] = own | workloads.get(name, {})
    return [_with_workloads(kept[name], workloads[name]) for name in sorted(kept)]


def _with_workloads(scenario: ScenarioRecord, workloads: dict[str, WorkloadDescription]) -> ScenarioRecord:
    """Return a scenario with these workloads, its own in its own order and before all others."""
    own = [one.name for one in scenario.description.workloads if one.name in workloads]
    ordered = [workloads[name] for name in dict.fromkeys([*own, *workloads])]
    return dataclasses.replace(scenario, description=dataclasses.replace(scenario.description, workloads=ordered))
