import os
from pathlib import Path

import pytest

from kerasbench.worker import checks

# The first four cores of an Intel desktop, of an EPYC with 64 cores, and of a hybrid chip with two efficient cores.
NEIGHBOURS = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}
FAR_APART = {0: "0,64", 1: "1,65", 64: "0,64", 65: "1,65"}
HYBRID = {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3", 4: "4", 5: "5"}


def machine(root: Path, siblings: dict[int, str]) -> Path:
    for cpu, text in siblings.items():
        folder = root / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{text}\n")
    return root


@pytest.mark.parametrize(
    ("threads", "count", "chosen"),
    [
        (NEIGHBOURS, 1, {0}),
        (NEIGHBOURS, 2, {0, 2}),
        (NEIGHBOURS, 3, {0, 1, 2}),
        (NEIGHBOURS, 4, {0, 1, 2, 3}),
        (FAR_APART, 2, {0, 1}),
        (FAR_APART, 3, {0, 1, 64}),
        (HYBRID, 4, {0, 2, 4, 5}),
        (HYBRID, 5, {0, 1, 2, 4, 5}),
        ({1: "0-1", 2: "2-3", 3: "2-3"}, 2, {1, 2}),  # a core whose first thread is somebody else's
    ],
)
def test_cores_come_before_their_second_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: dict[int, str], count: int, chosen: set[int]
) -> None:
    kept: list[int] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(threads), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: kept.extend(cpus), raising=False)
    checks.limit_processors(count, machine(tmp_path, threads))
    assert set(kept) == chosen


@pytest.mark.parametrize("text", [None, "", "rubbish", "0-", "-1", "0,x"])
def test_where_the_kernel_does_not_tell_each_processor_is_a_core(tmp_path: Path, text: str | None) -> None:
    root = machine(tmp_path, {} if text is None else {7: text})
    assert checks.siblings(7, root) == {7}


@pytest.mark.parametrize(
    ("cpus", "text"), [((), ""), ((3,), "3"), ((2, 0), "0,2"), ((0, 1, 2, 3), "0-3"), ((9, 1, 0, 5, 8), "0-1,5,8-9")]
)
def test_processors_are_written_as_linux_does(cpus: tuple[int, ...], text: str) -> None:
    assert checks.format_ranges(cpus) == text
    assert not cpus or checks.parse_ranges(text) == set(cpus)


def test_what_a_process_may_run_on_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4, 6}, raising=False)
    assert checks.processors_in_use() == "4,6"
    monkeypatch.delattr(os, "sched_getaffinity")
    assert checks.processors_in_use() == ""
