"""The tables of a run, as markdown."""

from kerasbench.analysis.findings import Findings
from kerasbench.report import details, explanation, sweep, training
from kerasbench.report.failures import failures
from kerasbench.report.heading import heading
from kerasbench.report.keras_cost import what_keras_costs
from kerasbench.report.published import beside_published
from kerasbench.report.training import controls, verdicts


def document(found: Findings) -> str:
    """Return the whole page: what was measured on, every table, what failed."""
    published = found.plain
    return _page(
        heading(found.summary),
        _training(found),
        explanation.document(found.anatomies),
        verdicts(published),
        controls(found.summary),
        what_keras_costs(found),
        details.devices(found),
        sweep.document(found),
        details.full_epochs(published),
        details.predicted(published),
        beside_published(published),
        details.epochs(published),
        details.prediction(published),
        details.cold_start(published),
        details.repaid(found),
        details.learning(published),
        details.phases(found.summary),
        details.drifts(found),
        details.disturbances(found.summary),
        failures(found.summary),
    )


def brief(found: Findings) -> str:
    """Return what a terminal shows: the headline, what was published, what failed."""
    return _page(
        heading(found.summary),
        training.brief(found.plain) if _has_steps(found) else "",
        controls(found.summary),
        sweep.brief(found),
        what_keras_costs(found),
        details.full_epochs(found.plain),
        beside_published(found.plain),
        failures(found.summary),
    )


def explained(found: Findings) -> str:
    """Return what an explanation shows on a terminal: where the time goes, and what failed."""
    return "\n\n".join(part for part in (explanation.document(found.anatomies), beside(found)) if part)


def beside(found: Findings) -> str:
    """Return what to say beside an explanation: what failed, or all of a run where nothing could be explained."""
    return failures(found.summary) if found.anatomies else brief(found)


def _training(found: Findings) -> str:
    """Return the headline table, also of nothing at all; none where sizes alone were measured."""
    return training.training(found.plain) if _has_steps(found) else ""


def _has_steps(found: Findings) -> bool:
    return bool(found.plain.rows or not found.summary.rows)


def _page(*sections: str) -> str:
    return "\n\n".join(section for section in sections if section) + "\n"
