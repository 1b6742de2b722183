"""Which processors a trial may use."""

import os
from pathlib import Path
from typing import Any

import pytest

from kerasbench.variants import threads as threads_


def kernel(root: Path, siblings: dict[int, str]) -> Path:
    for cpu, text in siblings.items():
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("threads", "count", "cores"),
    [
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, 2, {0, 2}),  # of an Intel desktop
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, 3, {0, 1, 2}),
        ({0: "0,64", 1: "1,65", 64: "0,64", 65: "1,65"}, 2, {0, 1}),  # of an EPYC with 64 cores
        ({0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 4: "4", 5: "5"}, 5, {0, 1, 2, 4, 5}),  # two cores are efficient
        ({1: "0-1", 2: "2-3", 3: "2-3"}, 2, {1, 2}),  # a core whose first thread is somebody else's
    ],
)
def test_cores_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: Any, count: int, cores: Any
) -> None:
    kept: list[int] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(threads), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: kept.extend(cpus), raising=False)
    threads_.limit_processors(count, kernel(tmp_path, threads))
    assert set(kept) == cores


@pytest.mark.parametrize("text", ["", "rubbish", "0-", "-1", "0,x"])
def test_where_the_kernel_does_not_tell_each_processor_is_a_core(tmp_path: Path, text: str) -> None:
    assert threads_.siblings(7, kernel(tmp_path, {7: text})) == {7}
    assert threads_.siblings(8, tmp_path) == {8}
