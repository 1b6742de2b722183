import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Column, Options
from kerasbench.protocol.measurement import Parity, Samples, Slice
from kerasbench.protocol.messages import Code
from kerasbench.results.run import Run
from tests import made
from tests.made import JAX, TORCH
from tests.records import NEW, OLD, of_versions, versions

LAYOUT = TORCH.with_options(layout="channels_first")


@pytest.mark.parametrize(
    ("steps_ms", "fastest", "proven"),
    [
        ({"jax": [1.0, 1.01, 0.99], "torch": [2.0, 2.02, 1.98]}, JAX, True),
        ({"jax": [1.0, 1.1, 0.9], "tensorflow": [1.01, 1.0, 1.0], "torch": [2.0, 2.2, 1.8]}, JAX, True),
        ({"torch": [1.0, 1.0, 1.0]}, None, False),  # alone
        ({"jax": [1.0], "torch": [2.0]}, JAX, False),  # one round proves nothing
    ],
)
def test_who_is_fastest(steps_ms: dict[str, list[float]], fastest: Column | None, proven: bool) -> None:
    trials = [trial for backend, ms in steps_ms.items() for trial in made.in_rounds(*ms, backend=backend)]
    (ranking,) = summarize(made.record(*trials, rounds=3)).rankings
    assert (ranking.fastest, ranking.proven) == (fastest, proven)


@pytest.mark.parametrize("asked", [[TORCH], [TORCH, LAYOUT]])
def test_a_setting_that_nobody_asked_for_and_that_cannot_be_had_is_no_failure(asked: list[Column]) -> None:
    unsupported = dataclasses.replace(made.FAILURE, code=Code.UNSUPPORTED)
    trials = [made.trial(failure=unsupported, options=column.options) for column in (TORCH, LAYOUT)]
    config = {"options": [column.options for column in asked]}
    summary = summarize(made.changed(made.record(*trials), config=config))
    assert [column for _, column, _ in summary.failures] == asked


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_round_that_was_not_completed_is_left_out_unless_there_is_no_other(rounds: int) -> None:
    (row,) = summarize(made.record(made.trial(1), *[made.trial(2)] * rounds, rounds=rounds)).rows
    assert len(row.cases[TORCH].trials) == 1


def test_outputs_are_compared_by_the_first_round_which_alone_has_them() -> None:
    trials = []
    for index, outputs in ((1, {"jax": [[1.0, 2.0]], "torch": [[1.0, 2.1]]}), (2, {"jax": [], "torch": []})):
        for backend, numbers in outputs.items():
            predicting = dataclasses.replace(made.measurement(), parity=Parity([2.3], [], numbers))
            trials.append(made.trial(index, backend=backend, found=predicting))
    failures = summarize(made.record(*trials, rounds=2)).failures
    assert [(column, failure.code) for _, column, failure in failures] == [(JAX, Code.PARITY), (TORCH, Code.PARITY)]


@pytest.mark.parametrize(("processors", "where"), [("0,2", " on CPU 0,2"), ("4", " on CPU 4"), ("", "")])
def test_where_threads_were_chosen_the_terms_say_where_they_ran(processors: str, where: str) -> None:
    found = made.changed(made.measurement(), resolved={"processors": processors})
    two = Options(threads=2)
    summary = summarize(made.record(made.trial(found=found), made.trial(found=found, options=two)))
    terms = "not jit-compiled, float32, channels_last, 2 threads"
    assert summary.terms == {TORCH: [terms], Column("torch", "cpu", two): [terms + where]}


def blocks(*columns: tuple[int, int, str]) -> Run:
    """Trials by round, block and backends."""
    trials = [
        made.in_block(block, made.sliced([1.0]), round_index=index, backend=backend)
        for index, block, backends in columns
        for backend in backends.split()
    ]
    return made.record(*trials, rounds=1)


def had(record: Run) -> dict[str, list[int]]:
    """Return the blocks of each backend that count."""
    (row,) = summarize(record).rows
    return {column.backend: [trial.block for trial, _ in case.trials] for column, case in row.cases.items()}


@pytest.mark.parametrize(
    ("measured", "counted"),
    [
        (((1, 1, "jax torch"), (2, 2, "jax torch")), {"jax": [1, 2], "torch": [1, 2]}),
        (((1, 1, "jax torch"), (2, 2, "jax")), {"jax": [1], "torch": [1]}),
        (((1, 1, "jax"),), {"jax": [1]}),
        (((1, 1, "jax torch"), (1, 2, "jax tensorflow")), {"jax": [1, 2], "torch": [1], "tensorflow": [2]}),
    ],
)
def test_rounds_that_count_in_turn(measured: Sequence[tuple[int, int, str]], counted: dict[str, list[int]]) -> None:
    assert had(blocks(*measured)) == counted


def test_a_column_that_failed_is_not_waited_for() -> None:
    record = blocks((1, 1, "jax torch"), (2, 2, "jax"), (3, 3, "jax"))
    record.trials.append(dataclasses.replace(made.trial(2, failure=made.FAILURE), block=2))
    assert had(record)["jax"] == [1, 2, 3]


def test_cases_of_the_published_protocol_have_as_many_rounds_as_each_needed() -> None:
    record = blocks((1, 1, "jax"), (1, 2, "torch"), (2, 3, "torch"))
    record.rounds_completed = 2
    record.trials = [dataclasses.replace(trial, protocol="published") for trial in record.trials]
    assert had(record) == {"jax": [1], "torch": [2, 3]}
    assert not summarize(record).rows[0].in_turn


def test_rows_end_at_different_rounds() -> None:
    short = blocks((1, 1, "jax torch")).trials
    long = blocks(*[(index, 10 + index, "jax torch") for index in (1, 2, 3)]).trials
    other = [dataclasses.replace(trial, scenario="other") for trial in long]
    rows = summarize(made.record(*short, *other, rounds=3)).rows
    assert [row.rounds for row in rows] == [1, 3]


def test_versions_of_each_backend_have_as_many_rounds_as_they_needed() -> None:
    two = {OLD: {"step_ms": 1.0}, NEW: {"step_ms": 1.0}}
    run = of_versions(*versions(two, "jax", blocks=3), *versions(two, blocks=5))
    for paired, rounds in ((True, {"jax": 3, "torch": 5}), (False, {"jax": 3, "torch": 3})):
        counted = had(made.changed(run, config={"paired": paired}))
        assert {backend: len(numbers) for backend, numbers in counted.items()} == rounds


SLOW = dataclasses.replace(made.SIZES, step_ns=5_200_000_000, left_out=["epoch", "predict_all", "naps"])


def paged(page_faults: int) -> dict[str, Samples]:
    return {"train": Samples.of([Slice(50, 100 * made.MS, page_faults=page_faults)] * 10)}


@pytest.mark.parametrize(
    ("different", "said"),
    [
        ({"sizes": made.SIZES}, []),
        ({"sizes": SLOW}, ["left out: the fixed cost of an epoch, passes of predict, naps; one step takes 5.2 s"]),
        ({"vanishing": 0.1}, []),
        ({"vanishing": 0.5}, ["by about 15 %"]),  # 50,000 numbers at 6 ns, of a step of 2 ms
        ({"samples": paged(1_000)}, []),  # 20 pages a step of 2 ms: 1 % of it
        ({"samples": paged(60_000)}, ["1,200 pages, about 60 % of its time"]),
    ],
)
def test_what_makes_a_trial_slow_is_a_warning(different: dict[str, Any], said: list[str]) -> None:
    found = made.changed(made.measurement(), resolved={"subnormals": "flushed"}, parameters=100_000)
    warned = concerns(summarize(made.record(made.trial(found=made.changed(found, **different)))))
    kinds = {WarningKind.SLOW, WarningKind.SUBNORMALS, WarningKind.PAGES}
    assert [concern.detail for concern in warned if concern.what in kinds] == said


def disturbed(*hits: Sequence[int]) -> Summary:
    """Blocks of JAX and torch, of which others took a core in these cycles, and torch took six times as long."""
    trials = []
    for block, hit in enumerate(hits, start=1):
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, 6.0)):
            ns = int(50 * step_ms * made.MS)
            slices = Samples.of(
                Slice(50, int(ns * (factor if cycle in hit else 1)), cycle, 0, disturbed=cycle in hit)
                for cycle in range(12)
            )
            found = made.with_samples(made.sliced([step_ms] * 12, [2 * step_ms] * 12), train=slices)
            trials.append(made.in_block(block, found, backend=backend))
    return summarize(made.record(*trials, rounds=len(hits)))


@pytest.mark.parametrize(("hit", "first"), [(range(4), JAX), (range(7), None)])
def test_a_row_is_decided_without_disturbed_cycles_where_enough_are_left(hit: range, first: Column | None) -> None:
    summary = disturbed(hit)
    (ranking,) = summary.plain.rankings
    assert (ranking.winner, ranking.disturbed) == (first, first is None)
    assert (ranking.others[0].ratio.value == pytest.approx(3.0)) is (first is not None)
    kinds = {concern.what for concern in concerns(summary)}
    assert (WarningKind.UNDECIDED in kinds) is (first is None)


def test_blocks_without_disturbance_decide_alone() -> None:
    (ranking,) = disturbed(range(12), (), (), ()).plain.rankings
    ratio = ranking.others[0].ratio
    assert (ranking.disturbed, ratio.trials) == (False, 3) and ratio.value == pytest.approx(3.0)


def test_where_most_of_enough_rounds_were_disturbed_the_remedy_is_a_quieter_machine() -> None:
    summary = disturbed(*[range(12)] * 3, (), ())
    kinds = {concern.what for concern in concerns(summary)}
    assert kinds & {WarningKind.SLICES, WarningKind.DISTURBED} == {WarningKind.DISTURBED}
