import dataclasses
import re
from contextlib import nullcontext
from typing import Any

import pytest

from kerasbench.analysis.cases import STEADY
from kerasbench.analysis.compare import DIFFERENT_MACHINES, NO_CODE, TOO_FEW, Change, compare
from kerasbench.analysis.estimates import Verdict
from kerasbench.errors import Undecided
from kerasbench.modes import fastest, soak
from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.results.run import PUBLISHED, Run, RunConfig
from tests import made
from tests.made import known

TORCH = CaseKey("dense", "default", Column("torch", "cpu"))


def run(*steps_ms: float, started: str = "1", **different: Any) -> Run:
    trials = made.in_rounds(*steps_ms, **{"code": "a"} | different)
    return dataclasses.replace(made.record(*trials, rounds=len(steps_ms)), started=started)


def side(*steps_ms: float, first: int, **different: Any) -> list[Run]:
    """Runs of one side, every other one from the first; each of three trials that scatter little."""
    return [
        run(step * 0.999, step, step * 1.001, started=f"{first + 2 * index:03}", **different)
        for index, step in enumerate(steps_ms)
    ]


def on(runs: list[Run], **machine: str) -> list[Run]:
    return [made.changed(run, machine=machine) for run in runs]


def asked(**config: Any) -> list[Run]:
    return [made.changed(run, config=config) for run in SLOWER_RUNS]


OLD_RUNS, ALIKE_RUNS = side(2.0, 2.02, 1.98, first=1), side(2.0, 2.01, 1.99, first=2)
SLOWER_RUNS, FAILING = side(2.5, 2.52, 2.48, first=2), made.record(made.trial(failure=made.FAILURE))
SOON_AFTER = [made.changed(run, started=f"{run.started}5") for run in SLOWER_RUNS]  # before the next one
OLD_A, SLOWER_A = (on(runs, identifier="a") for runs in (OLD_RUNS, SLOWER_RUNS))
OTHERWISE = "measured differently ({})".format


@pytest.mark.parametrize(
    ("old", "new", "ratio", "verdict", "why"),
    [
        (OLD_RUNS, SLOWER_RUNS, 1.25, Verdict.SLOWER, ""),
        (OLD_RUNS, side(1.5, 1.52, 1.48, first=2), 0.75, Verdict.FASTER, ""),
        (OLD_RUNS, ALIKE_RUNS, 1.0, Verdict.SAME, ""),
        (OLD_RUNS, side(2.0, 3.0, 4.0, first=2), 1.44, Verdict.INCONCLUSIVE, ""),
        # Runs of a side that follow each other are one observation, and a slower hour is not called slower.
        (OLD_RUNS, [*SLOWER_RUNS, *SOON_AFTER], 1.25, Verdict.SLOWER, ""),
        (OLD_RUNS[:1], side(2.5, first=2), 1.25, None, TOO_FEW),  # a run has many trials and one hour
        (OLD_RUNS[:2], SLOWER_RUNS, 1.25, None, TOO_FEW),
        (OLD_RUNS, side(2.5, 2.52, 2.48, first=100), 1.25, None, TOO_FEW),  # all of the new side's on a slower day
        (OLD_RUNS, side(2.5, first=2) + side(2.5, 2.52, 2.48, first=100), 1.25, None, TOO_FEW),  # but for one of them
        (OLD_A, SLOWER_A, 1.25, Verdict.SLOWER, ""),
        (OLD_RUNS[:1] + OLD_A[1:], SLOWER_A, 1.25, None, DIFFERENT_MACHINES),
        (OLD_RUNS, on(SLOWER_RUNS, chip="Chip 10"), 1.25, None, DIFFERENT_MACHINES),  # but ratios there are
        (OLD_RUNS, asked(effort=PUBLISHED), 1.25, None, OTHERWISE("protocol")),
        (OLD_RUNS, asked(data="real"), 1.25, None, OTHERWISE("data")),
        (OLD_RUNS, asked(keep_env={"OMP_NUM_THREADS": "1"}), 1.25, None, OTHERWISE("--keep-env")),
        (OLD_RUNS, side(2.5, 2.52, 2.48, first=2, code="b"), 1.25, None, OTHERWISE("code of kerasbench")),
        (*(side(2.0, 2.01, 1.99, first=first, code="") for first in (1, 2)), 1.0, None, NO_CODE),
    ],
)
def test_how_a_case_is_judged(old: list[Run], new: list[Run], ratio: float, verdict: Verdict | None, why: str) -> None:
    found = compare(old, new)
    (change,) = found.changes
    contrast = change.contrast
    assert (change.case, change.beside, contrast.verdict, contrast.why) == (TORCH, None, verdict, why)
    assert contrast.ratio.value == found.overall == pytest.approx(ratio, rel=0.01)
    assert (contrast.ratio.low is None) is (why == TOO_FEW)
    assert why == TOO_FEW or contrast.ratio.trials == change.old.trials == change.new.trials == 3
    assert found.regressions == [TORCH] * (verdict is Verdict.SLOWER)
    undecided = {None: why, Verdict.INCONCLUSIVE: "undecided"}.get(verdict)
    said = re.escape(f"everything is undecided, so nothing has passed: 1 case: {undecided}")
    with pytest.raises(Undecided, match=said) if undecided else nullcontext():
        found.require_decided()


def test_where_no_case_is_on_both_sides_that_is_no_pass_unless_one_fails_now() -> None:
    with pytest.raises(Undecided, match="so nothing has passed: no case was measured on both sides"):
        compare(OLD_RUNS, side(2.5, first=2, name="conv")).require_decided()
    found = compare(OLD_RUNS, [FAILING])
    found.require_decided()
    assert (found.regressions, found.vanished) == ([TORCH], [])
    assert compare([FAILING], [FAILING]).regressions == []


def change_of(old: list[Run], new: list[Run]) -> Change:
    (change,) = compare(old, new).changes
    return change


def test_beside_another_column_of_its_run_the_hour_of_the_machine_cancels() -> None:
    def both(jax: float, torch: float) -> list[Run]:
        return [made.record(*made.in_rounds(*[jax] * 3, backend="jax"), *made.in_rounds(*[torch] * 3), rounds=3)]

    jax, torch = compare(both(1.0, 3.0), both(2.0, 6.6)).changes
    assert [jax.contrast.ratio.value, torch.contrast.ratio.value] == pytest.approx([2.0, 2.2])
    beside = [known(change.beside) for change in (jax, torch)]
    assert [column.backend for column, _ in beside] == ["torch", "jax"]
    assert [ratio for _, ratio in beside] == pytest.approx([1 / 1.1, 1.1])


def test_what_took_turns_is_not_judged_against_what_did_not() -> None:
    def measured(in_turn: bool, first: int) -> list[Run]:
        runs = side(2.0, 2.01, 1.99, first=first)
        for run in runs:
            run.trials = [
                dataclasses.replace(trial, backend=backend, block=trial.round if in_turn else 0)
                for trial in run.trials
                for backend in ("jax", "torch")
            ]
        return runs

    assert compare(measured(True, 1), measured(True, 2)).verdicts == {Verdict.SAME: 2}
    (why,) = compare(measured(False, 1), measured(True, 2)).unjudged
    assert why == OTHERWISE("side by side or one after another")


OTHER_SOURCE = [dataclasses.replace(facts, file_hash="another") for facts in OLD_RUNS[0].scenarios]


@pytest.mark.parametrize(
    "differs",
    [
        {"config": {"effort": PUBLISHED}},
        {"config": fastest.MODE.configured(RunConfig(), fastest.RaceConfig())},
        {"config": soak.MODE.configured(RunConfig(), soak.SoakConfig())},
        {"scenarios": OTHER_SOURCE},
    ],
)
def test_of_a_side_s_runs_those_count_together_that_are_alike(differs: dict[str, Any]) -> None:
    different = [made.changed(run, **differs) for run in side(9.0, first=0)]
    change = change_of([*different, *OLD_RUNS], ALIKE_RUNS)
    assert (change.contrast.verdict, change.old.trials, change.source_changed) == (Verdict.SAME, 3, False)
    assert change.old.value == pytest.approx(2.0, rel=0.01)


def test_a_case_has_the_source_of_its_own_run_where_another_workload_came_from_a_newer_one() -> None:
    sized = [dataclasses.replace(trial, options=Options(batch=8)) for trial in run(9.0, 9.0, 9.0).trials]
    newest = dataclasses.replace(OLD_RUNS[0], trials=sized, started="007", scenarios=OTHER_SOURCE)
    change = change_of([*OLD_RUNS, newest], ALIKE_RUNS)
    assert (change.contrast.verdict, change.old.trials, change.source_changed) == (Verdict.SAME, 3, False)
    assert change_of(OLD_RUNS, [dataclasses.replace(OLD_RUNS[0], scenarios=OTHER_SOURCE)]).source_changed


def test_sizes_of_a_sweep_are_cases_of_their_own_and_compared_by_the_step_inside_an_epoch() -> None:
    old, new = side(2.0, 2.02, 1.98, first=1), side(4.0, 4.01, 4.02, first=2)
    for run in (*old, *new):
        run.trials = [made.changed(trial, options={"batch": batch}) for trial in run.trials for batch in (1, 8)]
    changes = compare(old, new).changes
    verdicts = {change.case.size: change.contrast.verdict for change in changes}
    assert verdicts == {Size(1): Verdict.SLOWER, Size(8): Verdict.SLOWER}
    assert {change.contrast.metric for change in changes} == {STEADY}


def test_a_control_is_no_case_of_its_own() -> None:
    controls = [dataclasses.replace(trial, options=Options(control=True)) for trial in OLD_RUNS[0].trials]
    twice = dataclasses.replace(OLD_RUNS[0], trials=[*OLD_RUNS[0].trials, *controls])
    change = change_of([twice], [twice])
    assert (change.case, change.beside) == (TORCH, None)


def with_memory(runs: list[Run], *held_mib: int) -> list[Run]:
    """Runs whose processes held so much after building, and some of them the same in training."""

    def told(run: Run, mib: int) -> Run:
        phases = [made.with_memory(phase, mib << 20) for phase in made.phases() if phase.name in ("build", "train")]
        trials = [made.changed(trial, phases=phases) for trial in run.trials]
        return dataclasses.replace(run, trials=trials)

    return [told(run, mib) for run, mib in zip(runs, held_mib, strict=True)]


@pytest.mark.parametrize(
    ("new_mib", "verdict", "regressions"),
    [((600, 603, 598), Verdict.SLOWER, [TORCH]), ((401, 399, 402), Verdict.SAME, [])],
)
def test_memory_has_a_verdict_by_phase(new_mib: tuple[int, ...], verdict: Verdict, regressions: list[CaseKey]) -> None:
    comparison = compare(with_memory(OLD_RUNS, 400, 402, 399), with_memory(ALIKE_RUNS, *new_mib))
    verdicts = {change.contrast.metric: change.contrast.verdict for change in comparison.memory}
    phases = [f"rss_{kind}_{phase}_mib" for kind in ("held", "most") for phase in ("build", "train")]
    assert verdicts == dict.fromkeys(phases, verdict)
    assert comparison.regressions == regressions
    assert compare(OLD_RUNS, ALIKE_RUNS).memory == []


def test_other_code_is_told_whether_or_not_it_is_slower() -> None:
    old, new = (
        [
            dataclasses.replace(
                run, trials=[made.changed(trial, measurement={"facts": {"attention": kernel}}) for trial in run.trials]
            )
            for run in runs
        ]
        for runs, kernel in ((OLD_RUNS, "flash"), (ALIKE_RUNS, "math"))
    )
    (difference,) = compare(old, new).differences
    assert (difference.fact.name, difference.value, difference.before) == ("attention", "math", "flash")
    assert difference.over.key == TORCH and difference.is_known
    assert compare(old, old).differences == []
