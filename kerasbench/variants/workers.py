"""``--workers``: how many threads or processes of a feed make batches."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.runners.feeders import FEEDERS
from kerasbench.text import count
from kerasbench.variants.variant import CaseFacts, Refusal, Variant

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed

MOST = 4  # that are tried: each is a process with a copy of what it imports
WITH_WORKERS = [name for name, feeder in FEEDERS.items() if feeder.workers]


def without_feed(column: Column) -> Column:
    """Return the column that gives `fit` arrays, and is the same else."""
    return column.with_options(feed=None, workers=None)


class Workers(Variant[int]):
    name = "workers"
    metavar = "N"
    help = "How many workers a --feed has: processes, of pydataset threads. Default: 0, the process itself."
    tried, crossed, last, trains = True, True, True, True

    def parse(self, words: Sequence[str]) -> list[int | None]:
        for word in words:
            if not word.isdecimal():
                raise ValueError(f"takes whole numbers from 0 on, not {word!r}")
        return [int(word) or None for word in words]

    def word(self, value: int | None) -> str:
        return str(value or 0)

    def describe(self, value: int, backend: str) -> str:
        return count(value, "worker")

    def candidates(self, facts: CaseFacts) -> list[int]:
        reads = facts.workload.on_disk and facts.options.get("feed") in WITH_WORKERS
        return [min(facts.processors, MOST)] if reads and facts.processors > 1 else []

    def goes_with(self, options: Options) -> bool:
        return self.name not in options or options.get("feed") in WITH_WORKERS

    def refusal(self, value: int, facts: CaseFacts) -> Refusal:
        if self.goes_with(facts.options):
            return None
        feed = facts.options.get("feed", "arrays")
        named = f"{', '.join(WITH_WORKERS[:-1])} or {WITH_WORKERS[-1]}"
        return f"the feed {feed} has no workers", f"add --feed {named}, or leave out --workers"

    def remade(self, value: int, model: Any, feed: "Feed") -> "tuple[Any, Feed]":
        return model, dataclasses.replace(feed, workers=value)

    def ran_as(self, value: int, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.workers == value else str(resolved.workers)
