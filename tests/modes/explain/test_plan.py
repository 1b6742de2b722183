from dataclasses import replace

import pytest

from kerasbench import variants
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.modes import explain, registry
from kerasbench.modes.explain import ExplainConfig, ExplainSettings
from kerasbench.modes.explain.plan import config_of, with_causes
from kerasbench.plan import cases
from kerasbench.plan.cases import Plan
from kerasbench.plan.catalog import Selected
from kerasbench.processes import questions
from kerasbench.protocol.columns import Options
from kerasbench.protocol.messages import Code, Failure, ProbeReport
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES, LookRequest
from kerasbench.protocol.stages import ONE, PARTS
from kerasbench.results.run import RunConfig
from tests import made

CONFIG = explain.MODE.configured(RunConfig(), ExplainConfig(causes=True))
PLANNER = registry.planner(CONFIG)
PROBES = made.by_environment({"jax": ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [made.CPU])})


def of_steps(steps: int, name: str = "default") -> Selected:
    return Selected(made.entry(), made.workload(name, steps))


LONG, SHORT = of_steps(MIN_STEPS_FOR_SLICES), of_steps(MIN_STEPS_FOR_SLICES - 1, "short")


def planned(*scenarios: Selected) -> Plan:
    return cases.make(PLANNER, scenarios, PROBES, made.MACHINE)


def test_a_script_that_gives_a_stream_has_no_larger_batch() -> None:
    streamed = replace(LONG, workload=replace(LONG.workload, streams=True))
    assert any("batch" in case.options for case in planned(LONG).cases)
    assert not any("batch" in case.options for case in planned(streamed).cases)


def test_parts_are_measured_of_what_was_asked_for_beside_rivals_that_might_help() -> None:
    assert config_of(ExplainSettings()) == CONFIG
    plan = planned(LONG, SHORT)
    assert [(case.options.label, case.plan.kind, PARTS in case.plan.stages) for case in plan.cases] == [
        ("", "steady", True),
        ("jit=off", "steady", False),
        ("batch=128", "sweep", False),
    ]
    assert [case.label for case, _ in plan.absent] == ["dense/short jax cpu"]


@pytest.mark.parametrize(
    ("asked", "beside"),
    [
        ({}, []),
        ({"feed": "tf.data"}, []),
        ({"feed": "grain"}, [{"feed": "tf.data"}, {"feed": "grain", "workers": 2}]),
        ({"feed": "dataloader", "workers": 1}, [{"feed": "tf.data"}]),
    ],
)
def test_a_feed_that_has_workers_stands_beside_tf_data_and_more_of_them(
    asked: dict[str, str | int], beside: list[dict[str, str | int]]
) -> None:
    config = replace(CONFIG, options=[Options(**asked)])
    plan = cases.make(registry.planner(config), [LONG], PROBES, made.MACHINE)
    rivals = [case.options for case in plan.cases if not {"jit", "batch"} & set(case.options)]
    assert rivals == [Options(**asked), *(Options(**options) for options in beside)]


def test_an_epoch_that_holds_slices_can_be_taken_apart_and_one_step_fewer_cannot() -> None:
    assert PLANNER.refusal(LONG) is None
    cause, remedy = made.known(PLANNER.refusal(SHORT))
    assert f"has {MIN_STEPS_FOR_SLICES - 1} of the {MIN_STEPS_FOR_SLICES} steps" in cause
    assert remedy == "`kerasbench run --scenario dense.py/short` measures its epochs"
    cause, _ = made.known(PLANNER.refusal(made.changed(LONG, workload={"predicts_only": True})))
    assert cause == "dense is not trained, so it has no training step to explain"
    cause, _ = made.known(PLANNER.refusal(made.changed(LONG, workload={"loops": True})))
    assert cause == "dense is a script's own loop, whose steps cannot be taken apart"
    with pytest.raises(UsageError, match=r"fewer: dense/a \(1\), dense/b \(2\); `kerasbench run --scenario dense"):
        planned(of_steps(1, "a"), of_steps(2, "b"))


def test_a_case_stands_beside_each_that_is_explained_for_each_cause_that_it_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = "Keras 3.99.0 has another function than kerasbench can change"
    answers: list[dict[str, str] | Failure] = [
        {"without_returned_memory": "", "without_attention_dropout": "", "without_pooling_copy": known},
        Failure(Code.ERROR, "it cannot be built", "look at it"),
    ]
    asked: list[LookRequest] = []

    def look(request: LookRequest, *rest: object) -> dict[str, str] | Failure:
        asked.append(request)
        return answers[request.workload == "second"]

    monkeypatch.setattr(questions, "look", look)
    plan = with_causes(planned(LONG, of_steps(MIN_STEPS_FOR_SLICES, "second")), Interpreters(), lambda event: None)
    added = [case for case in plan.cases if not variants.competes(case.column)]
    assert [(case.options.label, PARTS in case.plan.stages, ONE in case.plan.stages) for case in added] == [
        ("without-attention-dropout", False, True),
        ("without-returned-memory", False, False),
    ]
    assert [case.plan.compares_outputs for case in plan.cases if PARTS in case.plan.stages] == [True, False]
    assert [(case.options.label, failure.cause) for case, failure in plan.absent] == [("without-pooling-copy", known)]
    assert plan.warnings[-1].endswith("no causes are tried, as a look at its model failed: it cannot be built")
    assert {request.workload for request in asked} == {"default", "second"}
