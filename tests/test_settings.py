import dataclasses
from pathlib import Path

import pytest

from kerasbench.errors import UsageError
from kerasbench.settings import Settings, listed, option, settings


def test_every_default_is_said() -> None:
    for one in dataclasses.fields(Settings):
        if "option" in one.metadata and one.default not in (dataclasses.MISSING, None, "", False):
            assert "default" in option(one.name).help.lower(), one.name


def test_lists_are_repeated_or_separated_by_commas_but_a_path_with_a_comma_is_one(tmp_path: Path) -> None:
    assert listed(None) == []
    assert listed(["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    file = tmp_path / "a,b" / "net.keras"
    file.parent.mkdir()
    assert listed([str(file)]) == [f"{tmp_path}/a", "b/net.keras"]
    file.touch()
    assert listed([str(file), f"{file},{file}", "x" * 5000]) == [
        str(file),
        *2 * [f"{tmp_path}/a", "b/net.keras"],
        "x" * 5000,
    ]
    assert listed([f"torch={file.parent}", "jax,tensorflow"]) == [f"torch={file.parent}", "jax", "tensorflow"]
    assert listed(["torch=/no/a,jax=/no/b"]) == ["torch=/no/a", "jax=/no/b"]


def test_an_empty_word_is_no_choice_of_all() -> None:
    for given in ("", ["", " "], ","):
        with pytest.raises(UsageError, match="--scenario got an empty word"):
            settings("run", {"scenarios": given})
    with pytest.raises(UsageError, match="--budget got an empty word"):
        settings("run", {"budget": ""})
    assert settings("run", {"scenarios": [], "backends": ()}) == Settings()
