"""What a machine may be told, what travels to it and what stays there; no other machine and no children."""

import dataclasses
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.results.run import RunConfig
from kerasbench.results.store import Store, load
from kerasbench.runs import run, share
from kerasbench.runs.run import SUPERSEDED, FinishedRun
from kerasbench.runs.share import Asker, Carriage, Order
from kerasbench.settings import Settings
from tests import made, stand_in

BEGUN = dataclasses.replace(made.record(made.trial()), stopped_because="interrupted")


def carriage(name: str = "mine.py", content: bytes = b"x = 1", group: str = "ab12", sha256: str = "") -> Carriage:
    return Carriage("mine.py", group, name, sha256 or hashlib.sha256(content).hexdigest(), content)


def test_files_that_have_travelled_lie_beside_each_other_in_a_folder_of_their_own(tmp_path: Path) -> None:
    names = share._write([carriage(), carriage("native/mine_torch.py", b"baseline")], tmp_path)
    assert names == {"mine.py": str(tmp_path / "ab12" / "mine.py")}
    assert (tmp_path / "ab12" / "native" / "mine_torch.py").read_bytes() == b"baseline"


@pytest.mark.parametrize(
    ("one", "complaint"),
    [
        *((carriage(name), "not the name of a file") for name in ("../x", "native/../../x", "/tmp/x")),
        *((carriage(group=group), "not the name of a file") for group in ("", "..", "/tmp")),
        (carriage(sha256="0" * 64), "mine.py: was changed on its way"),
    ],
)
def test_no_file_is_written_elsewhere_and_none_that_has_changed(tmp_path: Path, one: Carriage, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        share._write([one], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def of_own_files(tmp_path: Path) -> Settings:
    """Return settings that name files of one's own: two scenarios, of which one has a baseline, layers and rows."""
    (tmp_path / "native").mkdir()
    for name in ("mine.py", "native/mine_torch.py", "other.py", "layers.py", "rows.npz"):
        (tmp_path / name).write_text(name)
    mine, other, layers, rows = (str(tmp_path / name) for name in ("mine.py", "other.py", "layers.py", "rows.npz"))
    return Settings(["mnist_dense", f"{mine}/tiny", other], custom=layers, rows=rows)


def test_what_is_one_s_own_travels_by_its_content_to_the_same_place_in_any_order(
    of_own_files: Settings, tmp_path: Path
) -> None:
    found = share.carried(of_own_files)
    assert [one.name for one in found] == ["mine.py", "native/mine_torch.py", "other.py", "layers.py", "rows.npz"]
    assert all(one.content == one.name.encode() for one in found)
    assert [Path(one.place).name for one in found] == ["mine.py", "mine.py", "other.py", "layers.py", "rows.npz"]
    assert share.carried(Settings(["mnist_dense", "keras.applications.ResNet50"])) == []
    other = dataclasses.replace(of_own_files, scenarios=of_own_files.scenarios[::-1])
    first, again = ({(one.name, one.group) for one in share.carried(given)} for given in (of_own_files, other))
    assert first == again and len({group for _, group in first}) == 4


def test_what_is_too_large_or_not_there_does_not_travel(
    of_own_files: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        share.carried(dataclasses.replace(of_own_files, custom="gone.py"))
    monkeypatch.setattr(share, "MOST_FILES_BYTES", 20)
    with pytest.raises(UsageError, match="are not sent: copy them to each machine by other means"):
        share.carried(of_own_files)


class Heard(Asker):
    """Keeps what is sent, and has it acknowledged at once."""

    def __init__(self) -> None:
        super().__init__(-1, -1)
        self.sent: list[dict[str, Any]] = []

    def send(self, **parts: Any) -> int:
        self.sent.append(parts)
        return len(self.sent)

    def has_acknowledged(self, number: int) -> bool:
        return number == len(self.sent)


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(share, "shares", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["", "../x", "a b"])
def test_a_share_has_a_plain_name(there: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not the name of a share"):
        share.measure(Order(name, "run", Settings()), Heard(), lambda event: None)
    assert list(there.iterdir()) == []


def test_what_no_longer_counts_is_not_taken_for_the_run(tmp_path: Path) -> None:
    run.keep_superseded(tmp_path, BEGUN)
    assert share._before(tmp_path) is None
    store = Store.create(tmp_path, BEGUN.started)
    store.begin(BEGUN)
    assert share._before(tmp_path) == (store.journal, load(store.journal))


def test_a_share_that_is_being_measured_keeps_its_files(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = Order("3f2a", "run", Settings())

    @contextmanager
    def measured(config: RunConfig, folder: Path, *others: object) -> Iterator[FinishedRun]:
        (there / "3f2a" / "files").mkdir()
        with pytest.raises(UsageError, match="being measured there already"):
            share.measure(order, Heard(), lambda event: None)
        assert (there / "3f2a" / "files").is_dir()
        store = Store.create(folder, BEGUN.started)
        store.finish(BEGUN)
        yield FinishedRun(BEGUN, store)

    monkeypatch.setattr(share, "measured", measured)
    monkeypatch.setattr(share, "configured", lambda *given: (RunConfig(), Interpreters()))
    share.measure(order, Heard(), lambda event: None)
    assert not (there / "3f2a").exists()


@pytest.mark.parametrize("superseded", [0, 1])
def test_nothing_stays_but_what_no_longer_counts_and_the_asker_hears_where(
    there: Path, monkeypatch: pytest.MonkeyPatch, superseded: int
) -> None:
    @contextmanager
    def measured(config: RunConfig, folder: Path, *others: object) -> Iterator[FinishedRun]:
        store = Store.create(folder, BEGUN.started)
        store.finish(BEGUN)
        for _ in range(superseded):
            run.keep_superseded(folder, BEGUN)
        yield FinishedRun(BEGUN, store)

    monkeypatch.setattr(share, "measured", measured)
    monkeypatch.setattr(share, "configured", lambda *given: (RunConfig(), Interpreters()))
    asker = Heard()
    share.measure(Order("3f2a", "run", Settings()), asker, lambda event: None)
    left = list(there.rglob("*.json*"))
    assert [load(file).stopped_because for file in left] == [SUPERSEDED] * superseded
    assert (there / "3f2a").exists() is bool(superseded)
    said = [one["say"] for one in asker.sent if "say" in one]
    assert len(said) == superseded and all(f"kept in {left[0]}" in line for line in said)


def test_a_line_that_is_too_long_is_the_last_one_and_silence_ends_them() -> None:
    incoming, outgoing = os.pipe()
    os.write(outgoing, b"short\nmuch too long")
    assert list(share.lines(incoming, 10)) == [b"short", b"much too long"]
    assert list(share.lines(incoming, 10, silence_s=0.0)) == []
    os.close(incoming)
    os.close(outgoing)


def test_an_order_that_is_no_text_is_refused() -> None:
    incoming, telling = os.pipe()
    hearing, outgoing = os.pipe()
    os.write(telling, b'{"order": {"share": "\xff"}}\n')
    os.close(telling)
    asker = Asker(incoming, outgoing)
    with pytest.raises(UsageError, match="not an order"):
        asker.greet()
    asker.flushed()
    stand_in.wait_for(lambda: asker.is_gone)
    for descriptor in (incoming, hearing, outgoing):
        os.close(descriptor)
