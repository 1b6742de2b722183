"""Two versions side by side, with figures that are known."""

import dataclasses
from collections.abc import Mapping

import pytest

from kerasbench.analysis.cases import HEADLINE
from kerasbench.analysis.estimates import Verdict
from kerasbench.analysis.summary import concerns, summarize
from kerasbench.analysis.versus import FIRST_STEP, MEMORY, ONE, THROUGHPUT, Versus, require_decided, versus
from kerasbench.errors import Undecided
from kerasbench.host.noise import WarningKind
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Measurement
from kerasbench.protocol.messages import Code
from kerasbench.results.record import Record, RunConfig, TrialRecord
from tests import made

OLD, NEW, AGAIN = Options(environment="old"), Options(environment="new"), Options(environment="old", control=True)
NAMES = ("dense", "conv", "deep", "wide")
SCATTER = (1.0, 1.001, 0.999)


def measured(step_ms: float, block: int, first_ms: float = 300, mib: float = 512, rate: float = 1) -> Measurement:
    """A trial whose slices drift, and whose other figures scatter by a thousandth from block to block."""
    off = SCATTER[block % 3]
    found = made.sliced([step_ms * off * (1 + 0.05 * cycle) for cycle in range(10)])
    training = dataclasses.replace(made.trained(found), first_step_ns=int(first_ms * off * made.MS))
    assert found.throughput is not None
    passes = [int(ns / rate / off) for ns in found.throughput.passes_ns]
    return dataclasses.replace(
        found,
        training=training,
        peak_rss_bytes=int(mib * off * (1 << 20)),
        throughput=dataclasses.replace(found.throughput, passes_ns=passes),
    )


def trials(
    of: Mapping[Options, Mapping[str, float]], backend: str = "torch", blocks: int = 3, name: str = "dense"
) -> list[TrialRecord]:
    """Columns of one backend in blocks of their own."""
    offset = {"torch": 0, "jax": 100}[backend] + 1000 * NAMES.index(name)
    return [
        made.in_block(
            offset + block,
            measured(block=block, **figures),
            round_index=block,
            backend=backend,
            options=options,
            name=name,
        )
        for block in range(1, blocks + 1)
        for options, figures in of.items()
    ]


def record(*found: TrialRecord, threshold: float = 0.03) -> Record:
    asked = RunConfig(versus=["old", "new"], threshold=threshold, control=True)
    return dataclasses.replace(made.record(*found, rounds=3), config=asked)


def only(*found: TrialRecord, threshold: float = 0.03) -> Versus:
    (one,) = versus(summarize(record(*found, threshold=threshold)))
    return one


def verdicts(found: Versus, metric: str = HEADLINE) -> dict[str, Verdict]:
    return {f"{one.pair.row.label} {one.pair.name}": one.verdict for one in found.of(metric)}


ALIKE = {OLD: {"step_ms": 2.0}, NEW: {"step_ms": 2.0}, AGAIN: {"step_ms": 2.0}}
SLOWER = ALIKE | {NEW: {"step_ms": 2.2}}


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
    assert found.means == {"torch cpu": pytest.approx(1.1**0.5, abs=0.01), "jax cpu": pytest.approx(7 / 9, abs=0.01)}
    assert found.overall == pytest.approx((slower.ratio.value * 7 / 9) ** (1 / 3), abs=0.01)


def test_a_threshold_hides_smaller_differences() -> None:
    assert verdicts(only(*trials(SLOWER), threshold=0.2)) == {"dense torch cpu": Verdict.SAME}
    assert only(*trials(SLOWER), threshold=0.0).effect == 0.03  # but nothing below the usual one is called different


def test_first_step_memory_and_prediction_are_compared_too() -> None:
    worse = {"step_ms": 2.0, "first_ms": 600, "mib": 1024, "rate": 0.5}
    found = only(*trials({OLD: {"step_ms": 2.0}, NEW: worse}))
    assert {one.metric for one in found.regressions} == {FIRST_STEP, MEMORY, THROUGHPUT}
    assert verdicts(found, ONE) == {"dense torch cpu": Verdict.SAME}
    (rate,) = found.of(THROUGHPUT)
    assert rate.ratio.value == pytest.approx(0.5, rel=1e-3)  # of a rate, less is worse


def test_where_the_base_differs_from_itself_nothing_is_called_different() -> None:
    found = only(*trials(SLOWER | {AGAIN: {"step_ms": 2.5}}))
    (one,) = found.of(HEADLINE)
    assert one.withheld and one.control is not None
    assert one.control.ratio.value == pytest.approx(1.24, abs=0.01)
    assert verdicts(found) == {"dense torch cpu": Verdict.INCONCLUSIVE}
    assert not found.is_worse


def test_each_backend_has_its_own_control() -> None:
    off = SLOWER | {AGAIN: {"step_ms": 2.5}}
    found = only(*trials(off), *trials(SLOWER, "jax"))
    assert verdicts(found) == {"dense jax cpu": Verdict.SLOWER, "dense torch cpu": Verdict.INCONCLUSIVE}


def test_a_head_that_computes_something_else_has_no_figures_and_that_is_worse() -> None:
    found = trials(ALIKE)
    changed = [
        dataclasses.replace(one, measurement=made.measurement(losses=(2.3, 2.0, 1.7, 1.4, 1.1, 0.8)))
        if one.options == NEW
        else one
        for one in found
    ]
    compared = only(*changed)
    ((pair, failure),) = compared.broken
    assert (pair.name, failure.code) == ("torch cpu", Code.PARITY)
    assert compared.of(HEADLINE) == []
    assert compared.is_worse and not compared.regressions
    assert compared.overall is None


@pytest.mark.parametrize("number", [0, 1], ids=["on a device that it does not see", "in its first trial"])
@pytest.mark.parametrize(("fails", "worse"), [(NEW, True), (OLD, False)])
def test_what_fails_with_the_head_alone_is_worse(fails: Options, worse: bool, number: int) -> None:
    kept = [one for one in trials(ALIKE) if one.options not in (fails, AGAIN)]
    failed = dataclasses.replace(made.trial(number, failure=made.FAILURE, options=fails), block=number)
    found = only(*kept, failed)
    assert found.is_worse is worse
    assert found.of(HEADLINE) == []
    (pair,) = found.pairs
    assert (pair.broken, pair.baseless) == ((made.FAILURE, None) if worse else (None, made.FAILURE))


def test_what_fails_with_base_and_head_alike_is_no_difference() -> None:
    (pair,) = only(*_failing(OLD), *_failing(NEW), *_failing(AGAIN)).pairs
    assert (pair.broken, pair.baseless) == (None, None)


def test_where_nothing_is_decided_that_is_no_pass() -> None:
    require_decided([only(*trials(ALIKE))])
    require_decided([only(*(one for one in trials(ALIKE) if one.options == OLD), *_failing(NEW))])
    with pytest.raises(Undecided, match="figures, all inconclusive"):
        require_decided([only(*trials(SLOWER)[:2])])
    with pytest.raises(Undecided, match="base and head share no figure"):
        require_decided([only(*_failing(OLD), *_failing(NEW))])
    with pytest.raises(Undecided):
        require_decided([])


@pytest.mark.parametrize(("figures", "worse"), [(ALIKE, False), (SLOWER, True)])
def test_figures_that_others_disturbed_are_no_pass(figures: Mapping[Options, Mapping[str, float]], worse: bool) -> None:
    """Memory is the same, which says nothing of the steps; what is worse in spite of it stays worse."""
    whole = trials(figures)
    disturbed = [
        dataclasses.replace(one, measurement=_disturbed(one)) if not worse or one.options == AGAIN else one
        for one in whole
    ]
    found = only(*disturbed)
    assert found.decided  # the memory
    assert found.is_worse is worse
    if not worse:
        with pytest.raises(
            Undecided, match=r"^not decided: other processes used the processors while \d of \d+ figures"
        ):
            require_decided([found])


def _disturbed(trial: TrialRecord) -> Measurement:
    assert trial.measurement is not None
    training = made.trained(trial.measurement)
    slices = [dataclasses.replace(slice_, disturbed=True) for slice_ in training.slices]
    return dataclasses.replace(trial.measurement, training=dataclasses.replace(training, slices=slices))


def _failing(options: Options) -> list[TrialRecord]:
    return [made.trial(1, failure=made.FAILURE, options=options)]


def test_what_is_the_same_but_for_its_options_is_a_pair_of_its_own() -> None:
    with_jit = {dataclasses.replace(options, jit=True): {"step_ms": ms} for options, ms in ((OLD, 4.0), (NEW, 3.0))}
    assert verdicts(only(*trials(ALIKE), *trials(with_jit, blocks=3))) == {
        "dense torch cpu": Verdict.SAME,
        "dense torch cpu jit=on": Verdict.FASTER,
    }


def test_a_run_that_compares_no_versions_has_nothing_to_say() -> None:
    assert versus(summarize(made.record(*trials(ALIKE), rounds=3))) == []


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
        (one,) = found.of(HEADLINE)
        assert one.ratio.half_width is not None
        return one.ratio.half_width, one.verdict

    (narrow, sure), (wide, unsure) = ratio_of(2.0), ratio_of(1.95)
    assert (sure, unsure) == (Verdict.SLOWER, Verdict.SLOWER) and wide > narrow
    assert ratio_of(2.4)[1] is Verdict.INCONCLUSIVE
