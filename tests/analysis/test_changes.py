import dataclasses
import math
from typing import Any

import pytest

from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.versus import DIFFERENT_MACHINES, NO_CODE, TOO_FEW, compare
from kerasbench.errors import Undecided
from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.report import comparisons
from kerasbench.results.record import PUBLISHED, Record, RunConfig, ScenarioRecord
from tests import made
from tests.report.table import drawn

TORCH = CaseKey("dense", "default", Column("torch", "cpu"))


def run(
    *steps_ms: float, backends: tuple[str, ...] = ("torch",), started: str = "1", name: str = "dense", code: str = "a"
) -> Record:
    trials = [
        dataclasses.replace(made.trial(index, name, backend, found=made.measurement(step, overhead_ms=0)), code=code)
        for backend in backends
        for index, step in enumerate(steps_ms, start=1)
    ]
    return dataclasses.replace(made.record(*trials, rounds=len(steps_ms)), started=started)


def side(*steps_ms: float, first: int, every: int = 2, **said: Any) -> list[Record]:
    """Runs of one side, the first of which began then; each of three trials that scatter little."""
    return [
        run(step * 0.999, step, step * 1.001, started=f"{first + every * index:03}", **said)
        for index, step in enumerate(steps_ms)
    ]


OLD = side(2.0, 2.02, 1.98, first=1)


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
    (change,) = compare(OLD, side(*steps_ms, first=2)).changes
    assert (change.case, change.verdict, change.why) == (TORCH, verdict, "")
    assert change.ratio.value == pytest.approx(math.prod(steps_ms) ** (1 / 3) / 2, rel=1e-3)
    assert change.ratio.trials == change.old.trials == change.new.trials == 3


SLOW = (4.0, 4.01, 4.02)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD[:1], side(4.0, first=2)),  # a run has many trials and one hour
        (OLD[:2], side(*SLOW, first=2)),
        (OLD, side(*SLOW, first=100)),  # all of the new side's runs on a slower day
        (OLD, side(4.0, first=2) + side(*SLOW, first=100)),  # but for one of them
    ],
    ids=["one run a side", "two and three", "one side after the other", "stretches of both sides"],
)
def test_a_slower_hour_is_not_called_slower(old: list[Record], new: list[Record]) -> None:
    (change,) = compare(old, new).changes
    assert (change.verdict, change.why) == (None, TOO_FEW)
    assert change.ratio.low is None and change.ratio.value > 1.9


def test_runs_of_a_side_that_follow_each_other_are_one_observation() -> None:
    doubled = [*side(2.5, 2.52, 2.48, first=2, every=20), *side(2.5, 2.52, 2.48, first=3, every=20)]
    found = compare(side(2.0, 2.02, 1.98, first=1, every=20), doubled).changes[0]
    assert (found.verdict, found.ratio.trials, found.new.trials) == (Verdict.SLOWER, 3, 3)


def test_beside_another_column_of_its_run_the_hour_of_the_machine_cancels() -> None:
    def both(jax: float, torch: float) -> list[Record]:
        one, other = run(jax, jax, jax, backends=("jax",)), run(torch, torch, torch)
        return [dataclasses.replace(one, trials=[*one.trials, *other.trials])]

    jax, torch = compare(both(1.0, 3.0), both(2.0, 6.6)).changes
    assert [jax.ratio.value, torch.ratio.value] == pytest.approx([2.0, 2.2])
    assert jax.beside is not None and torch.beside is not None
    assert [one.beside.column.backend for one in (jax, torch) if one.beside] == ["torch", "jax"]
    assert [jax.beside.ratio, torch.beside.ratio] == pytest.approx([1 / 1.1, 1.1])
    assert compare(OLD, OLD).changes[0].beside is None


def test_a_regression_is_a_slower_case_or_one_that_fails_now() -> None:
    assert compare(OLD, side(2.5, 2.52, 2.48, first=2)).regressions == [TORCH]
    failed = made.record(made.trial(1, failure=made.FAILURE))
    found = compare(OLD, [failed])
    assert (found.regressions, found.vanished) == ([TORCH], [])
    assert compare(OLD, side(1.5, 1.52, 1.48, first=2)).regressions == []
    assert compare([failed], [failed]).regressions == []


def test_new_and_vanished_cases_are_named() -> None:
    found = compare(OLD, [run(1.0, backends=("jax",))])
    assert (found.changes, found.added, found.vanished) == (
        [],
        [dataclasses.replace(TORCH, column=Column("jax", "cpu"))],
        [TORCH],
    )
    assert found.overall is None
    text = drawn(comparisons.changes(found, "old", "new"))
    assert "New: dense jax cpu." in text
    assert "No longer measured: dense torch cpu." in text


def on(records: list[Record], **said: Any) -> list[Record]:
    return [dataclasses.replace(one, machine=dataclasses.replace(made.MACHINE, **said)) for one in records]


def test_a_side_that_is_of_another_machine_in_part_has_no_verdicts() -> None:
    same, new = on(OLD, identifier="a"), side(2.5, 2.52, 2.48, first=2)
    assert compare(same, on(new, identifier="a")).changes[0].verdict is Verdict.SLOWER
    mixed = [OLD[0], *same[1:]]
    (change,) = compare(mixed, on(new, identifier="a")).changes
    assert (change.verdict, change.why) == (None, DIFFERENT_MACHINES)


def test_between_machines_there_are_ratios_and_no_verdicts() -> None:
    found = compare(OLD, on(side(1.0, 1.01, 0.99, first=2), chip="Chip 10"))
    assert found.changes[0].verdict is None
    assert found.overall == pytest.approx(0.5, rel=0.01)
    assert found.regressions == []
    assert "without verdicts: 1 case: different machines." in drawn(comparisons.changes(found, "a", "b"))


def other(field: str) -> list[Record]:
    """Slower runs that were measured in another manner."""
    new = side(4.0, 4.01, 4.02, first=2, code="b" if field == "code of kerasbench" else "a")
    asked = {
        "protocol": RunConfig(effort=PUBLISHED),
        "data": RunConfig(data="real"),
        "--keep-env": RunConfig(keep_env={"OMP_NUM_THREADS": "1"}),
    }.get(field, RunConfig())
    return [dataclasses.replace(one, config=asked) for one in new]


@pytest.mark.parametrize("field", ["protocol", "data", "--keep-env", "code of kerasbench"])
def test_what_was_measured_differently_has_no_verdict_and_the_reason_is_said(field: str) -> None:
    found = compare(OLD, other(field))
    (change,) = found.changes
    assert (change.verdict, change.why) == (None, f"measured differently ({field})")
    assert change.ratio.value == pytest.approx(2.0, rel=0.01)
    assert f"1 case: measured differently ({field})." in drawn(comparisons.changes(found, "a", "b"))


def test_what_took_turns_is_not_judged_against_what_did_not() -> None:
    def measured(in_turn: bool, first: int) -> list[Record]:
        runs = side(2.0, 2.01, 1.99, first=first, backends=("jax", "torch"))
        return [
            dataclasses.replace(
                one, trials=[dataclasses.replace(trial, block=trial.round if in_turn else 0) for trial in one.trials]
            )
            for one in runs
        ]

    assert [one.verdict for one in compare(measured(True, 1), measured(True, 2)).changes] == [Verdict.SAME] * 2
    (why,) = compare(measured(False, 1), measured(True, 2)).unjudged
    assert why == "measured differently (side by side or one after another)"


def test_files_that_do_not_tell_their_code_are_not_judged() -> None:
    old, new = side(2.0, 2.01, 1.99, first=1, code=""), side(4.0, 4.01, 4.02, first=2, code="")
    assert compare(old, new).unjudged == {NO_CODE: 1}


def test_of_a_side_s_runs_those_count_together_that_are_alike() -> None:
    published = dataclasses.replace(run(9.0, 9.1, 9.2, started="000"), config=RunConfig(effort=PUBLISHED))
    (change,) = compare([published, *OLD], side(2.0, 2.01, 1.99, first=2)).changes
    assert (change.verdict, change.old.trials) == (Verdict.SAME, 3)
    other_source = [dataclasses.replace(one, scenarios=_changed(one)) for one in side(9.0, first=0)]
    assert compare([*other_source, *OLD], OLD).changes[0].old.value == pytest.approx(2.0, rel=0.01)


def test_a_case_has_the_source_of_its_own_run_where_another_workload_came_from_a_newer_one() -> None:
    sized = [dataclasses.replace(trial, options=Options(batch=8)) for trial in run(9.0, 9.0, 9.0).trials]
    newest = dataclasses.replace(OLD[0], trials=sized, started="007", scenarios=_changed(OLD[0]))
    (change,) = compare([*OLD, newest], side(2.0, 2.01, 1.99, first=2)).changes
    assert (change.verdict, change.old.trials, change.source_changed) == (Verdict.SAME, 3, False)


def _changed(record: Record) -> list[ScenarioRecord]:
    return [dataclasses.replace(one, file_hash="another") for one in record.scenarios]


def test_a_changed_scenario_is_marked() -> None:
    found = compare(OLD[:1], [dataclasses.replace(OLD[0], scenarios=_changed(OLD[0]))])
    assert found.changes[0].source_changed
    assert "dense torch cpu ⚠" in drawn(comparisons.changes(found, "a", "b"))


UNJUDGED = "^nothing could be judged, so this is no pass: "


def test_where_nothing_is_judged_that_is_no_pass() -> None:
    compare(OLD, side(2.0, 2.01, 1.99, first=2)).require_decided()
    compare(OLD, [made.record(made.trial(1, failure=made.FAILURE))]).require_decided()
    with pytest.raises(Undecided, match=UNJUDGED + "1 case: a verdict needs three runs"):
        compare(OLD, side(4.0, first=2)).require_decided()
    with pytest.raises(Undecided, match=UNJUDGED + "1 case: different machines"):
        compare(OLD, on(side(*SLOW, first=2), chip="Chip 10")).require_decided()
    with pytest.raises(Undecided, match=UNJUDGED + "no case was measured on both sides"):
        compare(OLD, side(*SLOW, first=2, name="conv")).require_decided()
    with pytest.raises(Undecided, match=UNJUDGED + "1 case: inconclusive"):
        compare(OLD, side(2.0, 3.0, 4.0, first=2)).require_decided()


def test_machines_stand_side_by_side() -> None:
    other = dataclasses.replace(run(1.0, 1.0, 1.0), machine=dataclasses.replace(made.MACHINE, chip="Chip 10"))
    text = drawn(comparisons.side_by_side([("m1", summarize(OLD[0])), ("box", summarize(other))]))
    header, _, row = text.splitlines()[2:5]
    assert [case.strip() for case in header.strip("|").split("|")] == [
        "scenario", "fastest measured", "m1: torch cpu", "box: torch cpu",
    ]  # fmt: skip
    assert "2.00 ms" in row and "1.00 ms" in row


def test_sizes_of_a_sweep_are_cases_of_their_own_and_compared_by_the_step_inside_an_epoch() -> None:
    def sweep(factor: float, started: int) -> Record:
        trials = [
            made.trial(index, found=made.measurement(step * factor + index / 1000), options=Options(batch=batch))
            for batch, step in ((1, 1.0), (8, 5.0))
            for index in (1, 2, 3)
        ]
        found = [dataclasses.replace(one, code="a") for one in trials]
        return dataclasses.replace(made.record(*found, rounds=3), started=str(started))

    found = compare([sweep(1.0, index) for index in (1, 3, 5)], [sweep(2.0, index) for index in (2, 4, 6)])
    assert [(change.case.size, change.verdict) for change in found.changes] == [
        (Size(1), Verdict.SLOWER),
        (Size(8), Verdict.SLOWER),
    ]
    assert [change.old.value for change in found.changes] == pytest.approx([1.0, 5.0], rel=0.01)


def test_a_control_is_no_case_of_its_own() -> None:
    def twice(factor: float) -> Record:
        options = (Options(), Options(control=True))
        trials = [
            made.trial(index, options=one, found=made.measurement(factor * (2 + index / 100)))
            for index in (1, 2, 3)
            for one in options
        ]
        return made.record(*trials, rounds=3)

    (change,) = compare([twice(1.0)], [twice(1.5)]).changes
    assert (change.case, change.beside) == (TORCH, None)
