"""What a page says of feeds."""

import dataclasses

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import FeedAlone, Measurement, Samples, Slice
from kerasbench.protocol.stages import FEED
from kerasbench.report import feeds
from kerasbench.report.sections import Section
from tests import made
from tests.made import JAX, TORCH


def by_grain(workers: int | None = None) -> Column:
    return Column("jax", "cpu", Options(feed="grain", workers=workers))


def page(waiting: dict[Column, float]) -> Section | None:
    """Return the section on columns whose steps of 2 ms wait for such a share of their time."""
    measured = made.in_blocks(dict.fromkeys(waiting, 2.0), made.steps)
    return feeds.section(
        summarize(made.record(*(made.changed(t, measurement=fed(t.measurement, waiting[t.column])) for t in measured)))
    )


def fed(whole: Measurement | None, waiting: float) -> dict[str, object]:
    assert whole is not None
    ready = FeedAlone([(1 - waiting) * 2.0 * made.MS] * 6)
    return {"samples": {**whole.samples, FEED: Samples.of([Slice(50, 50 * made.MS)] * 6)}, "feed": ready}


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        ({by_grain(): 0.8, by_grain(2): 0.05}, ["dense on JAX (grain): from 2 workers on a step waits for less than"]),
        (
            {by_grain(): 0.05, by_grain(2): 0.05},
            ["dense on JAX (grain): without workers, too, a step"],
        ),
        ({by_grain(): 0.05, by_grain(2): 0.8}, ["dense on JAX (grain): with 2 workers a step still waits for 80 %"]),
        ({by_grain(): 0.8, JAX: 0.0}, []),
    ],
)
def test_a_page_says_from_which_number_of_workers_on_no_step_waits(
    waiting: dict[Column, float], said: list[str]
) -> None:
    section = made.known(page(waiting))
    assert [line[: len(text)] for line, text in zip(section.lines, said, strict=True)] == said


def test_each_feed_is_a_line_and_each_backend_a_column() -> None:
    section = made.known(page({JAX: 0.5, by_grain(): 0.5, TORCH: 0.5}))
    table = made.known(section.table)
    assert list(table.columns) == ["workload", "feed", "JAX", "PyTorch"]
    assert [[cell.text for cell in row[:2]] for row in table.rows] == [["dense", "arrays"], ["dense", "grain"]]
    assert [cell.text[:7] for cell in table.rows[1][2:]] == ["1.00 ms", "–"]
    plain = dataclasses.replace(made.trial(1), measurement=made.steps(2.0))
    assert feeds.section(summarize(made.record(plain))) is None
