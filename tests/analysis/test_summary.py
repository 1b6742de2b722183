import dataclasses
from collections.abc import Sequence

import pytest

from kerasbench.analysis.findings import Findings
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import DEFAULT, Column, Options
from kerasbench.protocol.measurement import Measurement, Parity, Samples, Slice
from kerasbench.protocol.messages import Code
from kerasbench.results.run import Run
from tests import made
from tests.records import NEW, OLD, of_versions
from tests.records import versions as trials

TRAINING = "train_step_ms"
JAX, TENSORFLOW, TORCH = (Column(name, "cpu") for name in ("jax", "tensorflow", "torch"))


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
    trials = [one for backend, each in steps_ms.items() for one in made.in_rounds(*each, backend=backend)]
    (ranking,) = summarize(made.record(*trials, rounds=3)).rankings
    assert (ranking.fastest, ranking.proven) == (fastest, proven)


def test_a_round_that_was_not_completed_is_left_out_unless_there_is_no_other() -> None:
    record = made.record(made.trial(1), made.trial(2), made.trial(3, failure=made.FAILURE), rounds=1)
    (row,) = summarize(record).rows
    assert len(row.cases[TORCH].trials) == 1
    assert row.cases[TORCH].failure is made.FAILURE
    (row,) = summarize(made.record(made.trial(1), rounds=0)).rows
    assert len(row.cases[TORCH].trials) == 1


def test_a_failed_case_has_no_number_though_it_had_trials() -> None:
    summary = summarize(made.record(made.trial(1), made.trial(2, failure=made.FAILURE)))
    (row,) = summary.rows
    assert row.cases[TORCH].estimate(TRAINING) is None
    assert [(row.label, column, failure.code) for row, column, failure in summary.failures] == [
        ("dense", TORCH, "crash")
    ]
    assert summary.rankings[0].fastest is None


def test_a_column_that_computes_something_else_is_a_failure_and_no_winner() -> None:
    other = made.measurement(step_ms=0.1, losses=(2.3, 2.5, 2.1, 2.0, 1.9, 1.8))
    record = made.record(
        made.trial(backend="jax", found=other), made.trial(backend="tensorflow"), made.trial(backend="torch")
    )
    summary = summarize(record)
    ((_, column, failure),) = summary.failures
    assert (column, failure.code) == (JAX, Code.PARITY)
    assert "the loss of step 2 is 2.5, the median of all 2.2" in failure.cause
    assert summary.rankings[0].fastest == TENSORFLOW


def test_outputs_are_compared_by_the_first_round_which_alone_has_them() -> None:
    def predicting(*outputs: float) -> Measurement:
        return dataclasses.replace(made.measurement(), parity=Parity([2.3], [], [list(outputs)] if outputs else []))

    trials = [made.trial(1, backend="jax", found=predicting(1.0, 2.0)), made.trial(1, found=predicting(1.0, 2.1))]
    for index in (2, 3):
        trials += [made.trial(index, backend=backend, found=predicting()) for backend in ("jax", "torch")]
    failures = summarize(made.record(*trials, rounds=3)).failures
    assert [(column.backend, failure.code) for _, column, failure in failures] == [
        ("jax", Code.PARITY),
        ("torch", Code.PARITY),
    ]


@pytest.mark.parametrize(("processors", "where"), [("0,2", " on CPU 0,2"), ("4", " on CPU 4"), ("", "")])
def test_where_threads_were_chosen_the_terms_say_where_they_ran(processors: str, where: str) -> None:
    found = made.changed(made.measurement(), resolved={"processors": processors})
    two = dataclasses.replace(DEFAULT, threads=2)
    summary = summarize(made.record(made.trial(found=found), made.trial(found=found, options=two)))
    terms = "not jit-compiled, float32, channels_last, 2 threads"
    assert summary.terms == {TORCH: [terms], Column("torch", "cpu", Options(threads=2)): [terms + where]}


def blocks(*found: tuple[int, int, str]) -> Run:
    """Trials of round, block and backend."""
    trials = [made.in_block(block, made.sliced([1.0]), round_index=index, backend=name) for index, block, name in found]
    return made.record(*trials, rounds=1)


def had(record: Run) -> dict[str, list[int]]:
    """Return the blocks of each backend that count."""
    (row,) = summarize(record).rows
    return {column.backend: [trial.block for trial, _ in case.trials] for column, case in row.cases.items()}


def test_a_row_that_took_turns_counts_the_rounds_in_which_it_had_all_its_columns() -> None:
    assert had(blocks((1, 1, "jax"), (1, 1, "torch"), (2, 2, "jax"), (2, 2, "torch"))) == {
        "jax": [1, 2],
        "torch": [1, 2],
    }
    assert had(blocks((1, 1, "jax"), (1, 1, "torch"), (2, 2, "jax"))) == {"jax": [1], "torch": [1]}
    assert had(blocks((1, 1, "jax"))) == {"jax": [1]}


def test_a_column_that_failed_is_not_waited_for() -> None:
    record = blocks((1, 1, "jax"), (1, 1, "torch"), (2, 2, "jax"), (3, 3, "jax"))
    record.trials.append(dataclasses.replace(made.trial(2, failure=made.FAILURE), block=2))
    assert had(record)["jax"] == [1, 2, 3]


def test_a_column_has_a_trial_in_each_block_of_a_round() -> None:
    record = blocks((1, 1, "jax"), (1, 1, "torch"), (1, 2, "jax"), (1, 2, "tensorflow"))
    assert had(record) == {"jax": [1, 2], "torch": [1], "tensorflow": [2]}
    (row,) = summarize(record).rows
    assert (row.in_turn, row.rounds) == (True, 1)


def test_cases_of_the_published_protocol_have_as_many_rounds_as_each_needed() -> None:
    record = blocks((1, 1, "jax"), (1, 2, "torch"), (2, 3, "torch"))
    record.rounds_completed = 2
    record.trials = [dataclasses.replace(one, protocol="published") for one in record.trials]
    assert had(record) == {"jax": [1], "torch": [2, 3]}
    assert not summarize(record).rows[0].in_turn


def test_rows_end_at_different_rounds() -> None:
    short = blocks((1, 1, "jax"), (1, 1, "torch"))
    long = [
        made.in_block(10 + index, made.sliced([1.0]), round_index=index, name="other", backend=backend)
        for index in (1, 2, 3, 4)
        for backend in ("jax", "torch")
    ]
    rows = summarize(made.record(*short.trials, *long, rounds=4)).rows
    assert [row.rounds for row in rows] == [1, 4]


def test_versions_of_each_backend_have_as_many_rounds_as_they_needed() -> None:
    two = {OLD: {"step_ms": 1.0}, NEW: {"step_ms": 1.0}}
    run = of_versions(*trials(two, "jax", blocks=3), *trials(two, blocks=5))
    for versus, counted in ((["old", "new"], {"jax": 3, "torch": 5}), ([], {"jax": 3, "torch": 3})):
        (row,) = summarize(made.changed(run, config={"versus": versus})).rows
        found = {column.backend: len(case.trials) for column, case in row.cases.items()}
        assert found == counted, versus


def test_rounds_that_differ_much_are_a_warning() -> None:
    summary = summarize(made.record(*made.in_rounds(1.0, 1.3, 1.6), rounds=3))
    (found,) = concerns(summary)
    assert (found.what, found.row, found.columns) == (WarningKind.SCATTERED, "dense", [TORCH])


def test_a_row_that_left_something_out_for_slow_steps_says_what() -> None:
    sizes = dataclasses.replace(made.SIZES, step_ns=5_200_000_000, left_out=["epoch", "predict_all", "naps"])
    trials = [made.trial(found=dataclasses.replace(made.measurement(), sizes=one)) for one in (made.SIZES, sizes)]
    assert [one for one in concerns(summarize(made.record(*trials[:1]))) if one.what is WarningKind.SLOW] == []
    (said,) = [one for one in concerns(summarize(made.record(*trials[1:]))) if one.what is WarningKind.SLOW]
    assert said.detail == "left out: the fixed cost of an epoch, passes of predict, naps; one step takes 5.2 s"


@pytest.mark.parametrize(
    ("vanishing", "pages", "said"),
    [
        (None, 0, []),
        (0.1, 1_000, []),  # 20 pages a step of 2 ms: 1 % of it
        (0.5, 0, [(WarningKind.SUBNORMALS, "by about 15 %")]),  # 50,000 numbers at 6 ns, of a step of 2 ms
        (None, 60_000, [(WarningKind.PAGES, "1,200 pages, about 60 % of its time")]),
    ],
)
def test_what_makes_plain_scripts_slower_or_this_one_is_a_warning(
    vanishing: float | None, pages: int, said: list[tuple[WarningKind, str]]
) -> None:
    slices = Samples.of([Slice(50, 100_000_000, page_faults=pages)] * 10)
    found = made.measurement()
    training = dataclasses.replace(made.trained(found), slices=slices)
    resolved = dataclasses.replace(found.resolved, subnormals="flushed")
    found = dataclasses.replace(found, training=training, vanishing=vanishing, resolved=resolved, parameters=100_000)
    trial = made.trial(found=found)
    summary = summarize(made.record(trial))
    told = {WarningKind.SUBNORMALS, WarningKind.PAGES}
    assert [(one.what, one.detail) for one in concerns(summary) if one.what in told] == said


def test_other_versions_of_keras_are_warned_of_but_not_between_labels() -> None:
    def warned(*labels: str) -> list[str]:
        trials = []
        for version, label in enumerate(labels):
            found = made.changed(made.measurement(), resolved={"versions": {"keras": f"3.{version}"}})
            backend = "torch" if version else "jax"
            trials.append(made.trial(backend=backend, found=found, options=Options(environment=label)))
        summary = summarize(made.record(*trials))
        return [one.detail for one in concerns(summary) if one.what is WarningKind.VERSIONS]

    assert warned("", "") == ["keras 3.0", "keras 3.1"]
    assert warned("", "new") == warned("old", "new") == []


def measured(step_ms: float, slower: float, hit: Sequence[int], cycles: int = 12) -> Measurement:
    """Slices of one column, of which some are disturbed: others take a core there, and it so much longer."""
    ns = int(50 * step_ms * made.MS)
    slices = Samples.of(
        Slice(50, int(ns * slower), cycle, 0, ns, int(ns * slower), 0, None, disturbed=True)
        if cycle in hit
        else Slice(50, ns, cycle, 0, ns, 0, 0)
        for cycle in range(cycles)
    )
    epochs = Samples.of(Slice(1, int(2 * step_ms * made.MS), cycle, 0) for cycle in range(cycles))
    return made.changed(made.measurement(step_ms), training={"slices": slices, "epochs": epochs})


def found_in(*hits: Sequence[int]) -> Findings:
    """Blocks of JAX and torch, in each of which others disturbed these cycles, and torch took six times as long."""
    trials = [
        made.in_block(block, measured(step_ms, factor, hit), backend=backend)
        for block, hit in enumerate(hits, start=1)
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, 6.0))
    ]
    return Findings.of(made.record(*trials, rounds=len(hits)))


@pytest.mark.parametrize(
    ("hits", "first", "trials"),
    [([range(4)], JAX, 1), ([range(7)], None, 1), ([range(12), (), (), ()], JAX, 3)],
    ids=["a few cycles", "too many cycles", "one of four blocks"],
)
def test_disturbed_cycles_and_blocks_are_left_out_where_enough_are_left(
    hits: list[Sequence[int]], first: Column | None, trials: int
) -> None:
    found = found_in(*hits)
    (ranking,) = found.plain.rankings
    ratio = ranking.others[0].ratio
    assert (ranking.disturbed, ranking.first, ratio.trials) == (first is None, first, trials)
    assert (ratio.value == pytest.approx(3.0)) is (first is JAX)
    assert any(warned.what is WarningKind.UNDECIDED for warned in concerns(found.summary)) is ranking.disturbed


def test_where_most_of_enough_rounds_were_disturbed_the_remedy_is_a_quieter_machine() -> None:
    summary = found_in(*[range(12)] * 3, (), ()).summary
    assert summary.rankings[0].by_slices
    kinds = {one.what for one in concerns(summary)}
    assert kinds & {WarningKind.SLICES, WarningKind.DISTURBED} == {WarningKind.DISTURBED}
