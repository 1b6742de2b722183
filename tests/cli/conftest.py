from pathlib import Path

import pytest

from kerasbench.cli import main


class Shell:
    """The command line in this process, in an empty folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Run one command; return its exit code, and what it wrote to stdout and stderr."""
        return (main.main([*words]), *self._capsys.readouterr())

    def out(self, *words: str) -> str:
        """Run a command that must not fail; return what it wrote to stdout."""
        code, out, err = self(*words)
        assert code == 0, err
        return out

    def refused(self, *words: str) -> str:
        """Run a command that must be refused in one line; return that line."""
        code, out, err = self(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return err


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)
