"""The page of a run, by what was measured: the finding, where it is from, its numbers, what to know, and details."""

import contextlib
from functools import cache

from kerasbench import backends
from kerasbench.analysis.summary import Summary
from kerasbench.modes import registry
from kerasbench.report import details, next_steps, warnings
from kerasbench.report.sections import Page, Section, Strong, Typed, Words
from kerasbench.report.teller import Builder
from kerasbench.report.words import listed, seconds, spelled
from kerasbench.results.merge import MergedRun
from kerasbench.text import blanked, count, whole_gib
from kerasbench.text import seconds as moment


@cache
def quotable() -> dict[str, Builder]:
    """Return what README and docs quote by name, ``<!-- tables of results/x.json: answer -->``."""
    quoted = (registry.mode_report(mode.name).quoted for mode in registry.MODES)
    return {name: build for builders in quoted for name, build in builders.items()} | {"machine": machine}


def whole(summary: Summary) -> Page:
    mode_reports, (cautions, marks) = registry.mode_reports(summary), warnings.cautions(summary)
    is_measured = any(case.trials and not case.failure for _, _, case in summary.cases)
    marks = marks if is_measured else {}  # else there are no warnings that their numbers could be of
    first, *others = [part for report in mode_reports for part in report.sections(summary, marks)] or [Section("")]
    # The answer has no heading: it stands below the title.
    missing = next_steps.not_compared(summary)
    intro = [*head(summary), *_scripts(summary), *([missing] if missing else []), *first.intro]
    first = first._replace(title="", intro=intro)
    others = [part if part.title else part._replace(title="How long does a step take?") for part in others]
    same, apart = details.same_results(summary)
    advice = [words for report in mode_reports for words in report.advice(summary)]
    to_know = warnings.section(cautions, advice, same) if is_measured else None
    after = next_steps.section(summary) if is_measured else None
    others += filter(None, [details.failures(summary), to_know, after, warnings.more(cautions), apart])
    others += (part for report in mode_reports for part in report.details(summary))
    return Page(registry.title(summary), [first, *others, details.how(summary)])


def _scripts(summary: Summary) -> list[Words]:
    """Return what was measured of each script, which nobody can look up in a list of scenarios."""
    described = [scenario.description for scenario in summary.record.scenarios]
    return [blanked(description.text) for description in described if description.script and description.text]


def machine(summary: Summary) -> Section:
    return Section("", intro=head(summary))


def head(summary: Summary) -> list[Words]:
    record = summary.record
    machine, versions, started = (
        record.machine,
        details.versions_of(record),
        f"{record.started[:16].replace('T', ' ')} UTC",
    )
    spelling = {"keras": "Keras", **{name: spelled(name) for name in backends.names()}, "python": "Python"}
    of_packages = {package: listed(sorted(versions[package])) for package in spelling if package in versions}
    named = [f"{spelling[package]} {version}" for package, version in of_packages.items()]
    kinds = ", ".join(f"{cores} {kind}" for kind, cores in machine.cores_by_kind.items())
    cpus = count(machine.cores, "logical CPU") + (f" ({kinds})" if kinds else "")
    gpus = [gpu + (f" (driver {machine.driver})" if machine.driver else "") for gpu in machine.gpus] or ["no GPU"]
    hardware = ", ".join([cpus, whole_gib(machine.memory_bytes), *gpus, machine.system])
    parts = " · ".join(filter(None, [hardware, ", ".join(named)]))
    where: Words = [Strong(blanked(machine.chip)), f", {parts}"]
    if isinstance(record, MergedRun) and record.runs > 1:
        return [where, f"{record.runs} runs, the last of {started}"]
    took = ""
    with contextlib.suppress(ValueError):  # it has not finished, or its file says something else
        lasted_s = moment(record.finished) - moment(record.started)
        took = f" · {seconds(lasted_s)}" if lasted_s > 0 and not record.resumed else ""
    rounds = sorted({row.rounds for row in summary.rows if row.rounds})
    measured = "no complete round"
    if rounds:
        measured = count(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds"
    number = len({trial.session for trial in record.trials})
    sessions = "one session" if number < 2 else f"{number} sessions"
    typed = registry.mode_report(record.config.mode).command(record.config)
    return [where, [Typed(typed), f" · {started}{took}, {measured}, {sessions}"]]
