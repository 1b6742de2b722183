import io

from rich.console import Console

from kerasbench import plan
from kerasbench.report.console import ConsoleProgress, Eta
from kerasbench.trial import Outcome
from kerasbench.wire import Protocol
from tests import made

TORCH, JAX = made.cell(backend="torch"), made.cell(backend="jax")


def test_the_eta_takes_each_cell_s_own_trials_where_it_has_some() -> None:
    eta = Eta(made.plan(TORCH, JAX, effort=plan.exactly(3)))
    assert eta.remaining_s == 6 * plan.TYPICAL_TRIAL_S
    eta.ended(TORCH, 4.0, failed=False)
    assert eta.remaining_s == 2 * 4.0 + 3 * 4.0  # the guess for the other cell is corrected by this one
    eta.ended(JAX, 10.0, failed=False)
    assert eta.remaining_s == 2 * 4.0 + 2 * 10.0


def test_a_cell_that_failed_is_not_waited_for() -> None:
    eta = Eta(made.plan(TORCH, JAX, effort=plan.exactly(3)))
    eta.ended(TORCH, 4.0, failed=True)
    eta.ended(JAX, 4.0, failed=False)
    assert (eta.trials, eta.remaining_s) == (4, 8.0)


def test_without_a_terminal_there_is_a_plain_line_for_each_trial() -> None:
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=80))
    progress.run_began(made.plan(TORCH, JAX, effort=plan.exactly(1)))
    progress.trial_began(TORCH, 1)
    progress.phase_began("train")
    progress.tick()
    progress.trial_ended(TORCH, Outcome([], 5 * 10**9, measurement=made.measurement(step_ms=2, overhead_ms=0)))
    progress.trial_began(JAX, 1)
    progress.trial_ended(JAX, Outcome([], 1 * 10**9, failure=made.FAILURE))
    progress.run_ended()
    first, second, third = out.getvalue().splitlines()
    assert first == "2 cells, 1 round, at most about 18 s"
    assert second == "[1/2] dense torch cpu: 2.00 ms/step (5.0 s; about 5 s left)"
    assert third == "[2/2] dense jax cpu: crash: died from SIGSEGV in phase 'train' (1.0 s; about 0 s left)"
    assert "\x1b" not in out.getvalue()


def test_published_epochs_are_guessed_by_their_number() -> None:
    protocol = Protocol(kind="published")
    assert plan.typical_trial_s(TORCH, protocol) > plan.TYPICAL_TRIAL_S
    assert plan.typical_trial_s(TORCH, Protocol()) == plan.TYPICAL_TRIAL_S
