import pytest

from kerasbench.analysis.cases import HEADLINE, PREDICTED, PREDICTED_ONE
from kerasbench.modes import registry
from kerasbench.modes.versus import VersusConfig
from kerasbench.modes.versus.plan import VersusPlanner
from kerasbench.protocol.columns import Options
from kerasbench.protocol.stages import BATCH, ONE, TRAIN
from kerasbench.results.run import RunConfig
from kerasbench.runs.rows import Decision, RowProgress
from kerasbench.runs.schedule import stage_of
from kerasbench.runs.stopping import StopReason
from tests import made


@pytest.mark.parametrize(
    ("workload", "metric", "stage"),
    [
        ({}, HEADLINE, TRAIN),
        ({"predicts_only": True}, PREDICTED, BATCH),
        ({"predicts_only": True, "predict_batch": 1}, PREDICTED_ONE, ONE),
    ],
)
def test_a_row_without_trials_goes_on_for_what_its_workload_does(
    workload: dict[str, object], metric: str, stage: str
) -> None:
    row = RowProgress([made.changed(made.case(), selected={"workload": workload})])
    planner = registry.planner(RunConfig())
    assert (planner.metric(row), stage_of(planner.metric(row))) == (metric, stage)
    row.take(made.trial())
    assert planner.metric(row) == HEADLINE


@pytest.mark.parametrize(("had", "stop"), [(0, None), (1, StopReason.BROKEN)])
def test_a_base_beside_its_control_is_measured_once_where_the_head_is_missing(
    had: int, stop: StopReason | None
) -> None:
    row = RowProgress([made.case(), made.case(options=Options(control=True))], rounds_done=had)
    planner = VersusPlanner(RunConfig(), VersusConfig("old", ["new"], 0.03))
    assert planner.decide(row, Decision()).stop is stop


def test_what_leaves_a_row_is_alive_no_more() -> None:
    left, stays = made.case(), made.case(backend="jax")
    row = RowProgress([left, stays])
    row.apply(Decision(leaves={left.key}))
    assert (row.alive, row.cases, row.over) == ([stays], [left, stays], False)
    row.apply(Decision(StopReason.WON))
    assert row.over
