"""Two versions side by side, with figures that are known."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest
from kerasbench.analysis.versus import (
    DIFFERENT_MACHINES,
    MEMORY,
    NO_CODE,
    TOO_FEW,
    Versus,
    compare,
    require_decided,
    versus,
)

from kerasbench.analysis.cases import HEADLINE, PREDICTED
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.errors import Undecided
from kerasbench.host.noise import WarningKind
from kerasbench.modes.versus import tell as report_versus
from kerasbench.modes.versus.bisect import case_of
from kerasbench.pages import several as report_compare
from kerasbench.pages.series import history
from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.protocol.messages import Code, Phase
from kerasbench.results.run import PUBLISHED, RaceConfig, Run, RunConfig, ScenarioFacts, SoakConfig, Trial
from tests import made
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER
from tests.records import compared as only
from tests.records import of_versions as record
from tests.records import versions as trials
from tests.report.table import drawn


def verdicts(found: Versus, metric: str = HEADLINE) -> dict[str, Verdict]:
    return {
        " ".join(case_of(contrast)): made.known(contrast.verdict)
        for contrast in found.contrasts
        if contrast.metric == metric
    }


def test_each_backend_s_head_is_held_against_its_own_base() -> None:
    faster = {OLD: {"step_ms": 9.0}, NEW: {"step_ms": 7.0}}
    found = only(*trials(SLOWER), *trials(faster, "jax"), *trials(ALIKE, name="conv"))
    assert verdicts(found) == {
        "conv torch cpu": Verdict.SAME,
        "dense jax cpu": Verdict.FASTER,
        "dense torch cpu": Verdict.SLOWER,
    }
    slower = next(one for one in found.regressions)
    assert slower.ratio.value == pytest.approx(1.09, abs=0.01)  # an epoch has its overhead too
    assert (found.base, found.head, found.is_worse) == ("old", "new", True)


def untrained(**batch_ms: float) -> Run:
    """Three blocks of base, head and base again of a model that only predicts, whose batch takes so long."""
    columns = {"old": OLD, "new": NEW, "again": AGAIN}
    found = [
        made.in_block(block, made.predicting([ms * (1 + 0.01 * cycle) for cycle in range(8)]), options=columns[name])
        for block in range(1, 4)
        for name, ms in batch_ms.items()
    ]
    return made.untrained(record(*found))


def test_of_a_model_that_only_predicts_the_prediction_of_a_batch_is_compared() -> None:
    first = untrained(old=2.0, new=2.4, again=2.0)
    (found,) = versus(summarize(first))
    (one,) = found.headlines
    assert (one.metric, one.verdict, found.is_worse) == (PREDICTED, Verdict.SLOWER, True)
    (series,) = history([first, dataclasses.replace(first, started="2026-02")])
    assert [point.ratio.value for point in series.points] == pytest.approx([1.2, 1.2])


def test_a_threshold_hides_smaller_differences() -> None:
    assert verdicts(only(*trials(SLOWER), threshold=0.2)) == {"dense torch cpu": Verdict.SAME}
    assert only(*trials(SLOWER), threshold=0.0).effect == 0.03  # but nothing below the usual one is called different
    assert versus(summarize(made.record(*trials(ALIKE), rounds=3))) == []  # a run that compares no versions


def test_where_the_base_differs_from_itself_nothing_is_called_different() -> None:
    off = SLOWER | {AGAIN: {"step_ms": 2.5}}
    found = only(*trials(off))
    (one,) = found.headlines
    assert one.withheld
    assert made.known(one.again).value == pytest.approx(1.24, abs=0.01)
    assert verdicts(found) == {"dense torch cpu": Verdict.INCONCLUSIVE}
    assert not found.is_worse
    both = only(*trials(off), *trials(SLOWER, "jax"))  # each backend has its own control
    assert verdicts(both) == {"dense jax cpu": Verdict.SLOWER, "dense torch cpu": Verdict.INCONCLUSIVE}


def differing() -> list[Trial]:
    """Trials in which the head computes something else."""
    wrong = made.measurement(losses=(2.3, 2.0, 1.7, 1.4, 1.1, 0.8))
    return [dataclasses.replace(one, measurement=wrong) if one.options == NEW else one for one in trials(ALIKE)]


def test_a_head_that_computes_something_else_has_no_figures_and_that_is_worse() -> None:
    compared = only(*differing())
    ((pair, failure),) = compared.broken
    assert (pair.name, failure.code) == ("torch cpu", Code.PARITY)
    assert compared.headlines == []
    assert compared.is_worse and not compared.regressions


@pytest.mark.parametrize("number", [0, 1], ids=["on a device that it does not see", "in its first trial"])
@pytest.mark.parametrize(("fails", "worse"), [(NEW, True), (OLD, False)])
def test_what_fails_with_the_head_alone_is_worse(fails: Options, worse: bool, number: int) -> None:
    kept = [one for one in trials(ALIKE) if one.options not in (fails, AGAIN)]
    failed = dataclasses.replace(made.trial(number, failure=made.FAILURE, options=fails), block=number)
    found = only(*kept, failed)
    assert found.is_worse is worse
    assert found.headlines == []
    (pair,) = found.pairs
    assert (pair.broken, pair.baseless) == ((made.FAILURE, None) if worse else (None, made.FAILURE))
    (alike,) = only(*_failing(OLD), *_failing(NEW), *_failing(AGAIN)).pairs
    assert (alike.broken, alike.baseless) == (None, None)


def test_where_nothing_is_decided_that_is_no_pass() -> None:
    require_decided([only(*trials(ALIKE))])
    require_decided([only(*(one for one in trials(ALIKE) if one.options == OLD), *_failing(NEW))])
    unmeasured = only(*_failing(OLD), *_failing(NEW))
    for undecided, said in (
        ([only(*trials(SLOWER)[:2])], "numbers, all undecided"),
        ([unmeasured], "nothing was measured with both base and head"),
        ([], "nothing was measured"),
    ):
        with pytest.raises(Undecided, match=said):
            require_decided(undecided)


@pytest.mark.parametrize(("figures", "worse"), [(ALIKE, False), (SLOWER, True)])
def test_figures_that_others_disturbed_are_no_pass(figures: Mapping[Options, Mapping[str, float]], worse: bool) -> None:
    """Memory is the same, which says nothing of the steps; what is worse in spite of it stays worse."""
    whole = trials(figures)
    found = only(*(made.disturbed(one) if not worse or one.options == AGAIN else one for one in whole))
    assert verdicts(found, MEMORY) == {"dense torch cpu": Verdict.SAME}
    assert found.is_worse is worse
    if not worse:
        with pytest.raises(Undecided, match=r"^undecided: other programs used the CPU while \d of \d+ numbers"):
            require_decided([found])


def _failing(options: Options) -> list[Trial]:
    return [made.trial(1, failure=made.FAILURE, options=options)]


def test_what_is_the_same_but_for_its_options_is_a_pair_of_its_own() -> None:
    with_jit = {dataclasses.replace(options, jit=True): {"step_ms": ms} for options, ms in ((OLD, 4.0), (NEW, 3.0))}
    assert verdicts(only(*trials(ALIKE), *trials(with_jit, blocks=3))) == {
        "dense torch cpu": Verdict.SAME,
        "dense torch cpu jit=on": Verdict.FASTER,
    }


def test_each_figure_has_its_own_control() -> None:
    worse = SLOWER | {NEW: {"step_ms": 2.2, "mib": 1024}, AGAIN: {"step_ms": 2.0, "mib": 700}}
    found = only(*trials(worse))
    assert verdicts(found) == {"dense torch cpu": Verdict.SLOWER}
    assert verdicts(found, MEMORY) == {"dense torch cpu": Verdict.INCONCLUSIVE}


def test_blocks_of_each_backend_are_no_lack_of_memory_and_the_fastest_of_all_is_no_question() -> None:
    found = record(*trials(SLOWER, blocks=1), *trials(ALIKE, "jax", blocks=1))
    assert {one.what for one in concerns(summarize(found))} == set()
    one_by_one = [dataclasses.replace(one, block=index) for index, one in enumerate(trials(SLOWER, blocks=1), start=1)]
    assert {one.what for one in concerns(summarize(record(*one_by_one)))} == {WarningKind.APART}


def test_a_single_block_believes_no_more_than_its_control_allows() -> None:
    def ratio_of(again_ms: float) -> tuple[float, Verdict]:
        found = only(*trials({OLD: {"step_ms": 2.0}, NEW: {"step_ms": 2.6}, AGAIN: {"step_ms": again_ms}}, blocks=1))
        (one,) = found.headlines
        return made.known(one.ratio.half_width), made.known(one.verdict)

    (narrow, sure), (wide, unsure) = ratio_of(2.0), ratio_of(1.95)
    assert (sure, unsure) == (Verdict.SLOWER, Verdict.SLOWER) and wide > narrow
    assert ratio_of(2.4)[1] is Verdict.INCONCLUSIVE


TORCH = CaseKey("dense", "default", Column("torch", "cpu"))


def run(
    *steps_ms: float, backends: tuple[str, ...] = ("torch",), started: str = "1", name: str = "dense", code: str = "a"
) -> Run:
    trials = [
        dataclasses.replace(made.trial(index, name, backend, found=made.measurement(step, overhead_ms=0)), code=code)
        for backend in backends
        for index, step in enumerate(steps_ms, start=1)
    ]
    return dataclasses.replace(made.record(*trials, rounds=len(steps_ms)), started=started)


def side(*steps_ms: float, first: int, every: int = 2, **said: Any) -> list[Run]:
    """Runs of one side, the first of which began then; each of three trials that scatter little."""
    return [
        run(step * 0.999, step, step * 1.001, started=f"{first + every * index:03}", **said)
        for index, step in enumerate(steps_ms)
    ]


OLD_RUNS = side(2.0, 2.02, 1.98, first=1)


@pytest.mark.parametrize(
    ("steps_ms", "verdict"),
    [
        ((2.5, 2.52, 2.48), Verdict.SLOWER),
        ((1.5, 1.52, 1.48), Verdict.FASTER),
        ((2.0, 2.01, 1.99), Verdict.SAME),
        ((2.0, 3.0, 4.0), Verdict.INCONCLUSIVE),
    ],
)
def test_a_case_is_judged_by_welch_over_runs_of_both_sides_by_turns(
    steps_ms: tuple[float, ...], verdict: Verdict
) -> None:
    (change,) = compare(OLD_RUNS, side(*steps_ms, first=2)).changes
    contrast = change.contrast
    assert (change.case, contrast.verdict, contrast.why) == (TORCH, verdict, "")
    assert contrast.ratio.value == pytest.approx(math.prod(steps_ms) ** (1 / 3) / 2, rel=1e-3)
    assert contrast.ratio.trials == change.old.trials == change.new.trials == 3


SLOW = (4.0, 4.01, 4.02)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD_RUNS[:1], side(4.0, first=2)),  # a run has many trials and one hour
        (OLD_RUNS[:2], side(*SLOW, first=2)),
        (OLD_RUNS, side(*SLOW, first=100)),  # all of the new side's runs on a slower day
        (OLD_RUNS, side(4.0, first=2) + side(*SLOW, first=100)),  # but for one of them
    ],
    ids=["one run a side", "two and three", "one side after the other", "stretches of both sides"],
)
def test_a_slower_hour_is_not_called_slower(old: list[Run], new: list[Run]) -> None:
    (change,) = compare(old, new).changes
    assert (change.contrast.verdict, change.contrast.why) == (None, TOO_FEW)
    assert change.contrast.ratio.low is None and change.contrast.ratio.value > 1.9


def test_runs_of_a_side_that_follow_each_other_are_one_observation() -> None:
    doubled = [*side(2.5, 2.52, 2.48, first=2, every=20), *side(2.5, 2.52, 2.48, first=3, every=20)]
    found = compare(side(2.0, 2.02, 1.98, first=1, every=20), doubled).changes[0]
    assert (found.contrast.verdict, found.contrast.ratio.trials, found.new.trials) == (Verdict.SLOWER, 3, 3)


def test_beside_another_column_of_its_run_the_hour_of_the_machine_cancels() -> None:
    def both(jax: float, torch: float) -> list[Run]:
        one, other = run(jax, jax, jax, backends=("jax",)), run(torch, torch, torch)
        return [dataclasses.replace(one, trials=[*one.trials, *other.trials])]

    jax, torch = compare(both(1.0, 3.0), both(2.0, 6.6)).changes
    assert [jax.contrast.ratio.value, torch.contrast.ratio.value] == pytest.approx([2.0, 2.2])
    beside = [made.known(one.beside) for one in (jax, torch)]
    assert [column.backend for column, _ in beside] == ["torch", "jax"]
    assert [ratio for _, ratio in beside] == pytest.approx([1 / 1.1, 1.1])
    assert compare(OLD_RUNS, OLD_RUNS).changes[0].beside is None


def test_a_regression_is_a_slower_case_or_one_that_fails_now() -> None:
    assert compare(OLD_RUNS, side(2.5, 2.52, 2.48, first=2)).regressions == [TORCH]
    failed = made.record(made.trial(1, failure=made.FAILURE))
    found = compare(OLD_RUNS, [failed])
    assert (found.regressions, found.vanished) == ([TORCH], [])
    assert compare(OLD_RUNS, side(1.5, 1.52, 1.48, first=2)).regressions == []
    assert compare([failed], [failed]).regressions == []


def on(records: list[Run], **said: Any) -> list[Run]:
    return [made.changed(one, machine=said) for one in records]


def test_a_side_that_is_of_another_machine_in_part_has_no_verdicts() -> None:
    same, new = on(OLD_RUNS, identifier="a"), side(2.5, 2.52, 2.48, first=2)
    assert compare(same, on(new, identifier="a")).changes[0].contrast.verdict is Verdict.SLOWER
    mixed = [OLD_RUNS[0], *same[1:]]
    (change,) = compare(mixed, on(new, identifier="a")).changes
    assert (change.contrast.verdict, change.contrast.why) == (None, DIFFERENT_MACHINES)
    found = compare(OLD_RUNS, on(side(1.0, 1.01, 0.99, first=2), chip="Chip 10"))
    assert (found.changes[0].contrast.verdict, found.regressions) == (None, [])
    assert found.overall == pytest.approx(0.5, rel=0.01)  # but ratios there are


@pytest.mark.parametrize(
    ("field", "asked", "code"),
    [
        ("protocol", {"effort": PUBLISHED}, "a"),
        ("data", {"data": "real"}, "a"),
        ("--keep-env", {"keep_env": {"OMP_NUM_THREADS": "1"}}, "a"),
        ("code of kerasbench", {}, "b"),
    ],
)
def test_what_was_measured_differently_has_no_verdict_and_the_reason_is_said(
    field: str, asked: dict[str, Any], code: str
) -> None:
    found = compare(OLD_RUNS, [made.changed(one, config=asked) for one in side(*SLOW, first=2, code=code)])
    (change,) = found.changes
    assert (change.contrast.verdict, change.contrast.why) == (None, f"measured differently ({field})")
    assert change.contrast.ratio.value == pytest.approx(2.0, rel=0.01)
    assert f"1 case: measured differently ({field})." in drawn(report_compare.changes(found, "a", "b"))


def test_what_took_turns_is_not_judged_against_what_did_not() -> None:
    def measured(in_turn: bool, first: int) -> list[Run]:
        return [
            made.changed(one, trials=[made.changed(each, block=each.round if in_turn else 0) for each in one.trials])
            for one in side(2.0, 2.01, 1.99, first=first, backends=("jax", "torch"))
        ]

    assert compare(measured(True, 1), measured(True, 2)).verdicts == {Verdict.SAME: 2}
    (why,) = compare(measured(False, 1), measured(True, 2)).unjudged
    assert why == "measured differently (side by side or one after another)"
    old, new = side(2.0, 2.01, 1.99, first=1, code=""), side(4.0, 4.01, 4.02, first=2, code="")
    assert compare(old, new).unjudged == {NO_CODE: 1}  # files that do not tell what code measured them


def test_of_a_side_s_runs_those_count_together_that_are_alike() -> None:
    published = dataclasses.replace(run(9.0, 9.1, 9.2, started="000"), config=RunConfig(effort=PUBLISHED))
    (change,) = compare([published, *OLD_RUNS], side(2.0, 2.01, 1.99, first=2)).changes
    assert (change.contrast.verdict, change.old.trials) == (Verdict.SAME, 3)
    for aim in (RunConfig(race=RaceConfig()), RunConfig(soak=SoakConfig())):
        aimed = [dataclasses.replace(one, config=aim) for one in side(9.0, first=0)]
        assert compare([*aimed, *OLD_RUNS], OLD_RUNS).changes[0].old.value == pytest.approx(2.0, rel=0.01)
    other_source = [dataclasses.replace(one, scenarios=_changed(one)) for one in side(9.0, first=0)]
    assert compare([*other_source, *OLD_RUNS], OLD_RUNS).changes[0].old.value == pytest.approx(2.0, rel=0.01)
    found = compare(OLD_RUNS[:1], [dataclasses.replace(OLD_RUNS[0], scenarios=_changed(OLD_RUNS[0]))])
    assert found.changes[0].source_changed
    assert "dense torch cpu ⚠" in drawn(report_compare.changes(found, "a", "b"))


def test_a_case_has_the_source_of_its_own_run_where_another_workload_came_from_a_newer_one() -> None:
    sized = [dataclasses.replace(trial, options=Options(batch=8)) for trial in run(9.0, 9.0, 9.0).trials]
    newest = dataclasses.replace(OLD_RUNS[0], trials=sized, started="007", scenarios=_changed(OLD_RUNS[0]))
    (change,) = compare([*OLD_RUNS, newest], side(2.0, 2.01, 1.99, first=2)).changes
    assert (change.contrast.verdict, change.old.trials, change.source_changed) == (Verdict.SAME, 3, False)


def _changed(record: Run) -> list[ScenarioFacts]:
    return [dataclasses.replace(one, file_hash="another") for one in record.scenarios]


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (side(4.0, first=2), "1 case: a verdict needs three runs"),
        (on(side(*SLOW, first=2), chip="Chip 10"), "1 case: different machines"),
        (side(*SLOW, first=2, name="conv"), "no case was measured on both sides"),
        (side(2.0, 3.0, 4.0, first=2), "1 case: undecided"),
    ],
)
def test_where_nothing_is_judged_that_is_no_pass(new: list[Run], said: str) -> None:
    with pytest.raises(Undecided, match="^nothing could be judged, so this is no pass: " + said):
        compare(OLD_RUNS, new).require_decided()
    compare(OLD_RUNS, side(2.0, 2.01, 1.99, first=2)).require_decided()
    compare(OLD_RUNS, [made.record(made.trial(1, failure=made.FAILURE))]).require_decided()


def test_sizes_of_a_sweep_are_cases_of_their_own_and_compared_by_the_step_inside_an_epoch() -> None:
    def sweep(factor: float, started: int) -> Run:
        trials = [
            dataclasses.replace(one, code="a")
            for batch, step_ms in ((1, 1.0), (8, 5.0))
            for one in made.thrice(step_ms * factor, options=Options(batch=batch))
        ]
        return dataclasses.replace(made.record(*trials, rounds=3), started=str(started))

    found = compare([sweep(1.0, index) for index in (1, 3, 5)], [sweep(2.0, index) for index in (2, 4, 6)])
    assert [(change.case.size, change.contrast.verdict) for change in found.changes] == [
        (Size(1), Verdict.SLOWER),
        (Size(8), Verdict.SLOWER),
    ]
    assert [change.old.value for change in found.changes] == pytest.approx([1.0, 5.0], rel=0.01)


def test_a_control_is_no_case_of_its_own() -> None:
    controls = [dataclasses.replace(trial, options=Options(control=True)) for trial in run(2.0, 2.01, 2.02).trials]
    twice = dataclasses.replace(OLD_RUNS[0], trials=[*OLD_RUNS[0].trials, *controls])
    (change,) = compare([twice], [twice]).changes
    assert (change.case, change.beside) == (TORCH, None)


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
def test_what_another_keras_cannot_change_is_a_control_and_says_so_if_it_moved(
    import_ms: float | None, head: dict[str, str], untouched: int, moved: int
) -> None:
    found = []
    for one in trials(ALIKE):
        ms = import_ms if one.options == NEW else 500.0
        phases = [
            Phase("import", 0, int((ms or 0) * made.SCATTER[one.round % 3] * made.MS)),
            Phase("keras", 0, made.MS),
        ]
        versions = made.measurement().resolved.versions | (head if one.options == NEW else {})
        whole = made.changed(one, measurement={"resolved": {"versions": versions}})
        found.append(whole if import_ms is None else made.changed(whole, phases=phases))
    compared = only(*found)
    assert (len(compared.untouched), len(compared.moved)) == (untouched, moved)
    assert not compared.is_worse
    warned = any("Importing the backend takes 1.2" in line for line in report_versus.sentences(compared))
    assert warned is bool(moved)
