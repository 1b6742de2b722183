"""What ``--json`` prints: records of runs whose numbers are known."""

import dataclasses
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from kerasbench.analysis.bisect import bisect
from kerasbench.analysis.cases import HEADLINE, PREDICTED_RATE
from kerasbench.analysis.findings import Findings
from kerasbench.analysis.history import history
from kerasbench.analysis.versus import compare
from kerasbench.protocol.columns import CaseKey, Column, Options
from kerasbench.report import data
from kerasbench.report.document import Document
from kerasbench.results.run import Counted, Run
from tests import made
from tests.made import JAX, TENSORFLOW
from tests.records import (
    AGAIN,
    ALIKE,
    CROSSING,
    DATED,
    NEW,
    OLD,
    RACED,
    SLOWER,
    exactly,
    raced,
    rivals,
    soaked,
    swept,
)
from tests.records import of_versions as record_of
from tests.records import versions as trials

Json = dict[str, Any]
JAX_CPU = {"backend": "jax", "device": "cpu", "options": {}}
TORCH_CPU = JAX_CPU | {"backend": "torch"}


def printed(document: Document) -> Json:
    """Return what a script reads, which fits the types that the schema in docs/ is made of."""
    text = json.dumps(document.to_data(), allow_nan=False)
    assert msgspec.json.decode(text, type=Document) == document
    read: Json = json.loads(text)
    return read


def of_run(run: Run) -> Json:
    return printed(data.of_run(Findings.of(run), [run]))


def one_of(records: Sequence[Json], **wanted: object) -> Json:
    (record,) = (record for record in records if wanted.items() <= record.items())
    return record


def side_by_side(steps_ms: Mapping[str, float]) -> Run:
    measured = [
        made.in_block(block, made.sliced([ms * (1 + block / 1000)] * 10), backend=backend)
        for block in (1, 2, 3)
        for backend, ms in steps_ms.items()
    ]
    return made.record(*measured, rounds=3)


def test_a_run_has_its_numbers_and_what_each_takes_over_the_fastest() -> None:
    document = of_run(side_by_side({"jax": 2.0, "torch": 3.0}))
    assert (document["schema"], document["command"], document["machine"]["chip"]) == (1, "run", "Chip 9")
    assert [run["rounds"] for run in document["runs"]] == [3]
    step = one_of(document["results"], metric=HEADLINE, configuration=TORCH_CPU)
    assert (step["scenario"], step["workload"], step["unit"], step["trials"]) == ("dense", "default", "ms", 3)
    assert (step["value"], step["sessions"]) == (pytest.approx(3.1, abs=0.1), 1)
    assert step["low"] < step["value"] < step["high"]
    ratio = one_of(document["ratios"], metric=HEADLINE)
    assert (ratio["configuration"], ratio["over"], ratio["verdict"]) == (TORCH_CPU, JAX_CPU, "slower")
    assert ratio["low"] < ratio["takes_times_as_much"] < ratio["high"]
    assert ratio["takes_times_as_much"] == pytest.approx(1.5, abs=0.05)
    (fastest,) = document["fastest"]
    assert (fastest["configuration"], fastest["metric"], fastest["clearly"]) == (JAX_CPU, HEADLINE, True)


def test_of_a_rate_more_is_less_time_for_each_sample() -> None:
    document = of_run(
        record_of(*trials({OLD: {"step_ms": 2.0}, NEW: {"step_ms": 2.0, "rate": 0.5}, AGAIN: {"step_ms": 2}}))
    )
    ratio = one_of(document["ratios"], metric=PREDICTED_RATE, is_control=False)
    assert (ratio["takes_times_as_much"], ratio["verdict"]) == (pytest.approx(2.0, abs=0.01), "slower")


def test_a_case_that_failed_has_its_cause_and_no_number() -> None:
    document = of_run(made.record(made.trial(failure=made.FAILURE), made.trial(backend="jax")))
    (failure,) = document["failures"]
    assert (failure["configuration"], failure["code"], failure["phase"]) == (TORCH_CPU, "crash", "train")
    assert (failure["cause"], failure["remedy"]) == (made.FAILURE.cause, made.FAILURE.remedy)
    assert {result["configuration"]["backend"] for result in document["results"]} == {"jax"}
    assert document["fastest"] == document["ratios"] == []


def test_a_warning_names_its_kind_and_whom_it_is_about() -> None:
    document = of_run(made.record(made.trial(noise=(made.DISTURBED,))))
    (warning,) = [warning for warning in document["warnings"] if warning["kind"] == "disturbed"]
    assert (warning["scenario"], warning["workload"], warning["configurations"]) == ("dense", "default", [TORCH_CPU])
    assert warning["meaning"] and warning["remedy"]


def test_a_loss_that_is_no_number_is_none() -> None:
    lost = made.changed(made.measurement(), learning={"loss": float("nan")})
    document = of_run(made.record(made.trial(found=lost), made.trial(backend="jax")))
    losses = [result["configuration"]["backend"] for result in document["results"] if result["metric"] == "final_loss"]
    assert losses == ["jax"]


@pytest.mark.parametrize(("steps_ms", "verdict"), [(SLOWER, "slower"), (ALIKE, "same")])
def test_versions_have_the_head_over_the_base_and_a_control(steps_ms: Any, verdict: str) -> None:
    document = of_run(record_of(*trials(steps_ms)))
    base, head = ({**TORCH_CPU, "options": {"environment": name}} for name in ("old", "new"))
    ratio = one_of(document["ratios"], metric=HEADLINE, configuration=head)
    assert (document["command"], ratio["over"], ratio["verdict"], ratio["is_control"]) == (
        "versus",
        base,
        verdict,
        False,
    )
    again = one_of(document["ratios"], metric=HEADLINE, is_control=True)
    assert again["configuration"]["options"] == {"environment": "old", "control": True}
    assert (again["over"], again["verdict"], again["takes_times_as_much"]) == (base, None, pytest.approx(1, abs=0.01))
    assert document["fastest"] == []


def test_a_race_has_the_lines_that_choose_its_winner_and_who_was_dropped() -> None:
    document = of_run(RACED)
    (fastest,) = document["fastest"]
    assert document["command"] == "fastest"
    assert fastest["configuration"]["options"] == {"steps_per_execution": 8}
    assert fastest["to_use_it"] == ["export KERAS_BACKEND=jax", "model.compile(..., steps_per_execution=8)"]
    assert fastest["without_settings"]["backend"] == TENSORFLOW.backend
    dropped = {ratio["configuration"]["backend"]: ratio["dropped"] for ratio in document["ratios"]}
    (proven,), (close,) = (of_run(raced({JAX: 1.0, TENSORFLOW: ms}))["fastest"] for ms in (4.0, 1.03))
    assert (proven["clearly"], close["clearly"]) == (True, False)
    assert dropped == {JAX.backend: False, "tensorflow": True, "torch": True}
    assert all(ratio["takes_times_as_much"] > 1 for ratio in document["ratios"])


def test_an_explanation_has_the_parts_of_a_step_and_what_would_help() -> None:
    mine = [made.trial(index, found=made.with_parts(arrays_ms=4.0, ready_ms=3.0)) for index in (1, 2, 3)]
    run = made.record(*mine, *rivals(4.0, Options(batch=128)), rounds=3)
    run = made.changed(run, config={"explain": True}, flops=[Counted("dense", "default", 1e6)])
    document = of_run(run)
    parts = {part["metric"]: part["value"] for part in document["results"]}
    assert document["command"] == "explain"
    assert [parts[f"{name}_ms"] for name in ("input_pipeline", "framework", "computation")] == pytest.approx(
        [0.5, 1, 0.5]
    )
    assert parts["flops_per_s"] < parts["peak_flops_per_s"]
    advice = one_of(document["advice"], what="a larger batch")
    assert (advice["takes_times_as_much"], advice["instead_batch_size"]) == (pytest.approx(0.5), 128)


LINE = {"fixed_step_ms", "per_sample_ms"}  # of all sizes


def test_a_sweep_has_its_sizes_and_where_one_overtakes_another() -> None:
    document = of_run(swept(**CROSSING))
    sizes = {result["batch_size"] for result in document["results"] if result["metric"] not in LINE}
    assert (sizes, {result["metric"] for result in document["results"]} >= LINE) == ({1, 8, 64, 512}, True)
    (crossover,) = document["crossovers"]
    assert (document["command"], crossover["axis"], crossover["faster_above"]) == ("sweep", "batch", TORCH_CPU)
    assert crossover["low"] < crossover["at"] < crossover["high"]


def test_a_soak_has_its_trends(rng: random.Random) -> None:
    document = of_run(soaked(0, 64 << 10, rng))
    (trend,) = document["trends"]
    assert (document["command"], trend["unit"], trend["memory_grows"], trend["becomes_slower"]) == (
        "soak",
        "step",
        True,
        False,
    )
    assert trend["memory_bytes_per_unit"]["value"] == pytest.approx(64 << 10, rel=0.1)
    assert document["fastest"] == document["ratios"] == []


def test_two_sets_of_results_have_both_sides_and_why_there_is_no_verdict() -> None:
    old, new = (made.record(*made.thrice(ms), rounds=3) for ms in (2.0, 3.0))
    new = dataclasses.replace(new, started="2026-01-03T03:04:05Z")
    document = printed(data.of_comparison(compare([old], [new]), "before", "after"))
    assert [(result["side"], round(result["value"])) for result in document["results"]] == [("before", 2), ("after", 3)]
    (ratio,) = document["ratios"]
    assert (ratio["takes_times_as_much"], ratio["verdict"]) == (pytest.approx(1.5, abs=0.01), None)
    assert ratio["why_no_verdict"].startswith("a verdict needs three runs")


def test_a_history_has_a_ratio_for_each_run() -> None:
    points = printed(data.of_history(history(DATED)))["history"]
    assert [point["started"][8:10] for point in points] == ["01", "02", "03"]
    assert all(
        (point["configuration"], point["over"], point["metric"]) == (TORCH_CPU, JAX_CPU, HEADLINE) for point in points
    )
    assert [point["versions"]["keras"] for point in points] == ["3.9.0", "3.10.0", "3.15.0"]


def test_a_search_has_its_answer_and_every_version_that_was_tried() -> None:
    names = [f"keras==3.{minor}" for minor in range(6)]
    case = CaseKey("dense", "default", Column("torch", "cpu"))
    search = printed(data.of_search(bisect(6, exactly([1.0, 1.0, 1.0, 1.0, 1.25, 1.25])), names, case))["search"]
    assert (search["outcome"], search["last_fast"], search["first_slow"]) == ("found", "keras==3.3", "keras==3.4")
    assert search["case"]["configuration"] == TORCH_CPU
    assert [probe["version"] for probe in search["tried"]] == ["keras==3.2", "keras==3.3", "keras==3.4", "keras==3.5"]
    none = printed(data.of_search(bisect(6, exactly([1.0] * 6)), names, None))["search"]
    assert (none["outcome"], none["last_fast"], none["first_slow"], none["case"]) == ("none", None, None, None)
