"""Versions that one run compared: what a head takes longer for than the base."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kerasbench.analysis.cases import FIRST_STEP, HEADLINE, PREDICTED, PREDICTED_ONE, PREDICTED_RATE
from kerasbench.analysis.contrasts import CaseInRow, Contrast
from kerasbench.analysis.differences import Difference
from kerasbench.analysis.estimates import MINIMAL_EFFECT, Verdict
from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.summary import Summary
from kerasbench.modes.versus import MODE
from kerasbench.modes.versus.pairs import DEVICE_MEMORY, MEMORY, UNTOUCHED, VersionPair, Versus, versions
from kerasbench.protocol.columns import CaseKey, Column
from kerasbench.protocol.messages import Code
from kerasbench.report import charts, command, contrasts
from kerasbench.report.data import difference
from kerasbench.report.document import Document
from kerasbench.report.sections import EMPTY, Bar, BarChart, Cell, Section, Strong, Table, Words, texts
from kerasbench.report.teller import ModeReport, Told
from kerasbench.report.warnings import Marks
from kerasbench.report.words import as_given, as_long, change_of, could_have_seen, listed, names, timed_in, times, took
from kerasbench.results.run import MIN_ROUNDS, Run, RunConfig
from kerasbench.text import blanked, count

SAYING = {
    HEADLINE: "a training step takes {} as long",
    PREDICTED: "predicting a batch takes {} as long",
    FIRST_STEP: "the first step takes {} as long",
    PREDICTED_ONE: "predicting one sample takes {} as long",
    PREDICTED_RATE: "predict takes {} as long for a sample",
    MEMORY: "the process takes {} the memory",
    DEVICE_MEMORY: "the device holds {} as much",
}
COUNTED = {
    Verdict.SLOWER: "longer in {}",
    Verdict.FASTER: "less time in {}",
    Verdict.SAME: "the same time in {}",
    Verdict.INCONCLUSIVE: "{} undecided",
}
CASE = ("scenario", "workload", "backend", "device", "options")
COLUMNS = (*CASE, "metric", "unit", "base", "head", "ratio", "low", "high", "verdict")


def rows(versus: Versus) -> Iterator[list[str | float | None]]:
    """Yield each number of base and head in the order of COLUMNS; the ratio is of the numbers."""
    for contrast in versus.contrasts:
        row, column, metric = contrast.over.row, contrast.under.column.paired, BY_NAME[contrast.metric]
        base, head = (place.case.estimate(metric.name) for place in (contrast.under, contrast.over))
        ratio = contrast.ratio.inverse if metric.unit == RATE else contrast.ratio
        of_case = (row.scenario.name, row.workload.name, column.backend, column.device, column.options.label)
        numbers = (base.value if base else None, head.value if head else None, ratio.value, ratio.low, ratio.high)
        yield [*of_case, metric.name, metric.unit, *numbers, str(contrast.verdict)]


def _overall(versus: Versus) -> str:
    steps = versus.headlines
    if not steps:
        return f"Nothing was timed with both {versus.base} and {versus.head}"
    counts = Counter(step.verdict for step in steps)
    if len(steps) == 1:
        doubt = " (undecided)" if counts[Verdict.INCONCLUSIVE] else ""
        case = f"{steps[0].over.row.label} on {_called(steps)[0]}"
        return f"{case}: {versus.head} takes {as_long(steps[0].ratio, versus.base)}{doubt}"
    parts = [words.format(counts[verdict]) for verdict, words in COUNTED.items() if counts[verdict]]
    return f"{versus.head} instead of {versus.base} takes {listed(parts)} of {len(steps)} cases"


def _titled(comparisons: Iterable[Versus]) -> str:
    return "; ".join(map(_overall, comparisons))


def _called(contrasts: Iterable[Contrast]) -> list[str]:
    columns = [contrast.under.column.paired for contrast in contrasts]
    called = names(dict.fromkeys(columns))
    return [called[column] for column in columns]


def _chart(comparisons: Sequence[Versus], record: Run) -> BarChart:
    base, heads = comparisons[0].base, [versus.head for versus in comparisons]
    steps = [step for versus in comparisons for step in versus.headlines]
    styles = charts.looks(step.under.column.paired for step in steps)
    groups: dict[str, list[Bar]] = {}
    for step, name in zip(steps, _called(steps), strict=True):
        title = name if len(heads) == 1 else f"{name}, {step.over.column.options.environment}"
        bar = charts.bar(title, styles[step.under.column.paired], step.over, step.metric, step, step.is_decided)
        groups.setdefault(step.over.row.label, []).append(bar)
    caption = f"Time with {listed(heads)}, relative to {base} (1×). {charts.where(record)}."
    return charts.bars(_titled(comparisons), caption, list(groups.items()))


def _table(comparisons: Sequence[Versus], with_steps: bool) -> Table:
    """Return a line for each number of the base, with a column for each head; of steps, or of all others."""
    lines: dict[tuple[str, Column, str], dict[str, Contrast]] = {}
    for versus in comparisons:
        for contrast in versus.contrasts:
            if contrast.is_headline is with_steps:
                row, base = contrast.over.row, contrast.under.column
                lines.setdefault((row.label, base, contrast.metric), {})[versus.head] = contrast
    rows = []
    for (label, _, metric), of_heads in lines.items():
        first = next(iter(of_heads.values()))
        titles = [] if with_steps else [BY_NAME[metric].title]
        cells = texts(label, *_called([first]), *titles)
        estimate = first.under.case.estimate(metric)
        cells.append(Cell(took(estimate, metric), estimate.value) if estimate else EMPTY)
        cells += [contrasts.takes(of_heads[v.head]) if v.head in of_heads else EMPTY for v in comparisons]
        control = first.control_ratio
        rows.append([*cells, Cell(times(control), control.value) if control else EMPTY])
    under, heads = comparisons[0].base, [f"{versus.head} takes" for versus in comparisons]
    columns = ["workload", "configuration", *([] if with_steps else ["metric"]), under, *heads, f"{under} again takes"]
    return Table(columns, rows)


def worse(versus: Versus, with_steps: bool = True) -> list[str]:
    """Return a sentence for each number of the head that is worse (steps have a table on a page), or that it lacks."""
    regressions = (contrast for contrast in versus.regressions if with_steps or not contrast.is_headline)
    kinds: set[tuple[CaseKey, str]] = set()
    lines = []
    for contrast in regressions:
        saying, kind = SAYING.get(contrast.metric, ""), "_".join(contrast.metric.split("_")[:2])
        if not saying:  # memory by phase: what is held stays in later ones, so the first of them tells
            if (contrast.over.key, kind) in kinds:
                continue
            kinds.add((contrast.over.key, kind))
            title = BY_NAME[contrast.metric].title
            saying = f"{title[0].lower()}{title[1:]}: {{}} as much"
        lines.append(f"{_case(contrast)}: {saying.format(times(contrast.ratio))} with {versus.head}.")
    for pair, failure in versus.broken:
        what = f"{versus.head} fails, {versus.base} does not: {failure.code}"
        if failure.code is Code.PARITY:
            what = f"the results of {versus.head} differ from those of {versus.base}"
        lines.append(f"{_case(pair)}: {what}: {failure.cause}.")
    return lines


def differing_facts(versus: Versus) -> list[str]:
    """Return a sentence for each thing that another code did, whether or not it takes longer."""
    return [f"{_case(fact)} with {versus.head}: {change_of(fact)}." for fact in versus.differences]


def undecided(versus: Versus) -> Iterator[str]:
    for step in versus.headlines:
        if step.withheld and (control := step.control_ratio) is not None:
            yield f"{_case(step)}: undecided, because {versus.base} takes {times(control)} as long as itself."
    for pair in versus.pairs:
        if failure := pair.failure(pair.base):
            yield f"{_case(pair)}: not compared, because {versus.base} failed: {failure.code}: {failure.cause}."
    for contrast in versus.untouched:
        if contrast.is_decided:
            imports = f"Importing the backend takes {times(contrast.ratio)} as long with {versus.head}"
            why = "though only Keras differs: something else is at work"
            yield f"{_case(contrast)}: do not rely on this run. {imports}, {why}."


def _case(case: VersionPair | Contrast | Difference) -> str:
    row, base = (case.row, case.base) if isinstance(case, VersionPair) else case.over
    return f"{row.label} on {names([base.paired])[base.paired]}"


def _notes(steps: Sequence[Contrast], heads: int, effect: float) -> Iterator[Words]:
    head = "the head" if heads == 1 else "a head"
    yield [
        f"Time per {timed_in([step.over.row for step in steps])} (median) with the base; "
        f"{head} takes N× as long (95 % interval). ",
        Strong("Bold"),
        f": clearly different, by more than {as_given(effect)}. The base measured again should take 1×.",
    ]
    undecided = (step for step in steps if step.verdict is Verdict.INCONCLUSIVE and not step.withheld)
    ratios = [step.ratio for step in undecided if not step.ratio.disturbed]
    widest = max(ratios, key=lambda ratio: ratio.half_width or 0.0, default=None)
    if detectable := could_have_seen(widest, effect):
        yield f"Undecided: {detectable[0].lower()}{detectable[1:]}"


class VersusReport(ModeReport):
    name = MODE.name

    def words(self, config: RunConfig) -> list[str]:
        settings = MODE.settings_of(config)
        scenarios = ["--scenario", ",".join(config.scenarios)] if config.scenarios else []
        return [MODE.name, settings.base, *settings.heads, *scenarios]

    def rounds(self, config: RunConfig) -> Iterator[str]:
        yield from command.rounds_of(dataclasses.replace(config, control=False))  # it always has one
        if (threshold := MODE.settings_of(config).threshold) > MINIMAL_EFFECT:
            yield from ("--threshold", f"{100 * threshold:g}%")

    def title(self, summary: Summary) -> str:
        return _titled(versions(summary)) if summary.mode == MODE.name else ""

    def sections(self, summary: Summary, marks: Marks) -> Iterator[Section]:
        groups: dict[str, list[Versus]] = {}
        for versus in versions(summary):
            groups.setdefault(versus.base, []).append(versus)
        for comparisons in groups.values():
            steps = [step for versus in comparisons for step in versus.headlines]
            lines = [line for versus in comparisons for line in worse(versus, with_steps=False)]
            lines += dict.fromkeys(line for versus in comparisons for line in undecided(versus))
            intro = [line for versus in comparisons for line in differing_facts(versus)]
            part = Section(_titled(comparisons), intro=intro, lines=lines)
            if steps:
                notes = list(_notes(steps, len(comparisons), comparisons[0].effect))
                chart, table = _chart(comparisons, summary.record), _table(comparisons, with_steps=True)
                part = part._replace(chart=chart, table=table, notes=notes)
            if summary.mode == MODE.name or steps:
                yield part
        for comparisons in groups.values() if summary.mode == MODE.name else ():
            others = [number for versus in comparisons for number in versus.contrasts if not number.is_headline]
            clear = count(sum(contrast.is_decided for contrast in others), "clear difference")
            if others:
                heading = f"First step, prediction and memory: {clear} in {len(others)} numbers"
                yield Section(heading, table=_table(comparisons, with_steps=False), folded=True)

    def advice(self, summary: Summary) -> Iterator[Words]:
        if summary.mode == MODE.name and all(row.rounds < MIN_ROUNDS for row in summary.rows):
            why = "They come from one process of each version, or two, which may be slow ones."
            yield [Strong("Do not publish these numbers."), f" {why}"]

    def sentences(self, summary: Summary) -> list[str]:
        of_versions = versions(summary) if summary.mode == MODE.name else []
        lines = [
            [*differing_facts(versus), f"{_overall(versus)}.", *worse(versus), *undecided(versus)]
            for versus in of_versions
        ]
        return list(dict.fromkeys(blanked(line) for of_versus in lines for line in of_versus))

    def data(self, summary: Summary) -> Document:
        differences = [difference(fact) for versus in versions(summary) for fact in versus.differences]
        return Document(differences=differences)

    def contrasts(self, summary: Summary) -> Told:
        controls: set[tuple[CaseKey, str]] = set()  # of several heads, the base has one
        for versus in versions(summary):
            for contrast in (*versus.contrasts, *versus.untouched):
                yield contrast, {"is_control": contrast.metric == UNTOUCHED}
                base = contrast.under
                key = base.row.key(base.column), contrast.metric
                if contrast.control_ratio is not None and key not in controls:
                    controls.add(key)
                    again = CaseInRow(base.row, base.column.with_options(control=True))
                    yield Contrast(again, base, contrast.metric, contrast.control_ratio), {"is_control": True}
