"""The workloads of a page in groups, by kind of model, and who is clearly fastest on each."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kerasbench.analysis.rankings import Ranking
from kerasbench.analysis.rows import Row
from kerasbench.analysis.summary import Summary
from kerasbench.protocol.columns import Column
from kerasbench.report.words import verb

Key = TypeVar("Key")
Value = TypeVar("Value")
Ranked = Sequence[tuple[Row, Ranking]]

FEW = 4  # workloads that a title can name
KINDS = {  # of models, in the order of pages
    "cnn": "image CNNs",
    "cnn1d": "1-D CNNs",
    "dense": "dense networks",
    "recurrent": "recurrent networks",
    "transformer": "transformers",
    "layer": "single layers",
    "other": "other models",
}
ONE_STEP = "one step per epoch †"


def has_one_step(row: Row) -> bool:  # which has the fixed cost of an epoch in it
    return row.workload.steps == 1 and verb([row]) == "trains" and row.size is None


def model_kind(row: Row) -> str:
    return KINDS.get(row.scenario.kind, KINDS["other"])


def kind_of(row: Row) -> str:
    return f"{model_kind(row).removesuffix(' networks')}, {ONE_STEP}" if has_one_step(row) else model_kind(row)


def ordered(summary: Summary) -> Ranked:
    """Return the workloads by kind of model; those with one step per epoch are last."""
    order = [*KINDS.values()]
    return sorted(summary.ranked, key=lambda pair: (has_one_step(pair[0]), order.index(model_kind(pair[0]))))


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def by_kind(ranked: Ranked) -> dict[str, list[tuple[Row, Ranking]]]:
    return grouped((kind_of(row), (row, ranking)) for row, ranking in ranked)


def compared(summary: Summary) -> Ranked:
    return [(row, ranking) for row, ranking in ordered(summary) if ranking.others]


def relative(ranking: Ranking, column: Column) -> float | None:
    """Return how many times as long as the fastest a configuration takes; None where that is not known or believed."""
    if not ranking.believed:
        return None
    if column == ranking.fastest:
        return 1.0
    contrast = ranking.over_fastest(column)
    return contrast.ratio.value if contrast else None
