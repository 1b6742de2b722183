import dataclasses

from kerasbench.analysis.findings import findings
from kerasbench.exchange.messages import Code
from kerasbench.report import markdown, page
from kerasbench.report.answer import CAUSES, overall, sentences
from kerasbench.results.record import Record
from tests import made
from tests.report.test_sweep import CROSSING, swept


def of(record: Record) -> list[str]:
    return sentences(findings(record))


def three_rounds(**step_ms: float) -> Record:
    trials = [
        made.trial(index, backend=backend, found=made.measurement(step_ms=step + index / 1000, overhead_ms=0.001))
        for backend, step in step_ms.items()
        for index in (1, 2, 3)
    ]
    return made.record(*trials, rounds=3)


def test_the_fastest_and_by_how_much_the_nearest_first() -> None:
    assert of(three_rounds(torch=6.9, jax=1.0, tensorflow=3.9)) == [
        "dense: JAX is fastest, 3.89× (3.89–3.90) faster than TensorFlow, 6.89× (6.87–6.90) than torch."
    ]


def test_those_that_are_level_have_no_winner() -> None:
    (found,) = of(three_rounds(jax=1.0, torch=1.001, tensorflow=2.0))
    assert found.startswith("dense: JAX and torch are level: no significant difference (torch 1.00")
    assert found.endswith("JAX is 1.998× (1.996–2.000) faster than TensorFlow.")


def test_one_round_is_not_proven() -> None:
    record = made.record(made.trial(), made.trial(backend="jax", found=made.measurement(1)), rounds=1)
    assert of(record) == ["dense: JAX looks fastest, 1.91× faster than torch (one round: not yet proven)."]
    assert overall(findings(record)) == "JAX looks the fastest in 1 of 1 row."


def test_a_single_column_has_its_time_and_a_failure_its_cause() -> None:
    oom = dataclasses.replace(made.FAILURE, code=Code.OOM)
    record = made.record(made.trial(backend="jax"), made.trial(failure=oom))
    assert of(record) == ["dense: JAX takes 2.10 ms a step. torch failed: out of memory."]


def test_every_code_has_words() -> None:
    assert CAUSES.keys() == set(Code)


def test_a_sweep_says_from_which_size_on() -> None:
    found = findings(swept(**CROSSING))
    assert sentences(found) == ["dense: torch is faster than JAX from about batch 27 (27–27) on."]
    assert overall(found) == ""


def not_trained(**batch_ms: tuple[float, ...]) -> Record:
    trials = [made.in_bout(1, made.predicting(each), backend=backend) for backend, each in batch_ms.items()]
    record = made.record(*trials)
    (scenario,) = record.scenarios
    regimes = [dataclasses.replace(made.regime(), predicts_only=True)]
    record.scenarios = [
        dataclasses.replace(scenario, description=dataclasses.replace(scenario.description, regimes=regimes))
    ]
    return record


def test_a_model_that_is_not_trained_is_compared_by_its_predictions() -> None:
    (found,) = of(not_trained(jax=(1.0,) * 20, torch=(2.0,) * 20))
    assert found.startswith("dense (predict): JAX is fastest, 2.0×")


def test_a_prediction_of_a_single_column_has_its_time() -> None:
    assert of(not_trained(jax=(1.5,) * 4)) == ["dense (predict): JAX takes 1.50 ms a prediction."]


def test_the_page_of_a_model_that_is_not_trained_says_so() -> None:
    drawn = markdown.rendered(page.whole(findings(not_trained(jax=(1.0,) * 20, torch=(2.0,) * 20))))
    assert "| dense (predict) |" in drawn
    assert "(predict): a model that is not trained, because it was saved without compile()" in drawn
