"""A file whose types are right and whose values cannot be is refused, whatever was done to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerasbench.errors import ResultsError
from kerasbench.report import markdown, tidy
from kerasbench.results import Store, load
from kerasbench.summary import summarize
from tests import made

Edit = Callable[[Any], None]


def written(folder: Path) -> tuple[Path, Any]:
    store = Store.create(folder, "2026-01-02T03:04:05Z")
    trials = [made.trial(index, backend=backend) for backend in ("jax", "torch") for index in (1, 2, 3)]
    store.finish(made.record(*trials, rounds=3))
    return store.data, msgspec.json.decode(store.data.read_bytes())


def edited(folder: Path, edit: Edit) -> Path:
    file, content = written(folder)
    edit(content)
    file.write_bytes(msgspec.json.encode(content))
    return file


def of_first(name: str, value: Any, *path: str) -> Edit:
    def edit(content: Any) -> None:
        part = content["trials"][0]
        for step in path:
            part = part[step]
        part[name] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (of_first("blocks", [], "measurement", "training"), "blocks that cannot be"),
        (of_first("blocks", [{"count": 0, "ns": 5}], "measurement", "training"), "blocks that cannot be"),
        (of_first("epochs_ns", [], "measurement", "training"), "no epochs beside its steps"),
        (of_first("epochs_ns", [-5], "measurement", "training"), "epochs that cannot be"),
        (of_first("wall_ns", 0, "measurement", "usage"), "a duration that cannot be"),
        (of_first("passes_ns", [], "measurement", "throughput"), "a duration that cannot be"),
        (of_first("steps_per_epoch", 0, "measurement"), "a count that cannot be"),
        (of_first("full_steps_per_epoch", -1, "measurement"), "a count that cannot be"),
        (of_first("measurement", None), "either a measurement or a failure"),
        (of_first("scenario", "other"), "trials of other, which is none of its scenarios"),
        (lambda content: content.update(minimal_effect=0), "a minimal effect of 0"),
    ],
)
def test_values_that_cannot_be_are_named(tmp_path: Path, edit: Edit, complaint: str) -> None:
    with pytest.raises(ResultsError, match=complaint):
        load(edited(tmp_path, edit))


def test_what_was_written_is_valid(tmp_path: Path) -> None:
    assert len(load(written(tmp_path)[0]).trials) == 6


def numbers(content: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Collect every number in a file, as its place."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, dict | list):
            numbers(value, found)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((content, key))
    return found


HOSTILE = st.one_of(
    st.integers(-(2**63), 2**63), st.sampled_from([0, -1, 1, 1e308, -1e308, 1e-320, 0.5, None, "", [], {}])
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_number_is_edited_a_file_is_refused_or_its_tables_are_drawn(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file, content = written(tmp_path_factory.mktemp("edited"))
    places = numbers(content, [])
    container, key = data.draw(st.sampled_from(range(len(places))).map(lambda index: places[index]))
    container[key] = data.draw(HOSTILE)
    file.write_bytes(msgspec.json.encode(content))
    try:
        record = load(file)
    except ResultsError:
        return
    summary = summarize(record)
    assert markdown.document(summary)
    assert tidy.document([summary])


@settings(max_examples=150, deadline=None)
@given(cut=st.integers(0, 10_000), garbage=st.binary(max_size=8), at=st.integers(0, 10_000))
def test_a_truncated_or_overwritten_file_is_refused_or_its_tables_are_drawn(
    tmp_path_factory: pytest.TempPathFactory, cut: int, garbage: bytes, at: int
) -> None:
    file, _ = written(tmp_path_factory.mktemp("cut"))
    content = bytearray(file.read_bytes())
    content[at : at + len(garbage)] = garbage
    file.write_bytes(bytes(content[: len(content) - cut] if cut % 2 else content))
    try:
        record = load(file)
    except ResultsError:
        return
    assert markdown.document(summarize(record))
