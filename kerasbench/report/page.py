"""The pages of a run: all that is known, and what a terminal shows. Both begin with the answer."""

from kerasbench.analysis.findings import Findings
from kerasbench.report import comparisons, explanation, markdown, sweep, tables
from kerasbench.report.answer import answer
from kerasbench.report.conditions import failures, heading, measured, title, warned_cells, warnings
from kerasbench.report.sections import Page, Section, page
from kerasbench.report.tables import (
    beside_published,
    controls,
    each_sitting,
    training,
    verdicts,
    what_busy_cores_cost,
    what_keras_costs,
)


def whole(found: Findings) -> Page:
    """Return the whole page: the answer, every table, what failed, what was measured on."""
    summary, published = found.summary, found.plain
    return page(
        title(summary),
        [
            *([] if found.is_versus else _steps(found)),
            *_versions(found),
            explanation.section(found.breakdowns),
            *sweep.sections(found),
            what_keras_costs(found),
            what_busy_cores_cost(found),
            tables.devices(found),
            failures(summary),
            warnings(summary),
            warned_cells(summary),
            controls(summary),
            each_sitting(found),
            heading(summary),
            measured(summary),
            None if found.is_versus else verdicts(published),
            tables.full_epochs(published),
            tables.predicted(published),
            beside_published(published),
            tables.epochs(published),
            tables.prediction(published),
            tables.cold_start(published),
            None if found.is_versus else tables.repaid(found),
            tables.learning(published),
            tables.phases(summary),
            tables.disturbances(summary),
        ],
    )


def screen(found: Findings) -> Page:
    """Return what a terminal shows: the answer, the headline, what failed, what was measured on."""
    summary = found.summary
    return page(
        title(summary),
        [
            *([] if found.is_versus else _steps(found)),
            *_versions(found, briefly=True),
            *sweep.brief(found),
            what_keras_costs(found),
            what_busy_cores_cost(found),
            tables.full_epochs(found.plain),
            failures(summary),
            warnings(summary),
            controls(summary),
            each_sitting(found),
            heading(summary),
        ],
    )


def explained(found: Findings) -> Page:
    """Return what an explanation shows on a terminal: where the time goes, and what to know of the run."""
    return page("", [explanation.section(found.breakdowns), *beside(found).sections])


def beside(found: Findings) -> Page:
    """Return what to say beside an explanation: what failed, what to doubt, and what was measured on.

    All of a run, where nothing could be explained.
    """
    summary = found.summary
    return page("", [failures(summary), warnings(summary), heading(summary)]) if found.breakdowns else screen(found)


def document(found: Findings) -> str:
    """Return the whole page as markdown."""
    return markdown.file(whole(found))


def brief(found: Findings) -> str:
    """Return what a terminal shows, as markdown."""
    return markdown.rendered(screen(found))


def _versions(found: Findings, briefly: bool = False) -> list[Section]:
    """Return what is said of versions that were compared, whose answer is another than who is fastest."""
    return [section for one in found.versus for section in comparisons.sections(one, found.summary, briefly)]


def _steps(found: Findings) -> list[Section | None]:
    """Return the answer and the headline table, also of nothing at all; no table where sizes alone were measured."""
    has_steps = bool(found.plain.rows or not found.summary.rows)
    return [answer(found), training(found.plain) if has_steps else None]
