"""Whatever a result file holds: it is refused in one line, or it is read and every page of it is drawn."""

import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kerasbench.errors import ResultsError
from kerasbench.results.run import SCHEMA
from kerasbench.results.store import JOURNAL, load
from tests import hostile

BYTES = 1_000_000
BUILT = 3  # times a file's size: what is refused is read, and little is made of it
HELD = 30  # lists of the shortest numbers: two characters become 32 bytes; a real file becomes 11 times its size
SHARED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def is_drawn(folder: Path, content: bytes, suffix: str = ".json") -> bool:
    """Tell whether a file is read, and then drawn, or refused; anything else is raised."""
    file = folder / f"x{suffix}"
    file.write_bytes(content)
    try:
        record = load(file)
    except ResultsError:
        return False
    assert hostile.draw(record)
    return True


def test_what_is_edited_here_was_a_good_file(tmp_path: Path) -> None:
    assert is_drawn(tmp_path, hostile.encoded())
    assert is_drawn(tmp_path, hostile.journal(), JOURNAL)
    assert is_drawn(tmp_path, hostile.edited([]))
    assert is_drawn(tmp_path, hostile.encoded(hostile.COMPARED))


@SHARED
@given(hostile.EDITS, st.sampled_from([SCHEMA, hostile.COMPARED]))
def test_a_file_with_other_values_is_refused_or_drawn(tmp_path: Path, edits: list[hostile.Edit], run: int) -> None:
    is_drawn(tmp_path, hostile.edited(edits, run))


@SHARED
@given(st.integers(0, 20_000), st.integers(0, 20_000), st.binary(max_size=8), st.sampled_from([".json", JOURNAL]))
def test_a_file_that_was_cut_off_or_written_over_is_refused_or_drawn(
    tmp_path: Path, cut: int, at: int, garbage: bytes, suffix: str
) -> None:
    content = bytearray(hostile.journal() if suffix == JOURNAL else hostile.encoded())
    content[at : at + len(garbage)] = garbage
    is_drawn(tmp_path, bytes(content[:cut] if cut % 2 else content), suffix)


WORDS = [b"{", b"}", b"[", b"]", b",", b":", b"-", b'"', b"\n", b"\xff"]
WORDS += [b'"schema"', b'"trials"', b"3", b"1e999", b"null"]
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), st.binary(max_size=3)), max_size=20)


@SHARED
@given(TEXTS, st.sampled_from([".json", JOURNAL]))
def test_what_is_no_result_at_all_is_refused(tmp_path: Path, words: list[bytes], suffix: str) -> None:
    assert not is_drawn(tmp_path, b"".join(words), suffix)


def many(value: bytes, around: bytes = b"[%s]") -> bytes:
    return around.replace(b"%s", b",".join([value] * (BYTES // (len(value) + 1))))


GOOD = many(b"{}", b'{"unknown":[%s],') + hostile.encoded()[1:]


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        (GOOD, ".json"),  # of what is unknown nothing is built either
        (b"[" * BYTES + b"]" * BYTES, ".json"),
        (many(b"[" * 100 + b"]" * 100), ".json"),
        (b'"' + b"x" * BYTES + b'"', ".json"),
        (many(b"{}", b'{"schema":7,"trials":[%s]}'), ".json"),
        *((many(b"{}", b'{"schema":%d,"unknown":[%%s]}' % schema), ".json") for schema in (SCHEMA - 1, SCHEMA)),
        (hostile.encoded().replace(b'"trials":[', many(b"{}", b'"trials":[%s,'), 1), ".json"),
        (many(b'"a":1', b'{%s,"schema":7}'), ".json"),
        (b'{"schema":5' + b"0" * BYTES + b"}", ".json"),
        (b"\n" * BYTES, JOURNAL),
        (hostile.journal() + b"{}\n" * (BYTES // 3), JOURNAL),
    ],
)
def test_nothing_is_built_of_what_is_refused(tmp_path: Path, content: bytes, suffix: str) -> None:
    refused, most = peak_bytes(tmp_path, content, suffix)
    assert refused is (content is not GOOD)
    assert most < BUILT * len(content) + 500_000  # what a good file's beginning is


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"losses", b"0"),
        (b"calls_ns", b"999"),
        (b"slices", b'{"count":1,"ns":1}'),
        (b"weights", b'"ab"'),
        (b"phases", b'{"name":"","start_ns":0,"end_ns":0}'),
    ],
)
def test_what_is_read_is_held_in_a_few_times_its_size(tmp_path: Path, field: bytes, value: bytes) -> None:
    content = re.sub(rb'"%s":\[[^]]*\]' % field, b'"%s":%s' % (field, many(value)), hostile.encoded(), count=1)
    refused, most = peak_bytes(tmp_path, content, ".json")
    assert not refused
    assert most < HELD * len(content)


def peak_bytes(folder: Path, content: bytes, suffix: str) -> tuple[bool, int]:
    file = folder / f"x{suffix}"
    file.write_bytes(content)
    tracemalloc.start()
    try:
        load(file)
        return False, tracemalloc.get_traced_memory()[1]
    except ResultsError:
        return True, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
