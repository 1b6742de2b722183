"""The answer of a race: what is fastest, what to write to have it, and how every candidate came out."""

from collections.abc import Sequence
from typing import Any

from kerasbench.analysis.metrics import BY_NAME
from kerasbench.analysis.race import Race, Standing
from kerasbench.protocol.columns import CPU, Column
from kerasbench.report import charts
from kerasbench.report.figures import listed, names, percent, three_digits, times
from kerasbench.report.sections import Cell, Section, Table
from kerasbench.text import NOTHING, blanked, count

VERBS = {"train": "trains", "predict": "predicts a batch with", "predict-one": "predicts one sample with"}
MORE_MEMORY = 1.5  # times the memory of the baseline: from there on it is said


def section(races: Sequence[Race]) -> Section:
    """Return the first section of a page: the answer of each race, and its ladder."""
    lines = [line for one in races for line in (sentence(one), *details(one))]
    rows = [row for one in races for row in _ladder(one)]
    notes = [
        "×: how many times as long it takes as with the fastest: the median, with the 95 % interval.",
        "A candidate leaves the race once it is significantly slower by more than the margin (docs/method.md).",
    ]
    table = Table(["scenario", "candidate", "time", "×", "rounds", "how it ended"], rows)
    return Section("Answer", list(map(blanked, lines)), table, notes=notes, chart=charts.ladder(races))


def sentence(race: Race) -> str:
    """Return ``JAX with steps-per-execution=8 trains mnist_dense 3.9× (3.6–4.2) as fast as Keras without settings.``"""
    named = names(one.column for one in race.standings)
    what = f"{named[race.leader]} {VERBS[race.purpose]} {race.row.label}"
    doubt = "" if race.is_over else f" This is not proven: another may be faster by more than {percent(race.margin)}."
    if race.leader == race.baseline:
        return f"{what} fastest here: what Keras does without settings.{doubt}"
    gain = f"{times(race.gain)} as fast as" if race.gain else "faster than"
    against = f" ({named[race.baseline]})" if race.baseline else ""
    return f"{what} {gain} Keras does here without settings{against}.{doubt}"


def details(race: Race) -> list[str]:
    """Return what to write, what is as good, what argues against the winner, and what became of the others."""
    named = names(one.column for one in race.standings)
    lines = [f"To use it: {'; '.join(to_write(race.leader, race))}."] if race.leader != race.baseline else []
    if race.equals:
        lines.append(f"Within {percent(race.margin)} of it: {listed([named[one] for one in race.equals])}.")
    if against := _against(race, named):
        lines.append(against)
    return [*lines, _others(race, named)]


def to_write(column: Column, race: Race) -> list[str]:
    """Return the lines that choose a candidate, for a shell and for Python; nothing for what Keras does anyway."""
    lines, options = [], column.options
    if race.baseline is None or column.backend != race.baseline.backend:
        lines.append(f"export KERAS_BACKEND={column.backend}")
    if column.device == CPU and any(one.column.device != CPU for one in race.standings):
        lines.append("export CUDA_VISIBLE_DEVICES=-1")
    if options.threads is not None:
        lines.append(f"taskset --cpu-list 0-{options.threads - 1} python your_script.py")
    if options.dtype is not None:
        lines.append(f'keras.config.set_dtype_policy("{options.dtype}")')
    compiled = [] if options.jit is None else [f"jit_compile={options.jit}"]
    if options.steps_per_execution is not None:
        compiled.append(f"steps_per_execution={options.steps_per_execution}")
    return [*lines, f"model.compile(..., {', '.join(compiled)})"] if compiled else lines


def _against(race: Race, named: dict[Column, str]) -> str:
    """Say what the winner costs beside time."""
    if race.baseline is None or race.baseline == race.leader:
        return ""
    mine, others = (race.row.cases[one].estimate("peak_rss_mib") for one in (race.leader, race.baseline))
    if mine is None or others is None or mine.value < MORE_MEMORY * others.value:
        return ""
    return (
        f"It takes more memory: {three_digits(mine.value)} MiB, and {named[race.baseline]} "
        f"{three_digits(others.value)} MiB."
    )


def _others(race: Race, named: dict[Column, str]) -> str:
    """Say how many candidates there were, and what became of them."""
    gone = [one for one in race.standings if one.has_left and one.rounds == 1]
    failed = [named[one.column] for one in race.standings if one.failure is not None]
    parts = [f"{count(len(race.standings), 'candidate')}, {count(race.rounds, 'round')}"]
    if gone:
        parts.append(f"{len(gone)} of them left after the first")
    if failed:
        parts.append(f"{listed(failed)} failed")
    return f"{'; '.join(parts)}."


def _ladder(race: Race) -> list[list[Cell]]:
    named = names(one.column for one in race.standings)
    return [
        [
            Cell(race.row.label),
            Cell(named[one.column], strong=one.column == race.leader and race.is_over),
            Cell(_time(race, one)),
            Cell("1×" if one.column == race.leader else times(one.ratio) if one.ratio else NOTHING),
            Cell(str(one.rounds)),
            Cell(_ending(race, one)),
        ]
        for one in race.standings
    ]


def _time(race: Race, standing: Standing) -> str:
    found = race.row.cases[standing.column].estimate(race.metric)
    return f"{three_digits(found.value)} {BY_NAME[race.metric].unit}" if found else NOTHING


def _ending(race: Race, standing: Standing) -> str:
    if standing.failure is not None:
        return f"failed: {standing.failure.cause}"
    if standing.column == race.leader:
        return "fastest" if race.is_over else "leads"
    ending = "left: too slow" if standing.has_left else "as good" if standing.column in race.equals else "undecided"
    return f"{ending} (Keras without settings)" if standing.column == race.baseline else ending


def as_data(races: Sequence[Race]) -> list[dict[str, Any]]:
    """Return what ``fastest --json`` prints, a dictionary for each race."""
    return [
        {
            "scenario": one.row.scenario.name,
            "workload": one.row.workload.name,
            "for": one.purpose,
            "metric": one.metric,
            "winner": one.leader.label,
            "proven": one.is_over,
            "to_use_it": to_write(one.leader, one),
            "without_settings": one.baseline.label if one.baseline else None,
            "times_as_fast": _interval(one.gain),
            "as_good": [column.label for column in one.equals],
            "rounds": one.rounds,
            "candidates": [
                {
                    "column": standing.column.label,
                    "times_as_long": _interval(standing.ratio),
                    "rounds": standing.rounds,
                    "left": standing.has_left,
                    "failure": standing.failure.cause if standing.failure else None,
                }
                for standing in one.standings
            ],
        }
        for one in races
    ]


def _interval(ratio: Any) -> dict[str, float | None] | None:
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high} if ratio else None
