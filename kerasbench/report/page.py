"""The page of a run, by what was measured: the finding, where it is from, its numbers, what to know, and details."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator

from kerasbench.analysis.findings import Findings
from kerasbench.report import answer, details, explanation, generation, race, soak, sweep, versus, warnings
from kerasbench.report.command import command
from kerasbench.report.details import versions_of
from kerasbench.report.sections import Page, Section, Strong, Typed, Words
from kerasbench.report.warnings import Marks
from kerasbench.report.words import SPELLED, listed, seconds
from kerasbench.results.merge import Merged
from kerasbench.text import blanked, count, whole_gib
from kerasbench.text import seconds as moment

Builder = Callable[[Findings], Section | None]  # None: it has nothing to say
PACKAGES = ("keras", "jax", "tensorflow", "torch", "python")  # whose versions stand above the fold
# What README and docs quote by name, ``<!-- tables of results/x.json: answer -->``. Those of plain runs in order.
UNFOLDED: dict[str, Builder] = {
    "published_epochs": details.published_epochs,
    "calls": details.calls,
    "new_tokens": generation.new_tokens,
    "devices": details.devices,
    "native": details.what_keras_costs,
    "warm_cache": details.what_a_warm_cache_saves,
}
FOLDED: dict[str, Builder] = {
    "prediction": details.predictions,
    "starting": details.starting,
    "beside_published": details.beside_published,
    "sessions": details.sessions,
}
MODES: dict[str, Builder] = {
    "answer": lambda findings: answer.section(findings, Marks()),
    "kinds": answer.kinds,
    "sweep": lambda findings: next(sweep.sections(findings, Marks()), None),
    "fastest": race.section,
    "versus": lambda findings: next(versus.sections(findings), None),
    "explained": explanation.section,
    "soak": soak.section,
}
BY_NAME = MODES | UNFOLDED | FOLDED | {"failures": details.failures}


def whole(findings: Findings) -> Page:
    shown = warnings.cautions(findings)
    if findings.is_versus or findings.races or findings.soaks:  # no cell of their tables is marked
        shown = [dataclasses.replace(caution, cases=()) for caution in shown]
    marks = warnings.marks_of(shown)
    first, *others = list(_answers(findings, marks)) or [Section("")]
    if first.title:  # the answer has no heading: it stands below the title
        first = dataclasses.replace(first, title="")
    first = dataclasses.replace(first, intro=[*head(findings), *first.intro])
    same, apart = details.same_results(findings)
    advice = [words for answered in findings.races for words in race.before_use(answered)]
    known = dataclasses.replace(warnings.section(shown, advice), end=same)
    is_measured = any(case.trials and not case.failure for _, _, case in findings.summary.cases)
    sections = [
        first,
        *others,
        *filter(None, [details.failures(findings)]),
        *([known] if is_measured else []),
        *filter(None, [warnings.more(shown), apart]),
        *_details(findings),
        details.how(findings),
    ]
    return Page(title(findings), sections)


def title(findings: Findings) -> str:
    if findings.is_versus and findings.versus:
        return versus.title(findings)
    if findings.races:
        return race.title(findings)
    if findings.soaks:
        return soak.title(findings)
    if findings.breakdowns:
        return explanation.title(findings)
    if findings.sized.rows and not findings.plain.rows:
        return sweep.title(findings)
    return answer.title(findings)


def _answers(findings: Findings, marks: Marks) -> Iterator[Section]:
    if findings.is_versus:
        yield from versus.sections(findings)
        yield from versus.besides(findings)
    elif findings.races:
        yield from race.sections(findings)
    elif findings.soaks:
        yield from filter(None, [soak.section(findings)])
    else:
        yield from filter(None, [explanation.section(findings) if findings.breakdowns else None])
        plain = answer.section(findings, marks)
        if plain is not None:
            yield dataclasses.replace(plain, title="How long does a step take?") if findings.breakdowns else plain
        yield from filter(None, (build(findings) for build in UNFOLDED.values()))
        if not findings.breakdowns:
            yield from sweep.sections(findings, marks)
            yield from filter(None, [sweep.alone(findings, marks) if not findings.plain.rows else None])
        yield from versus.sections(findings)


def _details(findings: Findings) -> Iterator[Section]:
    if findings.is_versus or findings.races or findings.soaks:
        yield from race.left(findings) if findings.races else ()
        return
    yield from explanation.details(findings)
    yield from filter(None, (build(findings) for build in FOLDED.values()))


def head(findings: Findings) -> list[Words]:
    """Return the machine and the versions, then the command, the date and for how long it was measured."""
    record = findings.record
    versions = versions_of(record)
    named = [
        f"{SPELLED.get(package, package.capitalize())} {listed(sorted(versions[package]))}"
        for package in PACKAGES
        if package in versions
    ]
    machine = record.machine
    kinds = ", ".join(f"{cores} {kind}" for kind, cores in machine.cores_by_kind.items())
    cpus = count(machine.cores, "logical CPU") + (f" ({kinds})" if kinds else "")
    gpus = [gpu + (f" (driver {machine.driver})" if machine.driver else "") for gpu in machine.gpus] or ["no GPU"]
    hardware = ", ".join([cpus, whole_gib(machine.memory_bytes), *gpus, machine.system])
    lines: list[Words] = [
        [Strong(blanked(machine.chip)), f", {' · '.join(filter(None, [hardware, ', '.join(named)]))}"]
    ]
    if isinstance(record, Merged) and record.runs > 1:
        return [*lines, f"{record.runs} runs, the last of {_date(record.started)}"]
    took = ""
    with contextlib.suppress(ValueError):  # it has not finished, or its file says something else
        lasted_s = moment(record.finished) - moment(record.started)
        took = f" · {seconds(lasted_s)}" if lasted_s > 0 and not record.resumed else ""
    rounds = sorted({row.rounds for row in findings.summary.rows if row.rounds})
    measured = "no complete round"
    if rounds:
        measured = count(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]} rounds"
    sittings = {trial.sitting for trial in record.trials}
    sessions = "one session" if len(sittings) < 2 else f"{len(sittings)} sessions"
    return [*lines, [Typed(command(record.config)), f" · {_date(record.started)}{took}, {measured}, {sessions}"]]


def _date(started: str) -> str:
    return f"{started[:10]} {started[11:16]} UTC"
