"""Print kerasbench/keywords.py: what each function of kerasbench takes by keyword alone, of the declared options.

python docs/tools/keywords.py > kerasbench/keywords.py
"""

from collections.abc import Iterator

from kerasbench import names, settings

BEGINNING = '''\
"""What the functions of ``api.py`` take by keyword alone, as types.

Made by ``python docs/tools/keywords.py > kerasbench/keywords.py`` from the options in ``settings.py``; do not edit.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

Words = str | Sequence[str]  # one, several, or one text with commas
Numbers = float | str | Sequence[float | str]
Interpreters = Words | Mapping[str, str | Path]
'''
WRITTEN = {"scenarios", "backends", "devices", "batch_sizes", "widths"}  # parameters that have their place
MODELS = (names.RUN, names.FASTEST)  # what takes a model object: its rows are ``data``, and that has its place
LISTS = {"N": "Numbers", "NAME=PATH": "Interpreters"}  # by metavar; the others are Words
FILES = ("FILE.py", "DIR")  # a Path is as good as a text


def type_of(name: str) -> str:
    metavar, kind = settings.option(name).metavar, settings.Settings.__annotations__[name]
    if settings.is_list(name):
        return LISTS.get(metavar, "Words")
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    return f"{text} | Path" if metavar in FILES else text


def text() -> Iterator[str]:
    """Yield the header, and a class for each function."""
    yield BEGINNING
    for command in names.MEASURING:
        left_out = WRITTEN | ({"data"} if command in MODELS else set())
        lines = [f"    {name}: {type_of(name)}" for name in settings.options_of(command) if name not in left_out]
        yield "\n".join([f"\n\nclass {command.capitalize()}Keywords(TypedDict, total=False):", *lines, ""])


if __name__ == "__main__":
    print("".join(text()), end="")
