"""What the command of a mode is, which options settings have, and what a shell or Python said of them."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar, get_args

from kerasbench import modes, variants
from kerasbench.errors import UsageError
from kerasbench.plan import parse
from kerasbench.settings import GROUPS, Argument, OptionSpec, Settings

# What an option with one value takes, by its type: the types of Python, in words.
KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}
OF_VARIANTS = {variant.name: variant.option for variant in variants.ALL if variant.option}
S = TypeVar("S", bound=Settings)


@dataclass(frozen=True)
class Command:
    """A command beside its purpose, which is in ``modes.COMMANDS``."""

    name: str
    settings: type[Settings]
    arguments: Sequence[Argument]
    _: KW_ONLY
    more: str = ""  # what --help says of it besides
    examples: Sequence[str] = ()  # each with what it is for, behind two spaces and #
    takes_model: bool = False  # a model object of Python, too
    compares: bool = False  # its runs may show a regression, for --fail-on

    @property
    def help(self) -> str:
        return f"{modes.COMMANDS[self.name]}\n\n{self.more}".rstrip()


def command(name: str) -> Command:
    mode = import_module(f"{modes.__name__}.{modes.MODES[name]}").MODE
    commands: dict[str, Command] = {command.name: command for command in mode.commands}
    return commands[name]


def options_of(kind: type[Settings]) -> dict[str, OptionSpec]:
    """Return the options of a command by their names in Python, in the order of their groups in ``--help``."""
    shared = {field.name for field in fields(Settings)}
    options = {name: option for name, option in _declared(kind).items() if name in kind.takes or name not in shared}
    options |= {name: option for name, option in OF_VARIANTS.items() if variants.BY_NAME[name].offer in kind.takes}
    return dict(sorted(options.items(), key=lambda item: GROUPS.index(item[1].group)))


def _declared(kind: type[Settings]) -> dict[str, OptionSpec]:
    declared = [field for field in fields(kind) if "option" in field.metadata]
    return {field.name: replace(field.metadata["option"], kind=field.type) for field in declared}


def value(settings: Settings, name: str, option: OptionSpec) -> Any:
    if name not in OF_VARIANTS:
        return getattr(settings, name)
    return settings.choices.get(name, []) if option.many else name in settings.choices


def settings_of(command: str, kind: type[S], given: Mapping[str, object], **arguments: object) -> S:
    """Return what a shell or Python said; ``arguments`` are no options of this command, as both sides of ``versus``.

    Raise TypeError if the command has no such option, and UsageError if a value is empty, or of another type.
    """
    offered, given = options_of(kind), dict(given)
    if own := given.pop("arguments", ()):
        if isinstance(own, str) or not isinstance(own, Sequence):
            raise UsageError(f"arguments takes a list of a script's own words, such as ['--epochs', '3'], not {own!r}")
        arguments["script_arguments"] = list(map(str, own))
    for name in given:
        if name not in offered:
            import difflib

            near = difflib.get_close_matches(name, offered, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{command}() got an unexpected keyword argument {name!r}{guess}")
    declared = _declared(kind) | offered
    values: dict[str, Any] = {**given, **arguments}
    for name in values.keys() & declared.keys():
        option, word = declared[name], values[name]
        values[name] = parse.words(option.flag, word) if option.many else _plain(option, word)
    choices = {name: values.pop(name) for name in [*values] if name in OF_VARIANTS}
    chosen = {name: words if offered[name].many else [""] for name, words in choices.items() if words}
    return kind(**values, choices=chosen)


def _plain(option: OptionSpec, value: object) -> object:
    if isinstance(value, str) and option.default != "":
        parse.require_said(option.flag, value)
    kinds = get_args(option.kind) or (option.kind,)
    if isinstance(value, Path):
        value = str(value)
    elif isinstance(value, Real) and not isinstance(value, bool):  # NumPy's too
        value = int(value) if isinstance(value, Integral) else float(value)
    if type(value) not in kinds and not (float in kinds and type(value) is int):
        takes = " or ".join(KINDS[kind] for kind in kinds if kind in KINDS)
        shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
        raise UsageError(f"{option.flag} takes {takes}, not {shown}")
    return value
