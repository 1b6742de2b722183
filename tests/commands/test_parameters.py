from kerasbench.commands.parameters import split


def test_lists_are_repeated_or_separated_by_commas() -> None:
    assert split(["torch, jax", "tensorflow,"]) == ["torch", "jax", "tensorflow"]
    assert split(None) == []
