"""Numbers, columns and cells as tables and sentences show them, and the notes below a table of steps."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kerasbench.analysis.cases import PREDICTS, Row
from kerasbench.analysis.estimates import (
    CONFIDENCE,
    MIN_TRIALS_FOR_INTERVAL,
    Estimate,
    Verdict,
    detectable,
    rounds_to_see,
)
from kerasbench.analysis.families import Family
from kerasbench.analysis.metrics import BY_NAME, RATE
from kerasbench.analysis.rankings import Comparison, Contrast, Ranking
from kerasbench.analysis.series import Crossing
from kerasbench.analysis.summary import Summary, is_warned
from kerasbench.analysis.versus import Change, Difference
from kerasbench.protocol.columns import APPLE, AT, CPU, GPU, Axis, CaseKey, Column
from kerasbench.report.sections import EMPTY, Cell, Section, Table, texts
from kerasbench.text import count, label

DIGITS = 3
WHOLE_BATCH = 100  # from here on a crossover is given to the sample
# In place of a cost that is negative, or may be.
NOT_ABOVE_ZERO, BELOW_ZERO = "not significantly above zero", "below zero"


def three_digits(value: float) -> str:
    """Return three significant digits, thousands separated, never in exponents: 0.0123, 1.85, 12.3, 1,230."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{DIGITS}g}")  # first, because 9.999 has one decimal fewer than it seems
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def percent(share: float) -> str:
    """Return ``1.8 %``, two significant digits below ten."""
    return f"{100 * share:.1f} %" if abs(share) < 0.0995 else f"{100 * share:.0f} %"


def as_given(share: float) -> str:
    """Return ``3 %`` or ``2.5 %``: a share that somebody has chosen, in no more digits than it has."""
    return f"{100 * share:.3g} %"


def with_interval(estimate: Estimate, unit: str = "") -> str:
    """Return ``12.3 ms ±1.8 %``, without the interval if there is none."""
    value = f"{three_digits(estimate.value)} {unit}".strip()
    return value if estimate.half_width is None else f"{value} ±{percent(estimate.half_width)}"


def factor(ratio: Estimate) -> str:
    """Return ``3.52× ±2 %``, without the interval if there is none; its width in one digit below 1 %, else whole."""
    value = f"{three_digits(ratio.value)}×"
    width = ratio.half_width
    if width is None:
        return value
    return f"{value} ±{percent(width)}" if width < 0.0095 else f"{value} ±{100 * width:.0f} %"


def times(ratio: Estimate) -> str:
    """Return ``3.9× (3.7–4.1)`` as a sentence has it, without the interval if there is none."""
    decimals = 0 if ratio.value >= 9.95 else 1 if ratio.value >= 1.995 else 2
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:,.{decimals}f}×"
    while decimals < DIGITS and f"{ratio.low:.{decimals}f}" == f"{ratio.high:.{decimals}f}":
        decimals += 1
    # A bound has as many decimals as the ratio, but two significant digits at least.
    low, high = (f"{bound:,.{max(decimals, 1 - math.floor(math.log10(bound)))}f}" for bound in (ratio.low, ratio.high))
    return f"{ratio.value:,.{decimals}f}× ({low}–{high})"


def size_along(axis: Axis, size: float) -> str:
    """Return a size of a sweep; a crossover at a large batch is given to the sample."""
    if axis == "batch" and (size >= WHOLE_BATCH or float(size).is_integer()):
        return f"{size:,.0f}"
    return f"{size:.3g}"


def about(axis: Axis, size: float) -> str:
    """Return a size between those that were measured: a batch in whole samples."""
    return size_along(axis, round(size) if axis == "batch" else size)


def place_of(crossing: Crossing, axis: Axis) -> str:
    """Return ``about batch 64 (48–80)``, without the interval if there is none."""
    within = f" ({'–'.join(about(axis, end) for end in crossing.interval)})" if crossing.interval else ""
    return f"about {axis} {about(axis, crossing.at)}{within}"


def seconds(value: float) -> str:
    """Return a duration as a person says it: ``8 s``, ``2 min 05 s``, ``1 h 10 min``."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def duration(ns: float) -> str:
    """Return ``0.412 ms``, or ``12.3 s`` from a second on."""
    return f"{three_digits(ns / 1e9)} s" if ns >= 1e9 else f"{three_digits(ns / 1e6)} ms"


def whole_steps(steps: float) -> str:
    """Return ``78 steps`` for anything above 77, three digits of what is larger; the first step is always made."""
    return f"{three_digits(steps)} steps" if steps >= 100 else count(max(1, math.ceil(steps)), "step")


SPELLED = {"jax": "JAX", "tensorflow": "TensorFlow"}  # torch writes itself in small letters


def names(columns: Iterable[Column]) -> dict[Column, str]:
    """Return how sentences call each column: ``JAX``, ``torch on the GPU`` if there are several devices."""
    unique = list(columns)
    several = len({column.device for column in unique}) > 1
    return {column: _name(column, several) for column in unique}


def _name(column: Column, with_device: bool) -> str:
    name = SPELLED.get(column.backend, column.backend)
    if column.options.environment:
        name += f" {AT}{column.options.environment}"
    if with_device:
        kind, _, index = column.device.partition(":")
        kind = kind.upper() if kind in (CPU, GPU) else kind
        name += f" on {kind} {index}" if index else f" on the {kind}"
    options = column.with_options(environment="").options.label
    return f"{name} with {options}" if options else name


def case_name(case: CaseKey, predicts_only: bool = False) -> str:
    """Return ``mnist_mlp/tiny jax cpu``, with the options if there are any, and of an untrained model with that."""
    name = label(case.scenario, case.workload) + (PREDICTS if predicts_only else "")
    parts = (name, case.column.backend, case.column.device, case.options.label)
    return " ".join(part for part in parts if part)


def listed(parts: Sequence[str]) -> str:
    """Return ``JAX``, ``JAX and torch``, ``JAX, TensorFlow and torch``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


WANTED = 0.05  # the difference that most people look for
MANY_ROUNDS = 100  # more are no plan
OVERHEAD_STEP_MS = 5  # below it a step is mostly Python and framework overhead (floors on a CPU: 0.2 to 1.5 ms)
LEGEND = "Bold: significantly the fastest. ≈: not significantly slower than the fastest. ⚠: see Warnings."
PREDICTED = (
    "(predict): a model that was not trained (trains=False, or saved without compile()); its figure is "
    "predict_on_batch of one batch, median."
)
STEP_OF_ALL = "A step: the time of all published epochs divided by their steps. The first one, which compiles, counts."
STEP = (
    "A typical step of fit, without its progress bar: the time of an epoch over its steps, by medians. It contains "
    "feeding the batch, the step, its metrics, and its share of what each epoch costs once."
)


def timed_in(rows: Sequence[Row]) -> str:
    """Return what the headline of these rows is the time of: a training step, or a prediction of untrained models."""
    kinds = {row.workload.predicts_only for row in rows}
    return "prediction" if kinds == {True} else "training step or prediction" if True in kinds else "training step"


def training_notes(summary: Summary, step: str = STEP) -> Iterator[str]:
    """Yield what a table of steps cannot say in a cell; ``step`` says what a step is there."""
    yield from _verdict_notes(summary)
    trained = [row for row in summary.rows if not row.workload.predicts_only]
    published = [row for row in trained if row.origin.protocol == "published"]
    if len(published) < len(trained):
        yield step
    if published:
        yield STEP_OF_ALL
    if len(trained) < len(summary.rows):
        yield PREDICTED
    steps = [case.estimate(row.headline) for row in trained for case in row.cases.values()]
    if any(found is not None and found.value < OVERHEAD_STEP_MS for found in steps):
        yield f"Steps under {OVERHEAD_STEP_MS} ms are mostly Python and framework overhead, not the device's work."
    if any(column.options.native for column in summary.columns):
        yield "native=on: the same model in the plain framework, without Keras; see What Keras costs."
    if any(column.options.warm_cache for column in summary.columns):
        yield "warm-cache=on: it found what an earlier process had compiled; see What a warm cache saves."


def confidence(rankings: Sequence[Ranking]) -> str:
    """Return how sure the intervals of judged ratios are, ``95 %``: more where few of a run's are significant."""
    levels = {one.ratio.confidence for ranking in rankings for one in ranking.comparisons} or {CONFIDENCE}
    return " to ".join(dict.fromkeys(f"{min(99.9, 100 * level):.3g}" for level in (min(levels), max(levels)))) + " %"


def _verdict_notes(summary: Summary) -> Iterator[str]:
    if any(ranking.proven for ranking in summary.rankings) or any(
        row.rounds >= MIN_TRIALS_FOR_INTERVAL for row in summary.rows
    ):
        yield LEGEND
        level = confidence(summary.rankings)
        yield f"×: the time over that of the fastest of the row. ±: its {level} interval, {paired(summary.rows)}."
        yield f"Significant: by more than {as_given(summary.record.minimal_effect)}{corrected(summary)}."
        yield from moderated(summary)
        yield from any_sitting(summary.rankings)
        return
    rounds = max((row.rounds for row in summary.rows), default=summary.record.rounds_completed)
    yield (
        f"Bold: the fastest measured in {count(rounds, 'complete round')}: too few for an interval, so nothing is "
        "proven. ⚠: see Warnings."
    )


def paired(rows: Sequence[Row]) -> str:
    """Return how the cases of these rows were compared."""
    ways = {row.in_turn for row in rows if sum(bool(case.trials) for case in row.cases.values()) > 1}
    if ways == {True, False}:
        return "compared block by block, and what was measured one after another by rounds"
    return "compared block by block" if ways == {True} else "paired by rounds"


def corrected(summary: Summary) -> str:
    """Return how many ratios of a table were judged together."""
    made = Counter[str]()
    for row, ranking in summary.ranked:
        made[row.run] += len(ranking.comparisons) if ranking.proven and not ranking.withheld else 0
    return judged_together(max(made.values(), default=0))  # those of a run are


def judged_together(ratios: int) -> str:
    return f" ({ratios} ratios judged together: at most 5 % of the verdicts are wrong on average)" if ratios > 1 else ""


def could_have_seen(judged: Iterable[Comparison | Contrast | Difference | Change], effect: float) -> list[str]:
    """Return which differences the inconclusive ratios of a table would have shown, and what WANTED would take."""
    unclear = [one.ratio for one in judged if one.verdict is Verdict.INCONCLUSIVE and not one.ratio.disturbed]
    seen = sorted(share for one in unclear if (share := detectable(one, effect)) is not None)
    if not seen:
        return []
    least, most = (_rounded_up(share) for share in (seen[0], seen[-1]))
    spread = f"; in the least precise row above {most}" if least != most else ""
    text = f"Inconclusive: a difference above {least} would have been seen, nine times out of ten{spread}."
    of_rounds = [one for one in unclear if one.has_interval and one.basis != "sittings"]
    if effect < WANTED < max((detectable(one, effect) or 0.0 for one in of_rounds), default=0.0):
        needed = [rounds_to_see(one, effect, WANTED) for one in of_rounds]
        if any(one.between_sittings and rounds is None for one, rounds in zip(of_rounds, needed, strict=True)):
            return [f"{text} More rounds of one sitting would not show {100 * WANTED:.0f} % in all of them."]
        rounds = sorted({MANY_ROUNDS if one is None else min(one, MANY_ROUNDS) for one in needed})
        words = [f"more than {MANY_ROUNDS}" if one == MANY_ROUNDS else str(one) for one in (rounds[0], rounds[-1])]
        about = "" if rounds[0] == MANY_ROUNDS else "about "
        text += f" To see {100 * WANTED:.0f} %: {about}{' to '.join(dict.fromkeys(words))} rounds."
    return [text]


def _rounded_up(share: float) -> str:
    return f"{math.ceil(100 * share)} %" if share < 1 else f"{math.ceil(1 + share):,}×"


BETWEEN = {Family.BACKENDS: "backends or devices", Family.OPTIONS: "options of one backend"}


def any_sitting(rankings: Sequence[Ranking]) -> list[str]:
    """Return by how much the intervals are wider than those of the sittings that were measured; nothing if none is."""
    deviations = dict.fromkeys(BETWEEN, 0.0)
    for ranking in rankings:
        for comparison in ranking.comparisons:
            if ranking.fastest is not None and comparison.ratio.between_sittings:
                family = Family.of(ranking.fastest, comparison.rival)
                deviations[family] = max(deviations[family], comparison.ratio.between_sittings)
    allowed = [f"between {BETWEEN[family]} by {100 * by:.2g} %" for family, by in deviations.items() if by]
    if not allowed:
        return []
    return [f"Intervals allow for ratios that change from day to day: {', '.join(allowed)} (docs/how-it-works.md)."]


def moderated(summary: Summary) -> list[str]:
    """Return how the ratios of the run scatter, where intervals borrow from that."""
    priors = {(row.run, row.headline): row.priors(row.headline, Family.BACKENDS) for row in summary.rows if row.priors}
    described = dict.fromkeys(
        f"{percent(math.sqrt(one.variance))} ({one.ratios} ratios, worth {one.degrees:.2g} degrees of freedom)"
        for one in priors.values()
        if one is not None
    )
    if not described:
        return []
    scatter = ", or by ".join(described)
    return [f"Intervals borrow from each other: from block to block the ratios of a run scatter by about {scatter}."]


def not_cold(summary: Summary) -> list[str]:
    """Return how to get the figures of the start where columns started together, which leaves them out."""
    rows = [
        row.label
        for row in summary.rows
        if any(case.trials and not any(one.started_alone for one, _ in case.trials) for case in row.cases.values())
    ]
    if not rows:
        return []
    of_some = "" if len(rows) == len(summary.rows) else f" of {listed(rows)}"
    is_run = not any(row.origin.config.race or row.origin.config.soak for row in summary.rows)
    how = "run without --quick" if is_run else "kerasbench run, without --quick"
    return [
        f"Start-up, build, first step and compiling{of_some} were not measured: columns started together. To measure "
        f"them: {how}."
    ]


def start_up(summary: Summary) -> list[str]:
    """Return what the figures of the start are, and of which rows there are none."""
    left_out = not_cold(summary)
    if any(case.estimate("startup_ms") for _, _, case in summary.cases):
        left_out += ["Start-up: from starting the process to a first operation on the device.", *first_step(summary)]
    return left_out


def first_step(summary: Summary) -> list[str]:
    """Return what a first step is, and how cold its compilation was."""
    if not any(case.estimate("first_step_ms") for _, _, case in summary.cases):
        return not_cold(summary)
    notes = ["First step: tracing, compiling and running one fit of one batch, with empty compilation caches."]
    if any(trial.device.platform in APPLE for trial in summary.record.trials):
        # Metal's compiler keeps kernels in the user's cache folder of macOS (com.apple.metal), by program.
        notes.append("On the Apple GPU, macOS keeps Metal's own cache: kernels may come from an earlier trial.")
    return notes


def metric_section(
    summary: Summary, title: str, metrics: Sequence[str], notes: Sequence[str], needed: str = ""
) -> Section | None:
    """Return a section with a line for each row and metric; None if no case has any, or the ``needed`` one."""
    if needed and not any(case.estimate(needed) for _, _, case in summary.cases):
        return None
    lines = []
    for row in summary.rows:
        for name in metrics:
            values = [value(row, column, name) for column in summary.columns]
            if any(cell is not EMPTY for cell in values):
                metric = BY_NAME[name]
                unit = f"samples{RATE}" if metric.unit == RATE else metric.unit
                title_of = f"{metric.title} ({unit})" if unit else metric.title
                lines.append([*texts(row.label, title_of), *values])
    table = Table(["scenario", "figure", *(column.label for column in summary.columns)], lines)
    return Section(title, table=table, notes=notes) if lines else None


def value(row: Row, column: Column, name: str, unit: str = "") -> Cell:
    """Return a metric of a case with its interval."""
    case = row.cases.get(column)
    found = case.estimate(name) if case else None
    if case is None or found is None:
        return EMPTY
    if BY_NAME[name].difference and (sign := case.sign(name)) < 1:
        return Cell(BELOW_ZERO if sign else NOT_ABOVE_ZERO)
    return estimated(found, unit)


def estimated(found: Estimate, unit: str = "") -> Cell:
    return Cell(with_interval(found, unit), found.value)


def took(found: Estimate, row: Row) -> str:
    """Return what a case took by what stands for its row, ``2.45 ms``."""
    return f"{three_digits(found.value)} {BY_NAME[row.headline].unit}"


def timed(row: Row, column: Column, ranking: Ranking) -> Cell:
    """Return the step of a case with its marks: ``2.45 ms`` for the fastest, ``8.62 ms, 3.52× ±2 %`` for the others."""
    case = row.cases.get(column)
    found = case.estimate(row.headline) if case else None
    if found is None:
        return failed(row, column)
    unit, ratio = BY_NAME[row.headline].unit, ranking.over_fastest(column)
    if column == ranking.fastest and ranking.comparisons:
        text = took(found, row)
    elif ratio is None:  # it is compared with no other
        text = with_interval(found, unit)
    else:
        text = f"{took(found, row)}, {factor(ratio)}"
    level = bool(ranking.level) and column in (ranking.fastest, *ranking.level)
    warned = ranking.disturbed or is_warned(row, column)
    return Cell(text, found.value, strong=column == ranking.first, level=level, warned=warned)


def failed(row: Row, column: Column) -> Cell:
    """Return what a table shows instead of a number: the failure's code, or nothing."""
    case = row.cases.get(column)
    return Cell(case.failure.code, failed=True) if case and case.failure else EMPTY
