"""Arrays as Keras takes them: one, or several in lists, tuples and dictionaries, however nested.

Keras has such functions of its own (``keras.tree``), which cost the import of keras.
"""

from collections.abc import Callable, Iterator
from typing import Any


def leaves(given: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each array with the name of its place, such as ``x['tokens']``; dictionaries in the order of their keys."""
    if isinstance(given, dict):
        for key in sorted(given, key=str):
            yield from leaves(given[key], f"{name}[{key!r}]")
    elif isinstance(given, list | tuple):
        for number, one in enumerate(given):
            yield from leaves(one, f"{name}[{number}]")
    elif given is not None:
        yield name, given


def mapped(change: Callable[[Any], Any], given: Any) -> Any:
    """Return the same structure with each array changed; None, which stands for no array, stays."""
    if isinstance(given, dict):
        return {key: mapped(change, given[key]) for key in sorted(given, key=str)}
    if isinstance(given, list | tuple):
        return type(given)(mapped(change, one) for one in given)
    return None if given is None else change(given)


def first(given: Any) -> Any:
    """Return the first array, None where there is none."""
    return next((array for _, array in leaves(given)), None)


def is_nested(given: Any) -> bool:
    """Tell whether it is a structure of arrays, not one array."""
    return isinstance(given, dict | list | tuple)


def in_tuples(given: Any) -> Any:
    """Return the same structure with tuples for lists: a TensorFlow data set would make one tensor of a list."""
    if isinstance(given, dict):
        return {key: in_tuples(one) for key, one in given.items()}
    return tuple(in_tuples(one) for one in given) if isinstance(given, list | tuple) else given
