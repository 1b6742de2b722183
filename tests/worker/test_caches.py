"""What a child reads of the caches that earlier processes have left."""

import os
from pathlib import Path

import pytest

from kerasbench.worker import caches


def test_files_count_that_were_left_and_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = [tmp_path / f"{name}-cache" for name in ("first", "second", "third")]
    for file in [*programs[:2], tmp_path / "notes"]:
        file.write_text("kept")
    reads = caches.CacheReads(str(tmp_path), ["*-cache", "deeper/*"])
    assert reads.count == 0
    programs[0].read_text()
    (tmp_path / "notes").read_text()
    programs[2].write_text("its own")
    programs[2].read_text()
    assert reads.count == 1
    programs[1].unlink()
    assert reads.count == 1
    assert caches.CacheReads("", ["*"]).count == 0
    monkeypatch.setattr(caches, "keeps_access_times", lambda folder: False)
    assert caches.CacheReads(str(tmp_path), ["other-*"]).count == 0  # there is none
    assert caches.CacheReads(str(tmp_path), ["*-cache"]).count is None


@pytest.mark.parametrize("keeps", [True, False])
def test_access_times_are_found_out_with_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps: bool) -> None:
    def read_bytes(file: Path) -> bytes:
        if keeps:
            os.utime(file)
        return b"x"

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert caches.keeps_access_times(str(tmp_path)) is keeps
    assert list(tmp_path.iterdir()) == []
