import dataclasses
from collections.abc import Mapping
from contextlib import nullcontext

import pytest

from kerasbench.analysis.cases import HEADLINE, PREDICTED
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.summary import summarize
from kerasbench.analysis.warnings import concerns
from kerasbench.errors import Undecided
from kerasbench.host.noise import WarningKind
from kerasbench.modes.versus import pairs
from kerasbench.modes.versus.bisect import case_of
from kerasbench.modes.versus.pairs import MEMORY, Versus, require_decided
from kerasbench.modes.versus.tell import VersusReport, undecided
from kerasbench.pages.series import history
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Phase
from kerasbench.results.run import Trial
from tests import made
from tests.made import known
from tests.records import AGAIN, ALIKE, NEW, OLD, SLOWER, compared, of_versions, versions
from tests.report.table import plain


def verdicts(versus: Versus, metric: str = HEADLINE) -> dict[str, Verdict]:
    contrasts = [contrast for contrast in versus.contrasts if contrast.metric == metric]
    return {" ".join(case_of(contrast)): known(contrast.verdict) for contrast in contrasts}


def failing(*columns: Options) -> list[Trial]:
    return [made.trial(1, failure=made.FAILURE, options=options) for options in columns]


def test_each_backend_s_head_is_held_against_its_own_base_of_the_same_options() -> None:
    faster = {OLD: {"step_ms": 9.0}, NEW: {"step_ms": 7.0}}
    with_jit = {options.but(jit=True): {"step_ms": ms} for options, ms in ((OLD, 4.0), (NEW, 3.0))}
    versus = compared(*versions(SLOWER), *versions(with_jit), *versions(faster, "jax"), *versions(ALIKE, name="conv"))
    assert verdicts(versus) == {
        "conv torch cpu": Verdict.SAME,
        "dense jax cpu": Verdict.FASTER,
        "dense torch cpu": Verdict.SLOWER,
        "dense torch cpu jit=on": Verdict.FASTER,
    }
    slower = versus.regressions[0]
    assert slower.ratio.value == pytest.approx(1.09, abs=0.01)  # an epoch has its overhead too
    assert (versus.base, versus.head, versus.is_worse) == ("old", "new", True)


@pytest.mark.parametrize(("rounds", "is_told"), [(1, True), (2, True), (3, False)])
def test_what_one_process_of_each_version_measured_is_not_to_be_published(rounds: int, is_told: bool) -> None:
    trials = [trial for trial in versions(SLOWER) if trial.round <= rounds]
    summary = summarize(dataclasses.replace(of_versions(*trials), rounds_completed=rounds))
    lines = [plain(line) for line in VersusReport().advice(summary)]
    assert any(line.startswith("Do not publish these numbers.") for line in lines) is is_told


def test_of_a_model_that_only_predicts_the_prediction_of_a_batch_is_compared() -> None:
    batches = [
        made.in_block(block, made.predicting([ms * (1 + 0.01 * cycle) for cycle in range(8)]), options=options)
        for block in (1, 2, 3)
        for options, ms in ((OLD, 2.0), (NEW, 2.4), (AGAIN, 2.0))
    ]
    first = made.untrained(of_versions(*batches))
    (versus,) = pairs.versions(summarize(first))
    (headline,) = versus.headlines
    assert (headline.metric, headline.verdict, versus.is_worse) == (PREDICTED, Verdict.SLOWER, True)
    (series,) = history([first, dataclasses.replace(first, started="2026-02")])
    assert [point.ratio.value for point in series.points] == pytest.approx([1.2, 1.2])


def test_a_threshold_hides_smaller_differences() -> None:
    assert verdicts(compared(*versions(SLOWER), threshold=0.2)) == {"dense torch cpu": Verdict.SAME}
    assert compared(*versions(SLOWER), threshold=0.0).effect == 0.03  # below the usual one nothing is called different
    assert pairs.versions(summarize(made.record(*versions(ALIKE), rounds=3))) == []  # a run that compares no versions


def test_where_the_base_differs_from_itself_nothing_is_called_different() -> None:
    off = SLOWER | {AGAIN: {"step_ms": 2.5}}
    versus = compared(*versions(off))
    (headline,) = versus.headlines
    assert headline.withheld and not versus.is_worse
    assert known(headline.control_ratio).value == pytest.approx(1.24, abs=0.01)
    both = compared(*versions(off), *versions(SLOWER, "jax"))  # each backend has its own control
    assert verdicts(both) == {"dense jax cpu": Verdict.SLOWER, "dense torch cpu": Verdict.INCONCLUSIVE}
    heavier = compared(*versions(SLOWER | {NEW: {"step_ms": 2.2, "mib": 1024}, AGAIN: {"step_ms": 2.0, "mib": 700}}))
    assert verdicts(heavier) == {"dense torch cpu": Verdict.SLOWER}  # so has each number
    assert verdicts(heavier, MEMORY) == {"dense torch cpu": Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("number", [0, 1], ids=["on a device that it does not see", "in its first trial"])
@pytest.mark.parametrize(("fails", "worse"), [(NEW, True), (OLD, False)])
def test_what_fails_with_the_head_alone_is_worse(fails: Options, worse: bool, number: int) -> None:
    kept = [trial for trial in versions(ALIKE) if trial.options not in (fails, AGAIN)]
    versus = compared(*kept, *(dataclasses.replace(trial, round=number, block=number) for trial in failing(fails)))
    assert (versus.is_worse, versus.headlines) == (worse, [])
    (pair,) = versus.pairs
    assert (pair.broken, pair.baseless) == ((made.FAILURE, None) if worse else (None, made.FAILURE))


def busy(figures: Mapping[Options, Mapping[str, float]], *hit: Options) -> Versus:
    return compared(*(made.disturbed(trial) if trial.options in hit else trial for trial in versions(figures)))


@pytest.mark.parametrize(
    ("comparisons", "said"),
    [
        ([compared(*versions(ALIKE))], ""),
        ([compared(*versions({OLD: ALIKE[OLD]}), *failing(NEW))], ""),
        ([busy(SLOWER, AGAIN)], ""),  # what is worse in spite of others stays worse
        # Memory is the same, which says nothing of the steps.
        ([busy(ALIKE, *ALIKE)], r"^undecided: other programs used the CPU while \d of \d+ numbers"),
        ([compared(*versions(SLOWER)[:2])], "numbers, all undecided"),
        ([compared(*failing(OLD, NEW, AGAIN))], "nothing was measured with both base and head"),
        ([], "nothing was measured"),
    ],
)
def test_where_nothing_is_decided_that_is_no_pass(comparisons: list[Versus], said: str) -> None:
    with pytest.raises(Undecided, match=said) if said else nullcontext():
        require_decided(comparisons)


def test_blocks_of_each_backend_are_no_lack_of_memory_and_the_fastest_of_all_is_no_question() -> None:
    assert concerns(summarize(of_versions(*versions(SLOWER, blocks=1), *versions(ALIKE, "jax", blocks=1)))) == []
    apart = [dataclasses.replace(trial, block=block) for block, trial in enumerate(versions(SLOWER, blocks=1), start=1)]
    assert {concern.what for concern in concerns(summarize(of_versions(*apart)))} == {WarningKind.APART}


def test_a_single_block_believes_no_more_than_its_control_allows() -> None:
    widths = []
    for again_ms, verdict in ((2.0, Verdict.SLOWER), (1.95, Verdict.SLOWER), (2.4, Verdict.INCONCLUSIVE)):
        sides = {OLD: {"step_ms": 2.0}, NEW: {"step_ms": 2.6}, AGAIN: {"step_ms": again_ms}}
        (headline,) = compared(*versions(sides, blocks=1)).headlines
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
    for trial in versions(ALIKE):
        ms = (import_ms or 0.0) if trial.options == NEW else 500.0
        import_ns = int(ms * made.SCATTER[trial.round % 3] * made.MS)
        phases = [Phase("import", 0, import_ns), Phase("keras", 0, made.MS)] if import_ms else trial.phases
        resolved = known(trial.measurement).resolved.versions | (head if trial.options == NEW else {})
        changed.append(made.changed(trial, phases=phases, measurement={"resolved": {"versions": resolved}}))
    versus = compared(*changed)
    is_moved = [contrast.is_decided for contrast in versus.untouched]
    assert (len(is_moved), sum(is_moved), versus.is_worse) == (untouched, moved, False)
    assert any("Importing the backend takes 1.2" in line for line in undecided(versus)) is bool(moved)
