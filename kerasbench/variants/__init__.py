"""The variants: choices that make columns, one file each in this folder or in ``causes``. A new one is one more file.

The parent imports these modules too: frameworks and NumPy are imported inside of what a child calls.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from kerasbench.backends import Backend
from kerasbench.protocol.columns import APART, Column, Options, Value
from kerasbench.runners import Predictor
from kerasbench.runners.feeders import FEEDERS, Feeder
from kerasbench.variants import causes
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.variant import Variant

for _folder in (__name__, causes.__name__):
    for _file in pkgutil.iter_modules(importlib.import_module(_folder).__path__):
        importlib.import_module(f"{_folder}.{_file.name}")
CAUSES: tuple[Cause, ...] = tuple(kind() for kind in Cause.__subclasses__())
_CHOICES = [kind() for kind in Variant.__subclasses__() if kind is not Cause]
# By name, as their files are: what a race crosses with others may ask for those before it alone.
ALL: tuple[Variant[Any], ...] = (*sorted(_CHOICES, key=lambda variant: (variant.last, variant.name)), *CAUSES)
BY_NAME: Mapping[str, Variant[Any]] = {variant.name: variant for variant in ALL}
# By name, of which types a value in a file may be.
TAKES: Mapping[str, tuple[type, ...]] = {
    "batch": (int,),
    "control": (bool,),
    "environment": (str,),
    "width": (int, float),
    **{variant.name: (variant.takes,) for variant in ALL},
}


def chosen(options: Options) -> Iterator[tuple[Variant[Any], Any]]:
    for name, value in options.choices.items():
        yield BY_NAME[name], value


def has(
    options: Options, trait: Literal["added", "explains", "exports", "keeps_memory", "prepares", "replaces"]
) -> bool:
    return any(getattr(variant, trait) for variant, _ in chosen(options))


def is_aside(options: Options) -> bool:
    """Tell whether a column is no configuration of its own: it repeats another one, or shows what makes that slow."""
    return options.control or has(options, "explains")


def competes(column: Column) -> bool:
    return not column.options.control and not any(variant.added for variant, _ in chosen(column.options))


def without(column: Column) -> Column:
    """Return the column that one stands beside which does not compete; itself, where it does."""
    added = [variant.name for variant, _ in chosen(column.options) if variant.added]
    return column.with_options(control=None, **dict.fromkeys(added))


def runner(options: Options) -> type[Predictor]:
    from kerasbench.runners.keras import KerasRunner

    others = (variant.runner(value) for variant, value in chosen(options) if variant.replaces or variant.exports)
    return next(others, KerasRunner)


def is_reference(options: Options) -> bool:
    """Tell whether others are held against what the column computes: it is of the Keras model itself, as it is."""
    return not (has(options, "added") or has(options, "exports"))


def belong(options: Options, backend: str) -> bool:
    """Tell whether a backend can have these at all: where not, there is no case."""
    return all(backend in variant.backends_of(value) for variant, value in chosen(options))


def interpreter(options: Options) -> str:
    """Return whose interpreter measures, where that is not the backend's."""
    return next((name for variant, value in chosen(options) if (name := variant.interpreter(value))), "")


def feeder(options: Options) -> Feeder | None:
    """Return what feeds ``fit`` in place of arrays."""
    return next((FEEDERS[name] for variant, value in chosen(options) if (name := variant.feeder(value))), None)


def pinned(options: Options) -> int | None:
    """Return how many processors a child may use; None: all."""
    return next((int(value) for variant, value in chosen(options) if variant.pins), None)


def batch(options: Options) -> int | None:
    """Return the batch size that a column has of its own; None: the workload's."""
    return next((int(value) for variant, value in chosen(options) if variant.batches), None)


def first_steps(options: Options, backend: Backend) -> int:
    return max((variant.first_steps(value, backend) for variant, value in chosen(options)), default=1)


def unrepeated(options: Options) -> Options:
    """Return the options of the column whose computation one with these repeats to the last digit."""
    return options.but(**dict.fromkeys(variant.name for variant, _ in chosen(options) if variant.repeats))


def of_file(values: Mapping[str, Any]) -> Options:
    """Return what a file says of a column; raise ValueError for what no column can have."""
    if not isinstance(values, dict):
        raise ValueError("no object says what is chosen for a configuration")
    for name, value in values.items():
        if name not in TAKES:
            raise ValueError(f"no configuration has {name[:40]!r}")
        if value is not None and (type(value) not in TAKES[name] or not _can_be(name, value)):
            raise ValueError(f"{name} cannot be {str(value)[:40]!r}")
    return Options(**{name: value for name, value in values.items() if not _is_default(name, value)})


def _can_be(name: str, value: Value) -> bool:
    words = {} if name in APART else BY_NAME[name].words
    return value in (*words, *words.values()) if words else type(value) is not int or value >= 1


def _is_default(name: str, value: Value | None) -> bool:
    """Tell whether a value, which older files have of all options, says nothing."""
    if name in APART or BY_NAME[name].added:
        return value is None or value is False or value == ""
    return BY_NAME[name].words.get(str(value), value) is None


def words_to_repeat(several: Sequence[Options]) -> list[tuple[str, str]]:
    """Return the flags and values that a run which goes on has to be told again."""
    pairs = (pair for options in several for pair in chosen(options) if pair[0].repeat_on_resume)
    return list(dict.fromkeys((f"--{variant.flag}", variant.word(value)) for variant, value in pairs))
