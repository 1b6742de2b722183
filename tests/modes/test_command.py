import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kerasbench.cli.preparing import DoctorSettings, EnvironmentSettings
from kerasbench.errors import UsageError
from kerasbench.modes import COMMANDS
from kerasbench.modes.command import command as declared
from kerasbench.modes.command import settings_of
from kerasbench.modes.run import RunSettings
from kerasbench.plan.parse import words

KINDS = [*(declared(name).settings for name in COMMANDS), DoctorSettings, EnvironmentSettings]


def test_lists_are_repeated_or_separated_by_commas_but_a_path_with_a_comma_is_one(tmp_path: Path) -> None:
    assert words("--backend", None) == []
    assert words("--backend", ["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    file, parts = tmp_path / "a,b" / "net.keras", [f"{tmp_path}/a", "b/net.keras"]
    file.parent.mkdir()
    assert words("--backend", [str(file)]) == parts
    file.touch()
    assert words("--backend", [str(file), f"{file},{file}", "x" * 5000]) == [str(file), *parts, *parts, "x" * 5000]
    labelled = f"torch={file.parent}"
    assert words("--backend", [labelled, "jax,tensorflow"]) == [labelled, "jax", "tensorflow"]
    assert words("--backend", ["torch=/no/a,jax=/no/b"]) == ["torch=/no/a", "jax=/no/b"]


def test_an_empty_word_is_no_choice_of_all() -> None:
    for given in ("", ["", " "], ","):
        with pytest.raises(UsageError, match="--scenario is empty"):
            settings_of("run", RunSettings, {"scenarios": given})
    with pytest.raises(UsageError, match="--budget is empty"):
        settings_of("run", RunSettings, {"budget": ""})
    assert settings_of("run", RunSettings, {"scenarios": [], "backends": ()}) == RunSettings()


def test_what_python_gives_is_of_the_type_of_its_option() -> None:
    whole, real = np.int64(3), np.float32(2.5)
    given = {"rounds": whole, "budget": real, "backends": {"jax": 1}.keys(), "threads": np.array([1, 2])}
    meant = settings_of("run", RunSettings, given)
    assert (meant.rounds, meant.budget, meant.backends, meant.choices) == (3, 2.5, ["jax"], {"threads": ["1", "2"]})
    assert type(meant.rounds) is int
    assert settings_of("run", RunSettings, {"backends": (name for name in ("jax", "torch"))}).backends == [
        "jax",
        "torch",
    ]


@pytest.mark.parametrize(
    ("command", "given", "complaint"),
    [
        ("run", {"protocol": None}, "--protocol takes text, not None"),
        ("fastest", {"purpose": None}, "--for takes text, not None"),
        ("explain", {"data": (1, 2)}, "--data takes text, not tuple"),
        ("run", {"budget": timedelta(minutes=1)}, "--budget takes text or a number, not timedelta"),
        ("run", {"memory_limit": [1]}, "--memory-limit takes text or a number, not list"),
        ("run", {"rounds": True}, "--rounds takes a whole number, not True"),
    ],
)
def test_what_is_of_another_type_is_refused_in_words(command: str, given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        settings_of(command, declared(command).settings, given)
