"""The picture of an explanation: what an epoch of each cell is made of, as bars in pieces."""

from collections.abc import Sequence

from kerasbench.analysis.anatomy import Anatomy
from kerasbench.report.chart import Bar, Chart, Group, Piece
from kerasbench.report.naming import names
from kerasbench.report.number import percent, significant

CAPTION = "Where the time of an epoch goes. In each group the longest epoch fills the width."
# None of them is a backend's colour; black letters can be read on each.
COLOURS = {
    "computation": "#56B4E9",
    "Python and framework": "#E69F00",
    "feeding": "#CC79A7",
    "once an epoch": "#999999",
}
WORTH_A_LABEL = 0.12  # of the width: a narrower piece has no room for its percentage
MS_PER_S = 1000.0


def chart(found: Sequence[Anatomy]) -> Chart | None:
    """Return a group for each scenario, a bar for each of its columns; None where nothing was explained."""
    if not found:
        return None
    named = names(dict.fromkeys(one.column for one in found))
    labels = dict.fromkeys(one.row.label for one in found)
    groups = []
    for label in labels:
        cells = [one for one in found if one.row.label == label]
        end = max(sum(_sizes_ms(one).values()) for one in cells)
        groups.append(Group(label, [_bar(one, named[one.column], end) for one in cells], end))
    return Chart(CAPTION, groups, legend=list(COLOURS.items()))


def _bar(one: Anatomy, name: str, end: float) -> Bar:
    pieces = [
        Piece(part, ms, COLOURS[part], percent(ms / one.epoch_ms.value) if ms > WORTH_A_LABEL * end else "")
        for part, ms in _sizes_ms(one).items()
        if ms > 0
    ]
    return Bar(name, _epoch(one.epoch_ms.value), pieces, backend=one.column[0])


def _sizes_ms(one: Anatomy) -> dict[str, float]:
    """Return what each part has of an epoch; a part that was not seen has nothing."""
    of_steps = {"computation": one.computation_ms, "Python and framework": one.framework_ms, "feeding": one.feeding_ms}
    found = {part: ms.value * one.steps for part, ms in of_steps.items()}
    found["once an epoch"] = one.overhead_ms.value
    return {part: max(0.0, ms) for part, ms in found.items()}


def _epoch(ms: float) -> str:
    return f"{significant(ms)} ms" if ms < MS_PER_S else f"{significant(ms / MS_PER_S)} s"
