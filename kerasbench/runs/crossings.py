"""Two more sizes inside each bracket of a sweep's crossings, measured in the same record once its rounds are over."""

import dataclasses
import statistics

from kerasbench.analysis.estimates import MIN_TRIALS_FOR_INTERVAL
from kerasbench.analysis.series import Swept, swept
from kerasbench.analysis.summary import Summary, summarize
from kerasbench.exchange.options import Options, Size
from kerasbench.plan.cells import Cell, Plan, with_controls
from kerasbench.plan.sizes import between
from kerasbench.results.asked import Effort
from kerasbench.results.keys import Column
from kerasbench.results.record import Record


def finer(planned: Plan, record: Record, spent_s: float) -> Plan | None:
    """Return the plan with the further sizes, measured where it matters: on the two columns of each crossing.

    None where that was not asked for, the run was interrupted or quick, nothing crosses significantly, or --budget has
    no time left for it.
    """
    if not planned.asked.refine or record.unfinished or record.rounds_completed < MIN_TRIALS_FOR_INTERVAL:
        return None
    wanted = more_sizes(summarize(record))
    bases = {
        (cell.backend, cell.device.label, cell.options.terms): cell
        for cell in planned.cells
        if not cell.options.control
    }
    cells = [
        dataclasses.replace(base, options=base.options.at(size))
        for size, columns in wanted.items()
        for column, base in bases.items()
        if column in columns
    ]
    cells = with_controls(cells) if planned.asked.control else cells
    if not cells or not _affordable(cells, record, planned.effort.budget_s, spent_s):
        return None
    asked = dataclasses.replace(
        planned.asked,
        options=list(dict.fromkeys([*planned.asked.options, *(_bare(cell.options) for cell in cells)])),
        effort=_up_to(record.rounds_completed, planned.effort),
        refine=False,
    )
    named = ", ".join(size.label for size in wanted)
    return Plan(
        asked, planned.machine, [*planned.cells, *cells], planned.absent, [f"more sizes where series cross: {named}"]
    )


def _bare(options: Options) -> Options:
    """Return what is asked for, whichever interpreter runs it; a control is asked for once, for all rows."""
    return dataclasses.replace(options, environment="", control=False)


def _up_to(rounds: int, effort: Effort) -> Effort:
    """Return the effort of at most so many rounds: what was measured then has enough, for the reasons that it had."""
    return dataclasses.replace(effort, min_rounds=min(effort.min_rounds, rounds), max_rounds=rounds, budget_s=None)


def more_sizes(summary: Summary) -> dict[Size, set[Column]]:
    """Return the sizes inside the brackets of all crossings that have an interval, each with the columns that cross."""
    found: dict[Size, set[Column]] = {}
    for one in swept(summary):
        for crossing in (crossing for duel in one.duels for crossing in duel.crossings if crossing.has_interval):
            for size in between(*crossing.bracket, whole=one.axis == "batch"):
                found.setdefault(_at(one, size), set()).update((crossing.winner, crossing.loser))
    return dict(sorted(found.items(), key=lambda item: item[0].order))


def _at(found: Swept, size: float) -> Size:
    base = next(iter(found.rows.values())).size or Size()
    if found.axis == "batch":
        return dataclasses.replace(base, batch=int(size))
    return dataclasses.replace(base, width=size)


def _affordable(cells: list[Cell], record: Record, budget_s: float | None, spent_s: float) -> bool:
    each_s = statistics.fmean(trial.own_ns / 1e9 for trial in record.trials if trial.measurement is not None)
    return budget_s is None or spent_s + len(cells) * record.rounds_completed * each_s <= budget_s


def as_begun(planned: Plan, record: Record) -> Plan:
    """Return the plan of a sweep that goes on: at each size that was begun, of those columns that were tried there.

    The further sizes are measured on the columns that cross, and nothing else tells them from the others.
    """
    if planned.effort.protocol.kind != "sweep" or planned.asked.refine:
        return planned
    tried = {trial.cell for trial in record.trials if trial.round > 0}
    begun = {cell.row for cell in planned.cells if cell.key in tried}
    cells = [cell for cell in planned.cells if cell.key in tried or cell.row not in begun]
    return dataclasses.replace(planned, cells=cells)


def earlier(record: Record) -> Record:
    """Return what the run with the further sizes goes on with; what could not be tried it finds itself."""
    return dataclasses.replace(record, trials=[trial for trial in record.trials if trial.round > 0])


def joined(first: Record, going_on: Record) -> Record:
    """Return the record of both parts, which is one run to its reader; an interruption takes no round of the first."""
    stopped = going_on.stopped_because if going_on.unfinished else first.stopped_because
    effort = going_on.asked.effort if going_on.unfinished else first.asked.effort
    asked = dataclasses.replace(going_on.asked, effort=effort)
    return dataclasses.replace(going_on, asked=asked, rounds_completed=first.rounds_completed, stopped_because=stopped)
