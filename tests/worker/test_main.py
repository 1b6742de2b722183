"""The child's first lines, under an interpreter that is too old for the rest."""

import io
import json
import os
import sys

import msgspec
import pytest

from kerasbench.protocol.messages import Code, Message
from kerasbench.worker.__main__ import refuse_old_python


def test_an_old_python_says_so_in_the_words_of_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    read_end, write_end = os.pipe()
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b't0ken {"kind": "ProbeRequest"}\n')))
    with pytest.raises(SystemExit):
        refuse_old_python(write_end)
    token, _, line = os.read(read_end, 10_000).partition(b" ")
    assert token == b"t0ken"
    failure = msgspec.json.decode(line, type=Message).failure
    assert failure is not None
    assert (failure.code, failure.phase) == (Code.UNAVAILABLE, "import")
    assert failure.cause == f"{sys.executable} is Python 3.9"
    assert "3.11 or newer" in failure.remedy
    assert json.loads(line).keys() == {"failure"}
    monkeypatch.undo()
    refuse_old_python(-1)  # this one is new enough
