"""Print kerasbench/keywords.py: what each function of kerasbench takes by keyword alone, of the declared options.

python docs/tools/keywords.py > kerasbench/keywords.py
"""

from collections.abc import Iterator, Mapping, Sequence

from kerasbench import commands, names
from kerasbench.variants.variant import OptionSpec

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
ELSEWHERE = [name for name in names.MEASURING if "hosts" in commands.options_of(name)]
MODELS = (names.RUN, names.FASTEST)  # what takes a model object: its rows are ``data``, and that has its place
LISTS = {"N": "Numbers", "NAME=PATH": "Interpreters"}  # by metavar; the others are Words
BASES = {"Shared": names.MEASURING, "Tables": names.TABLES, "Machines": ELSEWHERE}  # who takes what they have
SCRIPT = {"arguments": "Sequence[str]"}  # a script's own, which a shell has behind ``--``
FILES = ("FILE.py", "DIR")  # a Path is as good as a text


def type_of(option: OptionSpec) -> str:
    if option.many:
        return LISTS.get(option.metavar, "Words")
    text = option.kind.__name__ if isinstance(option.kind, type) else str(option.kind)
    return f"{text} | Path" if option.metavar in FILES else text


def text() -> Iterator[str]:
    """Yield the header, classes of what several functions take, and one for each of them."""
    yield BEGINNING
    taken = {
        command: {name: type_of(option) for name, option in commands.options_of(command).items() if name not in WRITTEN}
        for command in names.MEASURING
    }
    for command in MODELS:
        del taken[command]["data"]
    inherited: dict[str, str] = {}  # the class that has an option
    for base, having in BASES.items():
        common = {name: kind for name, kind in taken[names.RUN].items() if all(name in taken[of] for of in having)}
        new = {name: kind for name, kind in common.items() if name not in inherited}
        yield _class(base, ["TypedDict"], new | (SCRIPT if base == "Shared" else {}))
        inherited |= {name: base for name in common if name not in inherited}
    for command, options in taken.items():
        bases = [base for base, having in BASES.items() if command in having]
        rest = {name: kind for name, kind in options.items() if inherited.get(name) not in bases}
        yield _class(command.capitalize(), [f"{base}Keywords" for base in bases], rest)


def _class(name: str, bases: Sequence[str], options: Mapping[str, str]) -> str:
    lines = [f"    {name}: {kind}" for name, kind in options.items()]
    return "\n".join([f"\n\nclass {name}Keywords({', '.join(bases)}, total=False):", *lines, ""])


if __name__ == "__main__":
    print("".join(text()), end="")
