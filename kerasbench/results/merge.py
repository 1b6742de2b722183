"""Several runs of one machine as one record, each group whole from the run that measured it best."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from kerasbench.protocol.columns import DEFAULT
from kerasbench.protocol.descriptions import WorkloadDescription
from kerasbench.results.run import Group, OperationCount, Origin, Run, ScenarioFacts

Rank = tuple[bool, bool, bool, str]
Numbered = tuple[int, Run]  # in the order in which they are read
Share = tuple[Run, set[Group]]  # a run, and what is taken from it; the newest comes first


def distinct(records: Iterable[Run]) -> list[Run]:
    """Return each run once: of its copies, and of what was superseded when it was resumed, what went furthest."""
    furthest: dict[object, Run] = {}
    for record in records:
        run = (record.machine.identity, record.started, repr(record.config.own))
        furthest[run] = max(furthest.get(run, record), record, key=lambda copy: (len(copy.resumed), len(copy.trials)))
    return list(furthest.values())


def rank(record: Run, group: Group) -> Rank:
    """Return the rank of a run among those that measured a group: the group is taken from the one with the highest."""
    config = record.config
    agenda = config.effort.plan.agenda
    fits = agenda.sized and agenda.trains if group.sized else agenda.usual
    has_defaults = any(trial.options.unsized == DEFAULT for trial in record.trials if trial.group == group)
    return (fits, config.general, has_defaults, record.started)


@dataclass
class MergedRun(Run):
    """Groups of several runs as one record. Its own fields are those of the newest of them."""

    origins: dict[Group, Origin] = field(default_factory=dict)
    runs: int = 1  # that they come from

    def origin(self, group: Group) -> Origin:
        return self.origins[group]


def merge(records: Iterable[Run]) -> Run:
    """Return one record of one machine's runs, of which there is one at least (see ``merge_by_machine``)."""
    return merge_by_machine(records, lambda record: None)[0]


def merge_by_machine(
    records: Iterable[Run], key: Callable[[Run], object] = lambda record: record.machine.identity
) -> list[Run]:
    """Return a record for each machine: each group whole, for its cases are pairs, of the run with the highest rank."""
    newest: dict[object, Run] = {}
    best: dict[object, dict[Group, Numbered]] = {}  # a run that nothing is taken from is not held in memory
    for number, record in enumerate(records):
        machine, numbered = key(record), (number, record)
        newest[machine] = max(newest.get(machine, record), record, key=lambda run: run.started)
        groups = best.setdefault(machine, {})
        for group in dict.fromkeys(trial.group for trial in record.trials):
            groups[group] = max(groups.get(group, numbered), numbered, key=lambda run: rank(run[1], group))
    return [_merged(newest[machine], groups) for machine, groups in best.items()]


def _merged(newest: Run, best: dict[Group, Numbered]) -> Run:
    by_number: dict[int, Share] = {}
    for group, (number, record) in best.items():
        by_number.setdefault(number, (record, set()))[1].add(group)
    shares = sorted(by_number.values(), key=lambda share: share[0].started, reverse=True) or [(newest, set())]
    flops: dict[tuple[str, str], OperationCount] = {}  # of each workload that is taken, as the newest run counted them
    for record, groups in shares:
        workloads = {group[:2] for group in groups}
        for counted in record.flops:
            if (workload := (counted.scenario, counted.workload)) in workloads:
                flops.setdefault(workload, counted)
    combined = {
        "scenarios": _scenarios(shares),
        "trials": [trial for record, groups in shares for trial in record.trials if trial.group in groups],
        "flops": list(flops.values()),
        "minimal_effect": max(record.minimal_effect for record, _ in shares),
        "origins": {group: record.origin(group) for record, groups in shares for group in groups},
        "runs": len(shares),
    }
    return MergedRun(**vars(shares[0][0]) | combined)


def _scenarios(shares: Sequence[Share]) -> list[ScenarioFacts]:
    """Return the scenarios that something is taken of as the newest has them, each workload as its own run has it."""
    newest: dict[str, ScenarioFacts] = {}
    workloads: dict[str, dict[str, WorkloadDescription]] = {}
    for record, groups in shares:
        taken = {group[:2] for group in groups}
        for scenario in record.scenarios:
            name, described = scenario.description.name, scenario.description.workloads
            if of_run := {workload.name: workload for workload in described if (name, workload.name) in taken}:
                newest.setdefault(name, scenario)
                workloads[name] = of_run | workloads.get(name, {})
    scenarios = []
    for name, scenario in sorted(newest.items()):
        # Workloads that the newest run describes come first, in its order.
        first = [workload.name for workload in scenario.description.workloads if workload.name in workloads[name]]
        ordered = [workloads[name][workload] for workload in dict.fromkeys([*first, *workloads[name]])]
        description = replace(scenario.description, workloads=ordered)
        scenarios.append(replace(scenario, description=description))
    return scenarios
