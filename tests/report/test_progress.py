import dataclasses
import io

import pytest
from rich.console import Console

from kerasbench.analysis.summary import summarize
from kerasbench.exchange.options import Options
from kerasbench.exchange.requests import Protocol
from kerasbench.plan import duration
from kerasbench.plan.duration import History
from kerasbench.quiet.signals import Severity, Signal
from kerasbench.report.progress import ConsoleProgress, Eta, announce
from kerasbench.report.training import table_so_far
from kerasbench.results import asked
from tests import made

NOISE = Signal("blocks", Severity.WARN, "blocks spread by 12%")
TORCH, JAX = made.cell(backend="torch"), made.cell(backend="jax")


def test_the_eta_takes_each_cell_s_own_trials_where_it_has_some() -> None:
    eta = Eta(made.plan(TORCH, JAX, effort=asked.exactly(3)))
    assert eta.remaining_s == 6 * duration.TYPICAL_TRIAL_S
    eta.ended(TORCH, 1, 4.0, failed=False)
    assert eta.remaining_s == 2 * 4.0 + 3 * 4.0  # the guess for the other cell is corrected by this one
    eta.ended(JAX, 1, 10.0, failed=False)
    assert eta.remaining_s == 2 * 4.0 + 2 * 10.0


def test_a_cell_that_failed_is_not_waited_for() -> None:
    eta = Eta(made.plan(TORCH, JAX, effort=asked.exactly(3)))
    eta.ended(TORCH, 1, 4.0, failed=True)
    eta.ended(JAX, 1, 4.0, failed=False)
    assert (eta.trials, eta.remaining_s) == (4, 8.0)


def test_without_a_terminal_there_is_a_plain_line_for_each_trial() -> None:
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=80))
    progress.run_began(made.plan(TORCH, JAX, effort=asked.exactly(1)), made.record())
    progress.trial_began(TORCH, 1)
    progress.phase_began("train")
    progress.tick()
    progress.trial_ended(TORCH, made.trial(found=made.measurement(step_ms=2, overhead_ms=0), noise=(NOISE,)))
    progress.trial_began(JAX, 1)
    progress.trial_ended(JAX, made.trial(backend="jax", failure=made.FAILURE))
    progress.run_ended()
    assert out.getvalue().splitlines() == [
        "2 cells, 1 round, at most about 18 s if nothing disturbs it",
        "no verdicts: fewer than 3 rounds have no interval",
        "[1/2] dense torch cpu: 2.00 ms/step, noisy: blocks spread by 12% (9.0 s; about 9 s left)",
        "[2/2] dense jax cpu: crash: died from SIGSEGV in phase 'train' (9.0 s; about 0 s left)",
    ]
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_ends_before_it_has_begun_leaves_no_display(terminal: bool) -> None:
    out = io.StringIO()
    ConsoleProgress(Console(file=out, width=80, force_terminal=terminal)).run_ended()
    assert out.getvalue() == ""


def test_published_epochs_are_guessed_by_their_number() -> None:
    protocol = Protocol(kind="published")
    assert duration.typical_trial_s(TORCH, protocol) > duration.TYPICAL_TRIAL_S
    assert duration.typical_trial_s(TORCH, Protocol()) == duration.TYPICAL_TRIAL_S


def test_a_repeated_trial_is_one_more_and_takes_no_round_off() -> None:
    eta = Eta(made.plan(TORCH, effort=asked.exactly(2)))
    eta.ended(TORCH, 1, 4.0, failed=False)
    eta.ended(TORCH, 1, 4.0, failed=False)
    assert (eta.trials, eta.remaining_s) == (3, 4.0)


def test_a_plan_says_how_long_it_takes_and_what_it_will_be_able_to_see() -> None:
    planned = made.plan(TORCH, JAX)
    size, sight = announce(planned, 0.03, 90.0, History(scatter=0.01, source="old.json"))
    assert size == "2 cells, 3 to 5 rounds, at most about 1 min 30 s if nothing disturbs it"
    assert sight == (
        "differences that will be called in nine of ten cases: 8.9 % after 3 rounds (a ratio's interval: ±3.5 %) "
        "and 5.9 % after 5 rounds (a ratio's interval: ±1.8 %); trials scatter by 1.0 %, as in old.json"
    )


def test_a_plan_without_a_history_says_that_it_guesses() -> None:
    assert "a guess: no earlier results of this machine" in announce(made.plan(TORCH), 0.03, 9.0, History())[1]


def test_what_earlier_trials_took_is_expected_again() -> None:
    assert (
        Eta(made.plan(TORCH, JAX, effort=asked.exactly(1)), {TORCH.key: 30.0}).remaining_s
        == 30 + duration.TYPICAL_TRIAL_S
    )


def test_after_a_round_that_is_not_the_last_the_table_is_shown() -> None:
    out = io.StringIO()
    progress = ConsoleProgress(Console(file=out, width=300))
    progress.run_began(made.plan(TORCH, JAX), made.record())
    record = made.record(made.trial(), made.trial(backend="jax", found=made.measurement(1)))
    progress.round_ended(dataclasses.replace(record, stopped_because=""))
    assert "after round 1:" in out.getvalue()
    assert "**1.10 ms**" in out.getvalue()
    progress.round_ended(record)
    assert out.getvalue().count("after round") == 1


def test_what_an_explanation_measures_besides_hides_nothing_of_the_table_after_a_round() -> None:
    record = made.record(made.trial(), made.trial(options=Options(batch=128), found=made.measurement(9)))
    assert [line.split("|")[1].strip() for line in table_so_far(summarize(record)).splitlines() if "dense" in line] == [
        "dense",
        "dense",
    ]
