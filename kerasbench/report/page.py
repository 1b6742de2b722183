"""The sections of a page, in their order, and the pages made of them: the whole one, a terminal's, an explanation's."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kerasbench.analysis.findings import Findings
from kerasbench.report import comparisons, conditions, explanation, generation, markdown, tables
from kerasbench.report.answer import answer
from kerasbench.report.sections import Page, Section

Builder = Callable[[Findings], Section | None]  # None: it has nothing to say


@dataclass(frozen=True)
class SectionSpec:
    """A section, and where it is shown."""

    name: str  # README and docs quote it by this name
    build: Builder
    screen: bool = False  # a terminal shows it too
    brief: Builder | None = None  # builds what a terminal shows, where that is less
    of_versions: bool = True  # shown too if nothing but versions was compared
    folded: bool = False  # details, which an HTML page shows on a click


# To add a section: its builder, and its line here.
SECTIONS = (
    SectionSpec("answer", answer, screen=True, of_versions=False),
    SectionSpec("training", tables.training, screen=True, of_versions=False),
    SectionSpec("versus", comparisons.versions, True, lambda found: comparisons.versions(found, briefly=True)),
    SectionSpec("explained", lambda found: explanation.section(found.breakdowns)),
    SectionSpec("sweep", tables.sweep, screen=True),
    SectionSpec("costs", tables.costs, screen=True),
    SectionSpec("by_size", tables.by_size, folded=True),
    SectionSpec("calls", tables.calls, screen=True),
    SectionSpec("new_tokens", generation.new_tokens, screen=True),
    SectionSpec("native", tables.what_keras_costs, screen=True),
    SectionSpec("warm_cache", tables.what_a_warm_cache_saves, screen=True),
    SectionSpec("full_epochs", tables.full_epochs, screen=True, folded=True),
    SectionSpec("devices", tables.devices),
    SectionSpec("failures", conditions.failures, screen=True),
    SectionSpec("warnings", conditions.warnings, screen=True),
    SectionSpec("warned_cases", conditions.warned_cases, folded=True),
    SectionSpec("controls", tables.controls, screen=True),
    SectionSpec("sittings", tables.each_sitting, screen=True),
    SectionSpec("heading", conditions.heading, screen=True),
    SectionSpec("measured", conditions.measured),
    SectionSpec("verdicts", tables.verdicts, of_versions=False, folded=True),
    SectionSpec("predicted", tables.predicted, folded=True),
    SectionSpec("beside_published", tables.beside_published, folded=True),
    SectionSpec("epochs", tables.epochs, folded=True),
    SectionSpec("prediction", tables.prediction, folded=True),
    SectionSpec("cold_start", tables.cold_start, folded=True),
    SectionSpec("compilers", conditions.compilers, folded=True),
    SectionSpec("learning", tables.learning, folded=True),
    SectionSpec("noise", tables.noise, folded=True),
)
OF_PLAIN_COLUMNS = ("training", "verdicts")  # a race and a soak have intervals and answers of their own
BY_NAME = {spec.name: spec for spec in SECTIONS}
CONDITIONS = ("failures", "warnings", "heading")  # what to know of a run beside its figures


def whole(found: Findings) -> Page:
    """Return the whole page: the answer, every table, what failed, what was measured on."""
    return _page(found, SECTIONS, _title(found))


def screen(found: Findings) -> Page:
    """Return what a terminal shows: the answer, the headline, what failed, what was measured on."""
    brief = [dataclasses.replace(spec, build=spec.brief or spec.build) for spec in SECTIONS if spec.screen]
    return _page(found, brief, _title(found))


def _title(found: Findings) -> str:
    return f"kerasbench on {found.record.machine.chip}, {found.record.started[:10]}"


def explained(found: Findings) -> Page:
    """Return what an explanation shows on a terminal: where the time goes, and what to know of the run."""
    return _page(found, [BY_NAME[name] for name in ("explained", *CONDITIONS)])


def document(found: Findings, curves: str = "", data: str = "") -> str:
    """Return the whole page as the markdown of a file.

    ``curves``: the name of the file with a sweep's chart; ``data``: that of the file with everything that was measured.
    """
    return markdown.file(whole(found), curves, data)


def _page(found: Findings, specs: Iterable[SectionSpec], title: str = "") -> Page:
    sections = []
    for spec in specs:
        judged_otherwise = found.is_versus and not spec.of_versions
        if judged_otherwise or ((found.races or found.soaks) and spec.name in OF_PLAIN_COLUMNS):
            continue
        section = spec.build(found)
        if section is not None:
            sections.append(dataclasses.replace(section, folded=spec.folded))
    return Page(title, sections)
