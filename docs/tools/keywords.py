"""Print kerasbench/keywords.py: what each function of kerasbench takes by keyword alone, of the declared options.

python docs/tools/keywords.py > kerasbench/keywords.py
"""

from collections.abc import Iterator, Sequence

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
    metavar, kind = settings.SPECS[name].metavar, settings.Settings.__annotations__.get(name, bool)
    if settings.SPECS[name].many:
        return LISTS.get(metavar, "Words")
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    return f"{text} | Path" if metavar in FILES else text


def text() -> Iterator[str]:
    """Yield the header, classes of what all functions take and all that make tables, and one for each of them."""
    yield BEGINNING
    taken = {
        command: [name for name in settings.options_of(command) if name not in WRITTEN] for command in names.MEASURING
    }
    common = [name for name in taken[names.RUN] if name != "data" and all(name in taken[of] for of in names.TABLES)]
    shared = [name for name in common if all(name in of for of in taken.values())]
    yield _class("Shared", "TypedDict", shared)
    yield _class("Tables", "SharedKeywords", [name for name in common if name not in shared])
    for command, options in taken.items():
        base, inherited = ("TablesKeywords", common) if command in names.TABLES else ("SharedKeywords", shared)
        left_out = {*inherited, *(["data"] if command in MODELS else [])}
        yield _class(command.capitalize(), base, [name for name in options if name not in left_out])


def _class(name: str, base: str, options: Sequence[str]) -> str:
    lines = [f"    {option}: {type_of(option)}" for option in options]
    return "\n".join([f"\n\nclass {name}Keywords({base}, total=False):", *lines, ""])


if __name__ == "__main__":
    print("".join(text()), end="")
