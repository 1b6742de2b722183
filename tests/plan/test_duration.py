import dataclasses
from pathlib import Path

from kerasbench.analysis.summary import summarize
from kerasbench.exchange.requests import Protocol
from kerasbench.plan import duration
from kerasbench.results import asked
from kerasbench.results.record import Record
from kerasbench.results.store import Store
from tests import made

TORCH, JAX = made.cell(backend="torch"), made.cell(backend="jax")
PLANNED = made.plan(JAX, TORCH)


def three_rounds(*, scatter: float) -> Record:
    """Two columns whose ratio scatters from round to round."""
    steps = {"jax": [1.0, 1.0, 1.0], "torch": [2 * (1 - scatter), 2.0, 2 * (1 + scatter)]}
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step, overhead_ms=0))
        for backend, values in steps.items()
        for index, step in enumerate(values, start=1)
    ]
    return made.record(*trials, rounds=3)


def test_scatter_is_what_pairing_by_rounds_leaves() -> None:
    found = duration.scatter_of(summarize(three_rounds(scatter=0.1)))
    assert found is not None
    assert 0.06 < found < 0.08  # the ratio has a standard deviation of 0.1, of which each column has 1 / sqrt(2)


def test_slices_of_one_trial_say_nothing_of_how_trials_scatter() -> None:
    summary = summarize(three_rounds(scatter=0.1))
    (standing,) = summary.standings
    (one,) = standing.comparisons
    sliced = dataclasses.replace(one, ratio=dataclasses.replace(one.ratio, basis="slices"))
    standings = [dataclasses.replace(standing, comparisons=[sliced])]
    assert duration.scatter_of(dataclasses.replace(summary, standings=standings)) is None


def test_too_few_rounds_tell_nothing() -> None:
    assert duration.scatter_of(summarize(made.record(made.trial(), made.trial(backend="jax")))) is None


def test_a_plan_recalls_the_machine_s_own_trials(tmp_path: Path) -> None:
    Store.create(tmp_path, "2026-01-02T03:04:05Z").finish(three_rounds(scatter=0.1))
    for name in ("2026-01-03.json", "a.json", "b.json"):
        (tmp_path / name).write_text("[")
    found = duration.recall(tmp_path, made.MACHINE, PLANNED)
    assert found.trial_s == {cell.key: 9.0 for cell in PLANNED.cells}
    assert found.source == "2026-01-02T030405.json"
    assert found.scatter is not None


def test_another_machine_s_results_say_nothing(tmp_path: Path) -> None:
    Store.create(tmp_path, "2026-01-02T03:04:05Z").finish(three_rounds(scatter=0.1))
    other = dataclasses.replace(made.MACHINE, chip="Chip 10")
    assert duration.recall(tmp_path, other, PLANNED) == duration.History()
    assert duration.recall(tmp_path / "gone", other, PLANNED) == duration.History()


def test_the_newest_run_says_how_much_trials_scatter(tmp_path: Path) -> None:
    for day, scatter in enumerate((0.4, 0.1), start=1):
        Store.create(tmp_path, f"2026-01-0{day}T00:00:00Z").finish(three_rounds(scatter=scatter))
    found = duration.recall(tmp_path, made.MACHINE, PLANNED)
    assert found.source == "2026-01-02T000000.json"
    assert found.scatter is not None
    assert found.scatter < 0.1


def test_the_eta_takes_each_cell_s_own_trials_where_it_has_some() -> None:
    eta = duration.Eta(made.plan(TORCH, JAX, effort=asked.exactly(3)))
    assert eta.remaining_s == 6 * duration.TYPICAL_TRIAL_S
    eta.ended(TORCH, 1, 4.0, failed=False)
    assert eta.remaining_s == 2 * 4.0 + 3 * 4.0  # the guess for the other cell is corrected by this one
    eta.ended(JAX, 1, 10.0, failed=False)
    assert eta.remaining_s == 2 * 4.0 + 2 * 10.0


def test_a_cell_that_failed_is_not_waited_for() -> None:
    eta = duration.Eta(made.plan(TORCH, JAX, effort=asked.exactly(3)))
    eta.ended(TORCH, 1, 4.0, failed=True)
    eta.ended(JAX, 1, 4.0, failed=False)
    assert (eta.trials, eta.remaining_s) == (4, 8.0)


def test_published_epochs_are_guessed_by_their_number() -> None:
    protocol = Protocol(kind="published")
    assert duration.typical_trial_s(TORCH, protocol) > duration.TYPICAL_TRIAL_S
    assert duration.typical_trial_s(TORCH, Protocol()) == duration.TYPICAL_TRIAL_S


def test_a_repeated_trial_is_one_more_and_takes_no_round_off() -> None:
    eta = duration.Eta(made.plan(TORCH, effort=asked.exactly(2)))
    eta.ended(TORCH, 1, 4.0, failed=False)
    eta.ended(TORCH, 1, 4.0, failed=False)
    assert (eta.trials, eta.remaining_s) == (3, 4.0)


def test_what_earlier_trials_took_is_expected_again() -> None:
    assert (
        duration.Eta(made.plan(TORCH, JAX, effort=asked.exactly(1)), {TORCH.key: 30.0}).remaining_s
        == 30 + duration.TYPICAL_TRIAL_S
    )
