"""The commands that take settings: which options each has, and what a shell or Python said of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any, get_args

from kerasbench import modes, names, variants
from kerasbench.errors import UsageError
from kerasbench.names import ENVIRONMENTS
from kerasbench.settings import ELSEWHERE, Settings, options, require_said, words
from kerasbench.variants.variant import OptionSpec

# What an option with one value takes, by its type: the types of Python, in words.
KINDS: dict[type, str] = {str: "text", int: "a whole number", float: "a number", bool: "True or False"}
OF_VARIANTS = {variant.name: variant.option for variant in variants.ALL if variant.option}


@dataclass(frozen=True)
class AskedEnvironments(Settings):
    backends: list[str] = options(
        "--backend NAME", ENVIRONMENTS, "tensorflow, torch or jax. Default: all three.", names.BACKENDS
    )


@dataclass(frozen=True)
class AskedDoctor(AskedEnvironments):
    takes = ("backends", "python", *ELSEWHERE)


@dataclass(frozen=True)
class AskedCreate(AskedEnvironments):
    takes = ("backends",)


def asked_by(command: str) -> type[Settings]:
    if command in (names.DOCTOR, names.CREATE):
        return AskedDoctor if command == names.DOCTOR else AskedCreate
    mode = names.VERSUS if command == names.BISECT else command
    asked: type[Settings] = getattr(import_module(f"{modes.__name__}.{mode}"), f"{command.capitalize()}Settings")
    return asked


def options_of(command: str) -> dict[str, OptionSpec]:
    """Return a command's options by their names in Python, in the order of their groups in ``--help``."""
    asked, shared = asked_by(command), {field.name for field in fields(Settings)}
    options = {name: option for name, option in _declared(asked).items() if name in asked.takes or name not in shared}
    options |= {name: option for name, option in OF_VARIANTS.items() if command in variants.BY_NAME[name].offered_by}
    return dict(sorted(options.items(), key=lambda item: names.GROUPS.index(item[1].group)))


def _declared(asked: type[Settings]) -> dict[str, OptionSpec]:
    declared = [field for field in fields(asked) if "option" in field.metadata]
    return {field.name: replace(field.metadata["option"], kind=field.type) for field in declared}


def value(asked: Settings, name: str, option: OptionSpec) -> Any:
    if name not in OF_VARIANTS:
        return getattr(asked, name)
    return asked.choices.get(name, []) if option.many else name in asked.choices


def settings(command: str, given: Mapping[str, object], **arguments: object) -> Settings:
    """Return what a shell or Python said; ``arguments`` are no options of this command, as both sides of ``versus``.

    Raise TypeError if the command has no such option, and UsageError if a value is empty, or of another type.
    """
    known, given = options_of(command), dict(given)
    if own := given.pop("arguments", ()):
        if isinstance(own, str) or not isinstance(own, Sequence):
            raise UsageError(f"arguments takes a list of a script's own words, such as ['--epochs', '3'], not {own!r}")
        arguments["script_arguments"] = list(map(str, own))
    for name in given:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{command}() got an unexpected keyword argument {name!r}{guess}")
    asked = asked_by(command)
    declared = _declared(asked) | known
    values: dict[str, Any] = {**given, **arguments}
    for name in values.keys() & declared.keys():
        option, said = declared[name], values[name]
        values[name] = words(option.flag, said) if option.many else _plain(option, said)
    choices = {name: values.pop(name) for name in [*values] if name in OF_VARIANTS}
    chosen = {name: said if known[name].many else [""] for name, said in choices.items() if said}
    return asked(**values, choices=chosen)


def _plain(option: OptionSpec, value: object) -> object:
    if isinstance(value, str) and option.default != "":
        require_said(option.flag, value)
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
