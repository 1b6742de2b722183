"""The page of a plain run: who is fastest, what variants cost or save, and what was measured besides."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from kerasbench import variants
from kerasbench.analysis.contrasts import between
from kerasbench.analysis.metrics import METRICS
from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.modes.run import RunSettings
from kerasbench.protocol.columns import Column
from kerasbench.report import answer, contrasts, data, details, feeds, generation, memory
from kerasbench.report.document import Document, Winner
from kerasbench.report.sections import Section
from kerasbench.report.teller import Brief, Builder, ModeReport, Told
from kerasbench.report.warnings import Marks
from kerasbench.report.words import names
from kerasbench.results.run import RunConfig

UNFOLDED: dict[str, Builder] = {
    "published_epochs": details.published_epochs,
    "feeds": feeds.section,
    "calls": details.calls,
    "new_tokens": generation.new_tokens,
    "exported": details.exported,
    "devices": contrasts.devices,
    **{variant.name: partial(contrasts.beside, variant) for variant in variants.ALL if variant.beside},
}
FOLDED: dict[str, Builder] = {
    "prediction": details.predictions,
    "starting": details.starting,
    "memory": memory.by_phase,
    "beside_published": details.beside_published,
    "sessions": details.sessions,
}


class RunReport(ModeReport):
    settings_type = RunSettings

    @property
    def quoted(self) -> dict[str, Builder]:
        plain: dict[str, Builder] = {"answer": partial(answer.section, marks=Marks()), "kinds": answer.kinds}
        return plain | UNFOLDED | FOLDED | {"failures": details.failures}

    def words(self, config: RunConfig) -> list[str]:
        return [*config.scenarios]

    def title(self, summary: Summary) -> str:
        return "" if summary.sized.rows and not summary.plain.rows else answer.title(summary)

    def sections(self, summary: Summary, marks: Marks) -> Iterator[Section]:
        yield from filter(None, [answer.section(summary, marks)])
        yield from filter(None, (build(summary) for build in UNFOLDED.values()))

    def details(self, summary: Summary) -> Iterable[Section]:
        return filter(None, (build(summary) for build in FOLDED.values()))

    def sentences(self, summary: Summary) -> list[str]:
        lines = answer.sentences(summary)
        return [f"{answer.title(summary)}.", *lines] if len(lines) > 1 else lines

    def briefs(self, summary: Summary) -> Iterator[Brief]:
        called = names(summary.columns)
        for row, ranking in summary.plain.ranked:
            yield row, "", answer.in_brief(row, ranking, called)

    def contrasts(self, summary: Summary) -> Told:
        for row, ranking, fastest in _ranked(summary):
            for column in row.cases:
                for metric in METRICS if column != fastest else ():
                    contrast = ranking.over_fastest(column) if metric.name == row.headline else None
                    if contrast is None and metric.unit and not metric.difference:
                        contrast = between(row, column, fastest, metric.name)
                    if contrast is not None:
                        yield contrast, {}
        yield from ((other, {}) for other in (*summary.speed_ups, *chain(*summary.besides.values())))
        controls = [ranking.control for ranking in summary.rankings if ranking.control is not None]
        yield from ((control, {"is_control": True}) for control in controls)

    def data(self, summary: Summary) -> Document:
        winners = []
        for row, ranking, fastest in _ranked(summary):
            is_clear = ranking.winner is not None
            winners.append(Winner(**data.of_key(row.key(fastest)), metric=row.headline, clearly=is_clear))
        return Document(fastest=winners)


def _ranked(summary: Summary) -> Iterator[tuple[Row, Ranking, Column]]:
    for row, ranking in summary.ranked:
        if ranking.fastest is not None and not row.origin.config.paired:
            yield row, ranking, ranking.fastest
