"""What all loops share: which rows a batch takes, means, and what they may import."""

import ast
import contextlib
import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import pytest

from kerasbench import backends, native
from kerasbench.native import BaseLoop, Start, batches, take
from kerasbench.plan import catalog
from kerasbench.scenario import Workload

FILES = [*catalog.builtin_folder().glob("native/*.py"), *Path(native.__file__).parent.glob("*.py")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.parent.name}/{file.name}")
def test_a_baseline_and_its_loop_use_no_keras_and_one_framework(file: Path) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    packages = {module.partition(".")[0] for module in modules}
    assert "keras" not in packages | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert len(packages & set(backends.names())) <= 1


@pytest.mark.parametrize(("accuracy", "logs"), [(True, {"loss": 0.5, "accuracy": 0.75}), (False, {"loss": 0.5})])
def test_logs_are_means_over_samples(accuracy: bool, logs: dict[str, float]) -> None:
    loop = BaseLoop()
    loop._accuracy = accuracy
    assert loop._logs(10.0, 15, 20) == logs
    assert loop._logs(0.0, 0, 0) == dict.fromkeys(logs, 0.0)  # stopped before the first step


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_row_is_in_one_batch_and_the_last_may_be_partial(shuffle: bool) -> None:
    first, second = (list(batches(1001, 10, shuffle, "int32")) for _ in range(2))
    assert [len(rows) for rows in first] == [10] * 100 + [1]
    assert all(rows.dtype == np.int32 for rows in first)
    order, other = (np.concatenate(epoch).tolist() for epoch in (first, second))
    assert sorted(order) == list(range(1001))
    assert (order == sorted(order)) is (order == other) is not shuffle  # anew in each epoch


def test_one_batch_of_all_rows_is_taken_as_it_lies_and_others_are_gathered_from_both() -> None:
    assert list(batches(10, 10, True, "int64")) == list(batches(10, 32, False, "int64")) == [None]
    x: Any = np.arange(10)
    some_x, some_y = take(x, x % 3, np.array([4, 1]), lambda rows, chosen: rows[chosen])
    assert (some_x.tolist(), some_y.tolist()) == ([4, 1], [1, 1])
    assert take(x, x, None, lambda rows, chosen: None) == (x, x)


@pytest.mark.parametrize(("place", "waits"), [("cpu", []), ("cuda", ["accelerator"]), ("mps", ["mps"])])
def test_a_call_on_torch_waits_for_its_device(place: str, waits: list[str]) -> None:
    waited: list[str] = []
    torch: Any = ModuleType("torch")
    torch.nn, torch.device, torch.inference_mode = None, lambda name: SimpleNamespace(type=name), contextlib.nullcontext
    torch.zeros = lambda shape, device: SimpleNamespace(cpu=lambda: waited.append(device))
    torch.accelerator = SimpleNamespace(synchronize=lambda: waited.append("accelerator"))
    model = MagicMock(side_effect=lambda x: x)
    model.to.return_value = model
    with patch.dict(sys.modules, {"torch": torch}):
        sys.modules.pop("kerasbench.native.torch", None)
        module = importlib.import_module("kerasbench.native.torch")
        loop = module.Loop(Start([], Workload(train=8), place, False), model, list, accuracy=False)
        assert loop.caller(compiled=False)(3) == 3
    vars(native).pop("torch", None)
    assert waited == waits
