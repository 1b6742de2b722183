import dataclasses
from collections.abc import Sequence

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.analysis.summary import Disturbance, concerns, disturbance, is_warned, summarize
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import DEFAULT, Column, Options
from kerasbench.protocol.measurement import Measurement, Parity, Slice, Slices
from kerasbench.protocol.messages import Code
from kerasbench.report import answer, page
from kerasbench.results.record import Record, RunConfig, TrialRecord
from tests import made

TRAINING = "train_step_ms"


def rounds(**steps_ms: list[float]) -> Record:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step_ms=step, overhead_ms=0.001))
        for backend, values in steps_ms.items()
        for index, step in enumerate(values, start=1)
    ]
    return made.record(*trials, rounds=3)


def test_a_case_is_the_geometric_mean_of_its_trials() -> None:
    (row,) = summarize(rounds(torch=[1.0, 2.0, 4.0])).rows
    found = row.cases[Column("torch", "cpu")].estimate(TRAINING)
    assert found is not None
    assert round(found.value, 3) == 2.0
    assert found.trials == 3


JAX, TENSORFLOW, TORCH = (Column(name, "cpu") for name in ("jax", "tensorflow", "torch"))


@pytest.mark.parametrize(
    ("steps_ms", "fastest", "level", "proven"),
    [
        ({"jax": [1.0, 1.01, 0.99], "torch": [2.0, 2.02, 1.98]}, JAX, [], True),
        ({"jax": [1.0, 1.1, 0.9], "tensorflow": [1.01, 1.0, 1.0], "torch": [2.0, 2.2, 1.8]}, JAX, [TENSORFLOW], True),
        ({"torch": [1.0, 1.0, 1.0]}, None, [], False),  # alone
        ({"jax": [1.0], "torch": [2.0]}, JAX, [], False),  # one round proves nothing
    ],
)
def test_who_is_fastest(
    steps_ms: dict[str, list[float]], fastest: Column | None, level: list[Column], proven: bool
) -> None:
    (ranking,) = summarize(rounds(**steps_ms)).rankings
    assert (ranking.fastest, ranking.level, ranking.proven) == (fastest, level, proven)


def test_a_round_that_was_not_completed_is_left_out_unless_there_is_no_other() -> None:
    record = made.record(made.trial(1), made.trial(2), made.trial(3, failure=made.FAILURE), rounds=1)
    (row,) = summarize(record).rows
    assert len(row.cases[Column("torch", "cpu")].trials) == 1
    assert row.cases[Column("torch", "cpu")].failure is made.FAILURE
    (row,) = summarize(made.record(made.trial(1), rounds=0)).rows
    assert len(row.cases[Column("torch", "cpu")].trials) == 1


def test_a_failed_case_has_no_number_though_it_had_trials() -> None:
    summary = summarize(made.record(made.trial(1), made.trial(2, failure=made.FAILURE)))
    (row,) = summary.rows
    assert row.cases[Column("torch", "cpu")].estimate(TRAINING) is None
    assert [(row.label, column, failure.code) for row, column, failure in summary.failures] == [
        ("dense", Column("torch", "cpu"), "crash")
    ]
    assert summary.rankings[0].fastest is None


def test_a_column_that_computes_something_else_is_a_failure_and_no_winner() -> None:
    other = made.measurement(step_ms=0.1, losses=(2.3, 2.5, 2.1, 2.0, 1.9, 1.8))
    record = made.record(
        made.trial(backend="jax", found=other), made.trial(backend="tensorflow"), made.trial(backend="torch")
    )
    summary = summarize(record)
    ((_, column, failure),) = summary.failures
    assert (column, failure.code) == (Column("jax", "cpu"), Code.PARITY)
    assert "the loss of step 2 is 2.5, the median of all 2.2" in failure.cause
    assert summary.rankings[0].fastest == Column("tensorflow", "cpu")


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


@pytest.mark.parametrize(("processors", "where"), [("0,2", " on processors 0,2"), ("4", " on processor 4"), ("", "")])
def test_where_threads_were_chosen_the_terms_say_where_they_ran(processors: str, where: str) -> None:
    found = made.measurement()
    found = dataclasses.replace(found, resolved=dataclasses.replace(found.resolved, processors=processors))
    two = dataclasses.replace(DEFAULT, threads=2)
    summary = summarize(made.record(made.trial(found=found), made.trial(found=found, options=two)))
    terms = "not jit-compiled, float32, float32 products ieee, channels_last, 2 threads"
    assert summary.terms == {
        Column("torch", "cpu"): [terms],
        Column("torch", "cpu", Options(threads=2)): [terms + where],
    }


def blocks(*found: tuple[int, int, str]) -> Record:
    """Trials of round, block and backend."""
    trials = [made.in_block(block, made.sliced([1.0]), round_index=index, backend=name) for index, block, name in found]
    return made.record(*trials, rounds=1)


def had(record: Record) -> dict[str, list[int]]:
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


def versions_in_turn(rounds: dict[str, int], versus: list[str]) -> Record:
    """Two labels of each backend in blocks of their own, so many rounds of each backend."""
    trials = [
        made.in_block(
            100 * number + index,
            made.sliced([1.0]),
            round_index=index,
            backend=backend,
            options=Options(environment=label),
        )
        for number, (backend, many) in enumerate(rounds.items())
        for index in range(1, many + 1)
        for label in ("old", "new")
    ]
    found = made.record(*trials, rounds=max(rounds.values()))
    return dataclasses.replace(found, config=RunConfig(versus=versus))


def test_versions_of_each_backend_have_as_many_rounds_as_they_needed() -> None:
    rounds = {"jax": 3, "torch": 5}
    for versus, counted in ((["old", "new"], rounds), ([], {"jax": 3, "torch": 3})):
        (row,) = summarize(versions_in_turn(rounds, versus)).rows
        found = {column.backend: len(case.trials) for column, case in row.cases.items()}
        assert found == counted, versus


def test_what_the_interval_shows_already_is_a_warning_without_a_mark() -> None:
    trials = [made.trial(index, found=made.measurement(step)) for index, step in enumerate((1.0, 1.3, 1.6), start=1)]
    summary = summarize(made.record(*trials, rounds=3))
    assert [(one.what, one.row, one.columns) for one in concerns(summary)] == [
        (WarningKind.SCATTERED, "dense", [Column("torch", "cpu")])
    ]
    assert not is_warned(summary.rows[0], Column("torch", "cpu"))


def test_a_row_that_left_something_out_for_slow_steps_says_what() -> None:
    sizes = dataclasses.replace(made.SIZES, step_ns=5_200_000_000, left_out=["epoch", "predict_all"])
    trials = [made.trial(found=dataclasses.replace(made.measurement(), sizes=one)) for one in (made.SIZES, sizes)]
    assert [one for one in concerns(summarize(made.record(*trials[:1]))) if one.what is WarningKind.SLOW] == []
    (said,) = [one for one in concerns(summarize(made.record(*trials[1:]))) if one.what is WarningKind.SLOW]
    assert said.detail == "without what an epoch costs beyond its steps, passes of predict: one takes 5.2 s"


def test_other_versions_of_keras_are_warned_of_but_not_between_labels() -> None:
    def warned(*labels: str) -> list[str]:
        trials = []
        for version, label in enumerate(labels):
            found = made.measurement()
            resolved = dataclasses.replace(found.resolved, versions={"keras": f"3.{version}"})
            changed = dataclasses.replace(found, resolved=resolved)
            backend = "torch" if version else "jax"
            trials.append(made.trial(backend=backend, found=changed, options=Options(environment=label)))
        summary = summarize(made.record(*trials))
        return [one.detail for one in concerns(summary) if one.what is WarningKind.VERSIONS]

    assert warned("", "") == ["keras 3.0", "keras 3.1"]
    assert warned("", "new") == warned("old", "new") == []


CORES = made.MACHINE.cores


def measured(step_ms: float, slower: float, hit: Sequence[int], cycles: int = 12, cores: float = 1.0) -> Measurement:
    """Slices of one column, of which some are disturbed: others take so many cores there, and it so much longer."""
    whole = made.measurement(step_ms)
    ns = int(50 * step_ms * made.MS)
    slices = Slices.of(
        Slice(50, int(ns * slower), cycle, 0, ns, int(ns * slower * cores), 0, None, disturbed=True)
        if cycle in hit
        else Slice(50, ns, cycle, 0, ns, 0, 0)
        for cycle in range(cycles)
    )
    epochs = Slices.of(Slice(1, int(2 * step_ms * made.MS), cycle, 0) for cycle in range(cycles))
    return dataclasses.replace(whole, training=dataclasses.replace(made.trained(whole), slices=slices, epochs=epochs))


def trial(block: int, backend: str, found: Measurement) -> TrialRecord:
    return dataclasses.replace(made.trial(block, backend=backend, found=found), block=block)


def found_in(hit: Sequence[int], blocks: int = 1, slower: float = 6.0) -> Findings:
    trials = [
        trial(block, backend, measured(step_ms, factor, hit))
        for block in range(1, blocks + 1)
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, slower))
    ]
    return findings(made.record(*trials, rounds=blocks))


def test_a_few_disturbed_cycles_are_left_out_of_the_ratio_and_the_row_is_decided() -> None:
    found = found_in(range(4))
    (ranking,) = found.plain.rankings
    assert not ranking.disturbed
    assert ranking.first == Column("jax", "cpu")
    assert ranking.comparisons[0].ratio.inverse.value == pytest.approx(3.0)


def test_where_too_few_are_left_nobody_is_fastest_and_the_sentence_says_why() -> None:
    found = found_in(range(7))
    (ranking,) = found.plain.rankings
    assert ranking.disturbed
    assert (ranking.first, ranking.level) == (None, [])
    (said,) = answer.sentences(found)
    assert said.startswith("dense: JAX looks fastest, ")
    assert "⚠ Not decided: other processes used 50% of this machine; torch suffers most from that (6 times as" in said
    assert said.endswith("Close them and run again.")
    text = page.document(found)
    assert "**1." not in text
    assert "Not decided: other processes used the processors: dense. Remedy: close other programs and run" in text


def test_blocks_without_disturbance_decide_alone() -> None:
    trials = [
        trial(block, backend, measured(step_ms, factor, hit))
        for block, hit in ((1, range(12)), (2, ()), (3, ()), (4, ()))
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, 6.0))
    ]
    (ranking,) = findings(made.record(*trials, rounds=4)).plain.rankings
    assert not ranking.disturbed
    assert ranking.comparisons[0].ratio.trials == 3
    assert ranking.comparisons[0].ratio.inverse.value == pytest.approx(3.0)


def test_where_most_of_enough_rounds_were_disturbed_the_remedy_is_a_quieter_machine() -> None:
    trials = [
        trial(block, backend, measured(step_ms, factor, range(12) if block < 4 else ()))
        for block in range(1, 6)
        for backend, step_ms, factor in (("jax", 1.0, 1.0), ("torch", 3.0, 6.0))
    ]
    summary = summarize(made.record(*trials, rounds=5))
    assert summary.rankings[0].by_slices
    kinds = {one.what for one in concerns(summary)}
    assert kinds & {WarningKind.SLICES, WarningKind.DISTURBED} == {WarningKind.DISTURBED}


def test_who_suffers_most_is_said_only_where_it_was_measured() -> None:
    (all_hit,) = found_in(range(12)).plain.rows
    assert disturbance(all_hit, CORES) == Disturbance(1 / CORES)
    (none_hit,) = found_in(()).plain.rows
    assert disturbance(none_hit, CORES) is None
    (alike,) = found_in(range(7), slower=1.1).plain.rows
    even = disturbance(alike, CORES)
    assert even is not None
    assert even.share == pytest.approx(1 / CORES)
    assert even.slowed is None
