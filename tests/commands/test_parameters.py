from pathlib import Path

from kerasbench import backends
from kerasbench.commands.parameters import backend_names, split


def test_lists_are_repeated_or_separated_by_commas() -> None:
    assert split(["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    assert split(None) == []


def test_a_file_with_a_comma_in_its_path_is_one(tmp_path: Path) -> None:
    file = tmp_path / "a,b" / "net.keras"
    file.parent.mkdir()
    assert split([str(file)]) == [f"{tmp_path}/a", "b/net.keras"]
    file.touch()
    assert split([str(file), f"{file},{file}", "x" * 5000]) == [
        str(file),
        *2 * [f"{tmp_path}/a", "b/net.keras"],
        "x" * 5000,
    ]


def test_a_shell_is_offered_every_backend() -> None:
    assert backend_names() == backends.names()


def test_a_path_with_a_comma_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    assert split([f"torch={folder}", "jax,tensorflow"]) == [f"torch={folder}", "jax", "tensorflow"]
    assert split(["torch=/no/a,jax=/no/b"]) == ["torch=/no/a", "jax=/no/b"]
