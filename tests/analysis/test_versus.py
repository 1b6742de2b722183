"""Two versions side by side, with figures that are known."""

import dataclasses
import re
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pytest

from kerasbench.analysis import versus
from kerasbench.analysis.bisect import case_of
from kerasbench.analysis.cases import HEADLINE, PREDICTED, STEADY
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.history import history
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.versus import DIFFERENT_MACHINES, NO_CODE, TOO_FEW, Change, Versus, compare, require_decided
from kerasbench.analysis.warnings import concerns
from kerasbench.errors import Undecided
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.protocol.messages import Phase
from kerasbench.report.versus import sentences
from kerasbench.results.run import PUBLISHED, RaceConfig, Run, SoakConfig, Trial
from tests import made
from tests.made import known
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER
from tests.records import compared as only
from tests.records import of_versions as record
from tests.records import versions as trials


def verdicts(found: Versus, metric: str = HEADLINE) -> dict[str, Verdict]:
    contrasts = [contrast for contrast in found.contrasts if contrast.metric == metric]
    return {" ".join(case_of(contrast)): known(contrast.verdict) for contrast in contrasts}


def failing(*columns: Options) -> list[Trial]:
    return [made.trial(1, failure=made.FAILURE, options=options) for options in columns]


def test_each_backend_s_head_is_held_against_its_own_base_of_the_same_options() -> None:
    faster = {OLD: {"step_ms": 9.0}, NEW: {"step_ms": 7.0}}
    with_jit = {dataclasses.replace(options, jit=True): {"step_ms": ms} for options, ms in ((OLD, 4.0), (NEW, 3.0))}
    found = only(*trials(SLOWER), *trials(with_jit), *trials(faster, "jax"), *trials(ALIKE, name="conv"))
    assert verdicts(found) == {
        "conv torch cpu": Verdict.SAME,
        "dense jax cpu": Verdict.FASTER,
        "dense torch cpu": Verdict.SLOWER,
        "dense torch cpu jit=on": Verdict.FASTER,
    }
    slower = found.regressions[0]
    assert slower.ratio.value == pytest.approx(1.09, abs=0.01)  # an epoch has its overhead too
    assert (found.base, found.head, found.is_worse) == ("old", "new", True)


def test_of_a_model_that_only_predicts_the_prediction_of_a_batch_is_compared() -> None:
    batches = [
        made.in_block(block, made.predicting([ms * (1 + 0.01 * cycle) for cycle in range(8)]), options=options)
        for block in (1, 2, 3)
        for options, ms in ((OLD, 2.0), (NEW, 2.4), (AGAIN, 2.0))
    ]
    first = made.untrained(record(*batches))
    (found,) = versus.versus(summarize(first))
    (headline,) = found.headlines
    assert (headline.metric, headline.verdict, found.is_worse) == (PREDICTED, Verdict.SLOWER, True)
    (series,) = history([first, dataclasses.replace(first, started="2026-02")])
    assert [point.ratio.value for point in series.points] == pytest.approx([1.2, 1.2])


def test_a_threshold_hides_smaller_differences() -> None:
    assert verdicts(only(*trials(SLOWER), threshold=0.2)) == {"dense torch cpu": Verdict.SAME}
    assert only(*trials(SLOWER), threshold=0.0).effect == 0.03  # but nothing below the usual one is called different
    assert versus.versus(summarize(made.record(*trials(ALIKE), rounds=3))) == []  # a run that compares no versions


def test_where_the_base_differs_from_itself_nothing_is_called_different() -> None:
    off = SLOWER | {AGAIN: {"step_ms": 2.5}}
    found = only(*trials(off))
    (headline,) = found.headlines
    assert headline.withheld and not found.is_worse
    assert known(headline.again).value == pytest.approx(1.24, abs=0.01)
    both = only(*trials(off), *trials(SLOWER, "jax"))  # each backend has its own control
    assert verdicts(both) == {"dense jax cpu": Verdict.SLOWER, "dense torch cpu": Verdict.INCONCLUSIVE}
    heavier = only(*trials(SLOWER | {NEW: {"step_ms": 2.2, "mib": 1024}, AGAIN: {"step_ms": 2.0, "mib": 700}}))
    assert verdicts(heavier) == {"dense torch cpu": Verdict.SLOWER}  # so has each number
    assert verdicts(heavier, versus.MEMORY) == {"dense torch cpu": Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("number", [0, 1], ids=["on a device that it does not see", "in its first trial"])
@pytest.mark.parametrize(("fails", "worse"), [(NEW, True), (OLD, False)])
def test_what_fails_with_the_head_alone_is_worse(fails: Options, worse: bool, number: int) -> None:
    kept = [trial for trial in trials(ALIKE) if trial.options not in (fails, AGAIN)]
    found = only(*kept, *(dataclasses.replace(trial, round=number, block=number) for trial in failing(fails)))
    assert (found.is_worse, found.headlines) == (worse, [])
    (pair,) = found.pairs
    assert (pair.broken, pair.baseless) == ((made.FAILURE, None) if worse else (None, made.FAILURE))


def busy(figures: Mapping[Options, Mapping[str, float]], *hit: Options) -> Versus:
    return only(*(made.disturbed(trial) if trial.options in hit else trial for trial in trials(figures)))


@pytest.mark.parametrize(
    ("comparisons", "said"),
    [
        ([only(*trials(ALIKE))], ""),
        ([only(*trials({OLD: ALIKE[OLD]}), *failing(NEW))], ""),
        ([busy(SLOWER, AGAIN)], ""),  # what is worse in spite of others stays worse
        # Memory is the same, which says nothing of the steps.
        ([busy(ALIKE, *ALIKE)], r"^undecided: other programs used the CPU while \d of \d+ numbers"),
        ([only(*trials(SLOWER)[:2])], "numbers, all undecided"),
        ([only(*failing(OLD, NEW, AGAIN))], "nothing was measured with both base and head"),
        ([], "nothing was measured"),
    ],
)
def test_where_nothing_is_decided_that_is_no_pass(comparisons: list[Versus], said: str) -> None:
    with pytest.raises(Undecided, match=said) if said else nullcontext():
        require_decided(comparisons)


def test_blocks_of_each_backend_are_no_lack_of_memory_and_the_fastest_of_all_is_no_question() -> None:
    assert concerns(summarize(record(*trials(SLOWER, blocks=1), *trials(ALIKE, "jax", blocks=1)))) == []
    apart = [dataclasses.replace(trial, block=block) for block, trial in enumerate(trials(SLOWER, blocks=1), start=1)]
    assert {concern.what for concern in concerns(summarize(record(*apart)))} == {WarningKind.APART}


def test_a_single_block_believes_no_more_than_its_control_allows() -> None:
    widths = []
    for again_ms, verdict in ((2.0, Verdict.SLOWER), (1.95, Verdict.SLOWER), (2.4, Verdict.INCONCLUSIVE)):
        sides = {OLD: {"step_ms": 2.0}, NEW: {"step_ms": 2.6}, AGAIN: {"step_ms": again_ms}}
        (headline,) = only(*trials(sides, blocks=1)).headlines
        assert headline.verdict is verdict
        widths.append(known(headline.ratio.half_width))
    assert widths == sorted(set(widths))


@pytest.mark.parametrize(
    ("import_ms", "head", "untouched", "moved"),
    [
        (500.0, {"keras": "3.16.0"}, 1, 0),
        (600.0, {"keras": "3.16.0"}, 1, 1),
        (600.0, {}, 1, 1),  # two checkouts may have one version
        (600.0, {"keras": "3.16.0", "torch": "2.14.0"}, 0, 0),  # torch may take longer to import
        (None, {}, 0, 0),  # a file that does not tell the import of the backend alone
    ],
)
def test_what_keras_cannot_change(import_ms: float | None, head: dict[str, str], untouched: int, moved: int) -> None:
    changed = []
    for trial in trials(ALIKE):
        ms = (import_ms or 0.0) if trial.options == NEW else 500.0
        import_ns = int(ms * made.SCATTER[trial.round % 3] * made.MS)
        phases = [Phase("import", 0, import_ns), Phase("keras", 0, made.MS)] if import_ms else trial.phases
        versions = known(trial.measurement).resolved.versions | (head if trial.options == NEW else {})
        changed.append(made.changed(trial, phases=phases, measurement={"resolved": {"versions": versions}}))
    compared = only(*changed)
    assert (len(compared.untouched), len(compared.moved), compared.is_worse) == (untouched, moved, False)
    assert any("Importing the backend takes 1.2" in line for line in sentences(compared)) is bool(moved)


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
SLOWER_RUNS, FAILING = side(2.5, 2.52, 2.48, first=2), made.record(*failing(Options()))
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
    said = re.escape(f"nothing could be judged, so this is no pass: 1 case: {undecided}")
    with pytest.raises(Undecided, match=said) if undecided else nullcontext():
        found.require_decided()


def test_where_no_case_is_on_both_sides_that_is_no_pass_unless_one_fails_now() -> None:
    with pytest.raises(Undecided, match="so this is no pass: no case was measured on both sides"):
        compare(OLD_RUNS, side(2.5, first=2, name="conv")).require_decided()
    found = compare(OLD_RUNS, [FAILING])
    found.require_decided()
    assert (found.regressions, found.vanished) == ([TORCH], [])
    assert compare([FAILING], [FAILING]).regressions == []


def change_of(old: list[Run], new: list[Run]) -> Change:
    """What is different between sides of one case."""
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
        {"config": {"race": RaceConfig()}},
        {"config": {"soak": SoakConfig()}},
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
