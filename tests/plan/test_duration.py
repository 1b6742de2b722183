import dataclasses
import math
import random
import statistics
from pathlib import Path

import pytest

from kerasbench.analysis.estimates import MIN_RATIOS, POWER, LogEstimate, Verdict, judge, prior_of, variance
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.summary import summarize
from kerasbench.plan import duration
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.duration import Eta, History, RunScatter, minimum_detectable_effect, typical_trial_s
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Phase
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results import run as saved
from kerasbench.results.run import Run, Trial
from tests import made

TORCH, JAX = made.case(backend="torch"), made.case(backend="jax")
JIT, AGAIN = (made.case(options=options) for options in (Options(jit=True), Options(control=True)))
PLANNED = made.plan(JAX, TORCH)
TYPICAL_S = typical_trial_s(TORCH)


def trial(own_s: float, **different: object) -> Trial:
    """A trial of the first round, in which another column had its turns for a minute."""
    wait = Phase("train", 0, 60 * 10**9, 60 * 10**9)
    return made.changed(made.trial(), wall_ns=int((60 + own_s) * 1e9), phases=[wait], **different)


def three_rounds(scatter: float) -> Run:
    """Two columns whose ratio scatters from block to block."""
    steps = {"jax": [1.0, 1.0, 1.0], "torch": [2 * (1 - scatter), 2.0, 2 * (1 + scatter)]}
    trials = [
        made.in_block(index, made.measurement(step, overhead_ms=0), backend=backend)
        for backend, values in steps.items()
        for index, step in enumerate(values, start=1)
    ]
    return made.record(*trials, rounds=3)


def recall(folder: Path, *runs: Run, planned: Plan = PLANNED, chip: str = made.MACHINE.chip) -> History:
    for day, run in enumerate(runs, start=1):
        made.stored(folder, made.changed(run, started=f"2026-01-0{day}T00:00:00Z"))
    return duration.recall(folder, dataclasses.replace(made.MACHINE, chip=chip), planned)


RUN = three_rounds(0.1)


def test_scatter_is_that_of_a_ratio_between_blocks_and_slices_of_one_say_nothing_of_it() -> None:
    summary = summarize(RUN)
    scatter = made.known(duration.run_scatter(summary, Family.BACKENDS))
    assert 0.09 < scatter.between < 0.11
    assert scatter.borrowed == 0  # of a single ratio
    (ranking,) = summary.rankings
    (contrast,) = ranking.others
    within = dataclasses.replace(ranking, others=[made.changed(contrast, ratio={"basis": "slices"})])
    a_round = summarize(made.record(made.trial(), made.trial(backend="jax")))
    for other in (dataclasses.replace(summary, rankings=[within]), a_round):
        assert duration.run_scatter(other, Family.BACKENDS) is None


def test_a_plan_recalls_the_machine_s_own_trials(tmp_path: Path) -> None:
    for name in ("2026-01-03.json", "a.json", "b.json"):
        (tmp_path / name).write_text("[")
    assert recall(tmp_path, RUN).trial_s == {case.key: 9.0 for case in PLANNED.cases}
    assert recall(tmp_path, chip="Chip 10") == recall(tmp_path / "gone") == History()


OTHERS = [made.changed(RUN, machine={"chip": "Chip 10"}), made.changed(RUN, config={"effort": saved.PUBLISHED})]
QUICK_LOOK = made.changed(RUN, config={"effort": saved.QUICK}, rounds_completed=1)
LONGER = {"plan": {"slices_max_ns": 600 * 10**9, "fixed_time": True}}


@pytest.mark.parametrize(
    ("runs", "planned", "source", "trials"),
    [
        ([three_rounds(0.4), RUN], PLANNED, "2026-01-02T000000.json", 2),  # the newest
        ([RUN, *OTHERS * duration.FILES], PLANNED, "2026-01-01T000000.json", 2),
        ([RUN, *[QUICK_LOOK] * duration.FILES], PLANNED, "2026-01-01T000000.json", 2),
        ([RUN], made.plan(TORCH, JIT), "", 2),  # how ratios of backends scattered says nothing of options
        ([RUN], made.changed(PLANNED, config={"effort": LONGER}), "2026-01-01T000000.json", 0),
    ],
)
def test_what_earlier_runs_tell(tmp_path: Path, runs: list[Run], planned: Plan, source: str, trials: int) -> None:
    history = recall(tmp_path, *runs, planned=planned)
    assert (history.scatter.source, len(history.trial_s)) == (source, trials)


VERSIONS = [
    made.case(backend=backend, options=Options(environment=label))
    for backend in ("jax", "torch")
    for label in ("a", "b")
]


@pytest.mark.parametrize(
    ("planned", "family", "scatter"),
    [
        (made.plan(TORCH, JIT, JAX), Family.BACKENDS, 0.07),
        (made.plan(TORCH, JIT, AGAIN), Family.OPTIONS, ASSUMED[Family.OPTIONS].blocks),
        (made.changed(made.plan(*VERSIONS), config={"paired": True}), Family.REPEATED, 0.03 * math.sqrt(2)),
    ],
)
def test_a_plan_assumes_what_its_family_scatters(tmp_path: Path, planned: Plan, family: Family, scatter: float) -> None:
    assert duration.family_of(planned) is family
    assert recall(tmp_path, planned=planned).scatter == RunScatter(scatter)
    seen = duration.detectable(planned, 0.03, RunScatter(0.0))[12]  # whatever it sees worse is of other sessions
    assert (seen > 0.031) is (ASSUMED[family].between_sessions > 0)


def test_a_trial_is_guessed_by_what_it_measures_and_the_control_of_a_soak_rests_most_of_the_time() -> None:
    quick, published = (
        typical_trial_s(dataclasses.replace(TORCH, plan=plan))
        for plan in (saved.QUICK.plan, TrialPlan().of_kind("published"))
    )
    assert quick < TYPICAL_S < published
    soak = TrialPlan(fixed_time=True, slices_max_ns=90 * 10**9)
    soaked, control = (typical_trial_s(dataclasses.replace(case, plan=soak)) for case in (TORCH, AGAIN))
    assert soaked - control == pytest.approx(80.0)


TENSORFLOW = made.case(backend="tensorflow")
FAILED: dict[str, object] = {"failure": made.FAILURE, "measurement": None}
GIVEN_UP = dataclasses.replace(trial(0.0, **FAILED), wall_ns=0, phases=[])  # without a trial


@pytest.mark.parametrize(
    ("cases", "ended", "decided", "trials", "most_s"),
    [
        ([TORCH, JAX], [], [], 6, 6 * TYPICAL_S),
        ([TORCH, JAX], [(TORCH, trial(4.0))], [], 6, 2 * 4.0 + 3 * 4.0),  # by which the other's guess is corrected
        ([TORCH, JAX], [(TORCH, trial(4.0)), (JAX, trial(10.0))], [], 6, 2 * 4.0 + 2 * 10.0),
        ([TORCH], [(TORCH, trial(4.0)), (TORCH, trial(4.0))], [], 4, 2 * 4.0),  # again in the same round
        ([TORCH, JAX], [(TORCH, trial(4.0, **FAILED))], [], 4, 3 * 4.0),
        ([TORCH, JAX], [(TORCH, trial(4.0))], [TORCH], 4, 3 * 4.0),
        ([TORCH, JAX, TENSORFLOW], [(TORCH, trial(4.0)), (JAX, GIVEN_UP)], [], 7, 2 * 4.0 + 3 * 4.0),
    ],
)
def test_the_eta_goes_by_trials_and_waits_for_none_that_is_over(
    cases: list[Case], ended: list[tuple[Case, Trial]], decided: list[Case], trials: int, most_s: float
) -> None:
    eta = Eta(made.plan(*cases, effort=saved.exactly(3)))
    for case, its_trial in ended:
        eta.ended(case, its_trial)
    eta.decided(decided)
    assert (eta.trials, eta.left_s[1]) == (trials, most_s)


def test_a_run_is_over_soonest_when_every_row_is_decided_after_its_fewest_rounds() -> None:
    eta = Eta(made.plan(TORCH, effort=saved.Effort(3, 12)), {TORCH.key: 10.0})
    assert eta.left_s == (30.0, 120.0)
    eta.ended(TORCH, trial(10.0, round=4))
    assert eta.left_s == (0.0, 80.0)


@pytest.mark.parametrize(
    ("budget_s", "spent_s", "left_s"),
    [
        (None, 0.0, (30.0, 120.0)),
        (60.0, 0.0, (30.0, 60.0)),
        (60.0, 45.0, (15.0, 15.0)),  # of which it has used some
        (4.0, 0.0, (10.0, 10.0)),  # the first round always completes
        (9_999.0, 0.0, (30.0, 120.0)),
    ],
)
def test_a_budget_limits_what_is_promised(budget_s: float | None, spent_s: float, left_s: tuple[float, float]) -> None:
    eta = Eta(made.plan(TORCH, effort=saved.Effort(3, 12, budget_s=budget_s)), {TORCH.key: 10.0})
    assert eta.left_within(spent_s) == left_s


def test_more_rounds_and_degrees_of_freedom_detect_more_but_never_what_is_below_the_minimal_effect() -> None:
    assert minimum_detectable_effect(12, RunScatter(0.0), 0.03) == pytest.approx(0.03)
    few, many = (minimum_detectable_effect(rounds, RunScatter(0.05), 0.03) for rounds in (3, 12))
    assert few > many > 0.03
    lending = ((MIN_RATIOS - 1, 0.0), (MIN_RATIOS, 0.0), (MIN_RATIOS, 9.0))  # none, what is typical, and what is known
    effects = [minimum_detectable_effect(3, RunScatter(0.05, borrowed), 0.03, ratios) for ratios, borrowed in lending]
    assert effects == sorted(set(effects), reverse=True)


def test_among_many_that_are_judged_together_a_minimum_detectable_effect_has_its_power_too() -> None:
    rng, together, rounds, scatter = random.Random(3), 10, 5, 0.02
    shifts = [math.log1p(minimum_detectable_effect(rounds, RunScatter(scatter), 0.03, together)), *[0.0] * 9]

    def table() -> list[LogEstimate]:
        ratios = [[rng.gauss(shift, scatter) for _ in range(rounds)] for shift in shifts]
        prior = made.known(prior_of([(variance(logs), rounds - 1) for logs in ratios]))
        moderated = [prior.moderate(variance(logs), rounds - 1) for logs in ratios]
        return [
            LogEstimate(statistics.fmean(logs), math.sqrt(spread / rounds), degrees, rounds)
            for logs, (spread, degrees) in zip(ratios, moderated, strict=True)
        ]

    called = [judge(table(), 0.03)[0].verdict is Verdict.SLOWER for _ in range(200)]
    assert sum(called) / len(called) >= POWER


def test_what_a_plan_judges_together_is_each_row_s_others_to_its_fastest() -> None:
    columns = [made.case(name, backend) for name in ("a", "b") for backend in ("torch", "jax", "tensorflow")]
    beside = [made.case("a", options=options) for options in (Options(native=True), Options(control=True))]
    sized = [made.case("a", backend, options=Options(batch=8)) for backend in ("torch", "jax")]
    assert duration.comparisons([*columns, *beside, *sized]) == 4
    assert duration.comparisons(sized) == duration.comparisons(columns[:1]) == duration.comparisons([]) == 1
    assert list(duration.detectable(made.plan(*columns), 0.03, RunScatter())) == [3, 12]
    brief = made.plan(*columns, effort=saved.Effort(1, 4))  # a single round has no interval
    assert list(duration.detectable(brief, 0.03, RunScatter())) == [3, 4]
