from kerasbench import backends
from kerasbench.commands.parameters import backend_names, split


def test_lists_are_repeated_or_separated_by_commas() -> None:
    assert split(["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    assert split(None) == []


def test_a_shell_is_offered_every_backend() -> None:
    assert backend_names() == backends.names()
