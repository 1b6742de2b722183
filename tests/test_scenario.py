import sys
from pathlib import Path
from typing import Any

import pytest

from kerasbench import datasets
from kerasbench.scenario import (
    MAX_FILE_BYTES,
    Scenario,
    ScenarioError,
    Workload,
    file_hash,
    load,
)


def build(workload: Workload) -> None: ...


def data(samples: int, rng: object) -> tuple[list[int], list[int]]:
    return [], []


def scenario(*workloads: Workload) -> Scenario:
    return Scenario(build=build, data=data, workloads=workloads)


@pytest.mark.parametrize(
    ("workload", "batch_size", "steps", "full_steps"),
    [
        (Workload(train=51_000, batch=32), 32, 1594, 1593),  # with a partial last batch
        (Workload(train=112), 112, 1, 1),  # a full batch
        (Workload(train=10, batch=32), 10, 1, 1),  # a batch is never larger than the set
    ],
)
def test_steps_follow_from_samples_and_batch(workload: Workload, batch_size: int, steps: int, full_steps: int) -> None:
    assert (workload.batch_size, workload.steps, workload.full_steps) == (batch_size, steps, full_steps)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"train": 0}, {"train": True}, {"batch": 0}, {"epochs": 0}, {"validation": -1}, {"name": "../x"}),
        *({"parameters": -1}, {"operations": 1.5}, {"large": 1}, {"width": 0}),
    ],
)
def test_a_workload_that_means_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=r"must be"):
        Workload(**{"train": 8} | wrong)


NO_TUPLE = r"workloads must be a tuple such as \(Workload\(...\),\), with its comma"
SMALL, LARGE = Workload(train=8, name="small"), Workload(train=9, name="large", large=True)


@pytest.mark.parametrize(
    ("workloads", "complaint"),
    [
        *((none, NO_TUPLE) for none in ((), SMALL, ("small",), {"small": SMALL})),
        ((SMALL, SMALL), "different names"),
        ((LARGE,), "one workload must not be large"),  # it has one for a CPU
    ],
)
def test_a_scenario_needs_workloads_that_can_be_told_apart(workloads: Any, complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        Scenario(build=build, data=data, workloads=workloads)
    assert scenario(SMALL, LARGE).workloads == (SMALL, LARGE)
    with pytest.raises(ScenarioError, match="there are: small, large"):
        scenario(SMALL, LARGE).workload("base")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"source": 3}, {"kind": "big"}, {"learnable": "no"}, {"parameters": -1}, {"parameters": True}),
        *({"operations": -1}, {"build": "model"}, {"generate": "greedy"}),
        {"build": datasets.mnist(), "data": build},  # the two mixed up
        *({"class_weight": weights} for weights in ({"a": 1.0}, {0: "much"}, [1.0, 2.0])),
        *({"new_tokens": 2}, {"new_tokens": 0, "generate": len}),  # any two points lie on a line
    ],
)
def test_what_a_scenario_says_of_itself_is_of_the_right_kind(wrong: dict[str, Any]) -> None:
    right: dict[str, Any] = {"build": build, "data": data, "workloads": (Workload(train=8),)}
    with pytest.raises(ScenarioError, match=f"{next(iter(wrong))} must be"):
        Scenario(**right | wrong)


@pytest.fixture(autouse=True)
def _restored_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize(("content", "count"), [("", "none"), ("a = Scenario(**k)\nb = Scenario(**k)", "2")])
def test_a_file_has_one_scenario_and_a_name_and_is_not_huge(tmp_path: Path, content: str, count: str) -> None:
    head = "from kerasbench import Workload, Scenario\nk = dict(build=len, data=len, workloads=(Workload(train=1),))\n"
    file = tmp_path / "two.py"
    file.write_text(head + content)
    with pytest.raises(ScenarioError, match=f"has {count}"):
        load(file)
    with pytest.raises(ScenarioError, match="file's name"):
        load(tmp_path / "a|b.py")
    file.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ScenarioError, match="larger than"):
        file_hash(file)


def test_a_scenario_may_import_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_mine.py").write_text("TRAIN = 7")
    file = tmp_path / "mine.py"
    file.write_text(
        "import neighbour_of_mine\nfrom kerasbench import Workload, Scenario\n"
        "s = Scenario(build=len, data=len, workloads=(Workload(train=neighbour_of_mine.TRAIN),))"
    )
    assert load(file)[0].workloads[0].train == 7


def test_what_a_workload_says_of_its_model_replaces_what_the_scenario_says() -> None:
    special, plain = Workload(train=64, batch=8, name="s", parameters=5, operations=100), Workload(train=64, batch=8)
    both = Scenario(build=build, data=data, workloads=(special, plain), parameters=3, operations=10)
    assert [both.parameters_of(workload) for workload in both.workloads] == [5, 3]
    assert [both.operations_of(workload) for workload in both.workloads] == [2_400, 240]  # and twice back, eight rows
    assert (scenario(plain).parameters_of(plain), scenario(plain).operations_of(plain)) == (None, None)
