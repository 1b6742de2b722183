from kerasbench.summary import standing, summarize
from tests import made

TRAINING = "train_step_ms"


def rounds(**steps_ms: list[float]) -> made.Record:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step_ms=step, overhead_ms=0.001))
        for backend, values in steps_ms.items()
        for index, step in enumerate(values, start=1)
    ]
    return made.record(*trials, rounds=3)


def test_a_cell_is_the_geometric_mean_of_its_trials() -> None:
    (row,) = summarize(rounds(torch=[1.0, 2.0, 4.0])).rows
    found = row.cells["torch", "cpu"].estimate(TRAINING)
    assert found is not None
    assert round(found.value, 3) == 2.0
    assert found.trials == 3


def test_a_clear_winner_stands_alone() -> None:
    (row,) = summarize(rounds(jax=[1.0, 1.01, 0.99], torch=[2.0, 2.02, 1.98])).rows
    place = standing(row, TRAINING)
    assert (place.fastest, place.level, place.proven) == (("jax", "cpu"), [], True)


def test_what_cannot_be_told_apart_is_level() -> None:
    (row,) = summarize(rounds(jax=[1.0, 1.1, 0.9], tensorflow=[1.01, 1.0, 1.0], torch=[2.0, 2.2, 1.8])).rows
    assert standing(row, TRAINING).level == [("tensorflow", "cpu")]


def test_one_cell_alone_is_no_winner() -> None:
    (row,) = summarize(rounds(torch=[1.0, 1.0, 1.0])).rows
    assert standing(row, TRAINING).fastest is None


def test_a_round_that_was_not_completed_is_left_out_unless_there_is_no_other() -> None:
    record = made.record(made.trial(1), made.trial(2), made.trial(3, failure=made.FAILURE), rounds=1)
    (row,) = summarize(record).rows
    assert len(row.cells["torch", "cpu"].trials) == 1
    assert row.cells["torch", "cpu"].failure is made.FAILURE
    (row,) = summarize(made.record(made.trial(1), rounds=0)).rows
    assert len(row.cells["torch", "cpu"].trials) == 1


def test_the_terms_of_a_column_are_those_that_its_children_found() -> None:
    assert summarize(rounds(torch=[1.0])).terms == {("torch", "cpu"): ["not jit-compiled, float32, 2 threads"]}


def test_one_round_proves_nothing() -> None:
    (row,) = summarize(rounds(jax=[1.0], torch=[2.0])).rows
    assert not standing(row, TRAINING).proven


def test_a_failed_cell_has_no_number_though_it_had_trials() -> None:
    summary = summarize(made.record(made.trial(1), made.trial(2, failure=made.FAILURE)))
    (row,) = summary.rows
    assert row.cells["torch", "cpu"].estimate(TRAINING) is None
    assert [(row.label, column, failure.code) for row, column, failure in summary.failures] == [
        ("dense", ("torch", "cpu"), "crash")
    ]
    assert standing(row, TRAINING).fastest is None


def test_phases_are_means_over_trials() -> None:
    summary = summarize(made.record(made.trial(1), made.trial(2)))
    assert summary.phases_s == {"spawn": {("torch", "cpu"): 0.001}, "import": {("torch", "cpu"): 0.003}}
