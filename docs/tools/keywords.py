"""Print kerasbench/keywords.py: what each function of kerasbench takes by keyword alone, of the declared options.

python docs/tools/keywords.py > kerasbench/keywords.py
"""

from collections.abc import Iterator, Sequence

from kerasbench import names, settings

BEGINNING = '''\
"""The keywords of ``api.py``. Made by ``python docs/tools/keywords.py > kerasbench/keywords.py``: do not edit."""

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
BASES = {"Shared": names.MEASURING, "Tables": names.TABLES, "Machines": names.ON_OTHERS}  # who takes what they have
FILES = ("FILE.py", "DIR")  # a Path is as good as a text


def type_of(name: str) -> str:
    metavar, kind = settings.SPECS[name].metavar, settings.Settings.__annotations__.get(name, bool)
    if settings.SPECS[name].many:
        return LISTS.get(metavar, "Words")
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    return f"{text} | Path" if metavar in FILES else text


def text() -> Iterator[str]:
    """Yield the header, classes of what several functions take, and one for each of them."""
    yield BEGINNING
    taken = {
        command: [name for name in settings.options_of(command) if name not in WRITTEN] for command in names.MEASURING
    }
    for command in MODELS:
        taken[command].remove("data")
    inherited: dict[str, str] = {}  # the class that has an option
    for base, commands in BASES.items():
        common = [name for name in settings.options_of(names.RUN) if all(name in taken[of] for of in commands)]
        yield _class(base, ["TypedDict"], [name for name in common if name not in inherited])
        inherited |= {name: base for name in common if name not in inherited}
    for command, options in taken.items():
        bases = [base for base, commands in BASES.items() if command in commands]
        rest = [name for name in options if inherited.get(name) not in bases]
        yield _class(command.capitalize(), [f"{base}Keywords" for base in bases], rest)


def _class(name: str, bases: Sequence[str], options: Sequence[str]) -> str:
    lines = [f"    {option}: {type_of(option)}" for option in options]
    return "\n".join([f"\n\nclass {name}Keywords({', '.join(bases)}, total=False):", *lines, ""])


if __name__ == "__main__":
    print("".join(text()), end="")
