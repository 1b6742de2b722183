"""What ``--json`` prints: records of runs whose numbers are known."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from kerasbench.modes.versus.bisect import bisect
from kerasbench.analysis.cases import HEADLINE, PREDICTED_RATE
from kerasbench.analysis.findings import Findings
from kerasbench.report import data
from kerasbench.report.document import Document
from kerasbench.results.run import Run
from tests import made
from tests.made import JAX, TENSORFLOW
from tests.records import (
    AGAIN,
    ALIKE,
    NEW,
    OLD,
    RACED,
    SLOWER,
    exactly,
    raced,
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


def test_a_search_that_finds_nothing_has_no_versions_between() -> None:
    names = [f"keras==3.{minor}" for minor in range(6)]
    none = printed(data.of_search(bisect(6, exactly([1.0] * 6)), names, None))["search"]
    assert (none["outcome"], none["last_fast"], none["first_slow"], none["case"]) == ("none", None, None, None)
