"""Git works on the repository that a command names, whatever a hook has in its environment."""

from pathlib import Path

import pytest

from kerasbench import git
from tests import repository


def test_all_variables_by_which_git_finds_another_repository_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = repository.git(Path(), "rev-parse", "--local-env-vars").split()
    assert "GIT_DIR" in listed
    for name in listed:
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "A B")
    left = git.environment()
    assert not left.keys() & set(listed) and left["GIT_AUTHOR_NAME"] == "A B"
