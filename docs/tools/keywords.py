"""Print kerasbench/api/keywords.py: what each function of kerasbench takes by keyword alone, of the declared options.

python docs/tools/keywords.py > kerasbench/api/keywords.py
"""

from collections.abc import Iterator, Mapping, Sequence

from kerasbench.modes import COMMANDS
from kerasbench.modes.command import command, options_of
from kerasbench.settings import CROSSED, ELSEWHERE, RUN, OptionSpec

BEGINNING = '''\
"""Keywords of the functions. Made by ``python docs/tools/keywords.py > kerasbench/api/keywords.py``: do not edit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

Words = str | Sequence[str]  # one, several, or one text with commas
Numbers = float | str | Sequence[float | str]
Interpreters = Words | Mapping[str, str | Path]
'''
# Parameters that have their place, and what is for ``on_machines``.
WRITTEN = {"scenarios", "backends", "devices", "batch_sizes", "widths", *ELSEWHERE}
DECLARED = {name: command(name) for name in COMMANDS}
TABLES = [name for name in COMMANDS if CROSSED in DECLARED[name].settings.takes]
LISTS = {"N": "Numbers", "NAME=PATH": "Interpreters"}  # by metavar; the others are Words
BASES = {"Shared": [*COMMANDS], "Tables": TABLES}  # who takes what they have
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
        name: {option: type_of(spec) for option, spec in options_of(declared.settings).items() if option not in WRITTEN}
        for name, declared in DECLARED.items()
    }
    for name, declared in DECLARED.items():
        if declared.takes_model:  # its rows are ``data``, and that has its place
            del taken[name]["data"]
    inherited: dict[str, str] = {}  # the class that has an option
    for base, having in BASES.items():
        common = {name: kind for name, kind in taken[RUN].items() if all(name in taken[of] for of in having)}
        new = {name: kind for name, kind in common.items() if name not in inherited}
        yield _class(base, ["TypedDict"], new | (SCRIPT if base == "Shared" else {}))
        inherited |= {name: base for name in common if name not in inherited}
    for name, options in taken.items():
        bases = [base for base, having in BASES.items() if name in having]
        rest = {option: kind for option, kind in options.items() if inherited.get(option) not in bases}
        yield _class(name.capitalize(), [f"{base}Keywords" for base in bases], rest)


def _class(name: str, bases: Sequence[str], options: Mapping[str, str]) -> str:
    lines = [f"    {name}: {kind}" for name, kind in options.items()]
    return "\n".join([f"\n\nclass {name}Keywords({', '.join(bases)}, total=False):", *lines, ""])


if __name__ == "__main__":
    print("".join(text()), end="")
