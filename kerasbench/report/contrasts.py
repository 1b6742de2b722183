"""How many times as much one case takes as another: the tables of it. Its one bar is in ``charts``."""

from collections.abc import Sequence
from typing import Any

from kerasbench.analysis.contrasts import Contrast
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.summary import Summary
from kerasbench.report.sections import EMPTY, Cell, Section, Table, number, texts
from kerasbench.report.words import as_given, names, timed_in, times, took
from kerasbench.variants.variant import Variant

OPEN = {None: ", undecided", Verdict.SAME: ", tie", Verdict.INCONCLUSIVE: ", undecided"}


def takes(contrast: Contrast) -> Cell:
    """Return ``2.5× (2.3–2.8), undecided``: bold where the two are clearly different."""
    is_said = contrast.verdict is None or contrast.withheld or contrast.ratio.has_interval
    doubt = OPEN.get(contrast.verdict, "") if is_said else ""
    return Cell(f"{times(contrast.ratio)}{doubt}", contrast.ratio.value, strong=contrast.is_decided)


def table(contrasts: Sequence[Contrast], called: Sequence[str], under: str, over: str, metric: str) -> Table:
    """Return a line for each, by the name it is ``called``."""
    rows = []
    for contrast, name in zip(contrasts, called, strict=True):
        below = contrast.under.case.estimate(contrast.metric)
        cells = texts(contrast.over.row.label, name, BY_NAME[contrast.metric].title)
        cells += [Cell(took(below, contrast.metric), below.value) if below else EMPTY, takes(contrast)]
        rows.append(cells)
    return Table(["workload", "configuration", metric, under, over], rows)


def devices(summary: Summary) -> Section | None:
    rows = []
    for contrast in summary.speed_ups:
        gpu, cpu = contrast.over, contrast.under
        title = " ".join([gpu.case.device_title, *gpu.column.device.split(":")[1:]])
        rows.append([*texts(gpu.row.label, names([cpu.column])[cpu.column], title), takes(contrast)])
    table = Table(["workload", "backend", "GPU", "GPU takes"], rows)
    notes = [f"Time per {timed_in(summary.plain.rows)} on the GPU, relative to the CPU: below 1× the GPU is faster."]
    return Section("CPU or GPU?", table=table, notes=notes) if rows else None


def beside(variant: Variant[Any], summary: Summary) -> Section | None:
    contrasts, stands = summary.besides.get(variant.name), variant.beside
    if not contrasts or stands is None:
        return None
    called = names(summary.plain.columns if stands.inverse else [contrast.under.column for contrast in contrasts])
    shown = [called[(contrast.over if stands.inverse else contrast.under).column] for contrast in contrasts]
    whole = table(contrasts, shown, stands.under, stands.over, "of")
    if stands.read:
        rows = []
        for contrast, cells in zip(contrasts, whole.rows, strict=True):
            counts = [getattr(m.resolved, stands.field) for _, m in contrast.over.case.trials]
            read = [count for count in counts if count is not None]
            rows.append([*cells, number(max(read)) if read else EMPTY])
        whole = Table([*whole.columns, stands.read], rows)
    return Section(stands.title, table=whole, notes=[stands.note.format(effect=as_given(summary.effect))])
