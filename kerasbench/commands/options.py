"""Options of a shell, made of the settings that are declared in ``settings.py``; and a command's own few."""

from collections.abc import Callable, Iterable
from typing import Any

import click

from kerasbench import settings
from kerasbench.commands.help import Command, Option, command
from kerasbench.errors import UsageError
from kerasbench.settings import BACKENDS, DEVICES, SHOW, SUITES, Settings


def backend_names() -> list[str]:
    """Return what a shell offers for --backend."""
    from kerasbench import backends

    return backends.names()


def suite_names() -> list[str]:
    """Return what a shell offers for --suite."""
    from kerasbench.plan import catalog

    return list(catalog.suites())


OFFERS: dict[str, Callable[[], Iterable[str]]] = {BACKENDS: backend_names, SUITES: suite_names, DEVICES: lambda: ()}


def offering(offers: str | tuple[str, ...]) -> Callable[[Any, Any, str], list[str]]:
    """Return what completes a value in a shell."""

    def complete(context: Any, parameter: Any, incomplete: str) -> list[str]:
        names = OFFERS[offers]() if isinstance(offers, str) else offers
        return [name for name in names if name.startswith(incomplete)]

    return complete


def setting(name: str) -> Option:
    """Return a setting as an option of a shell."""
    found = settings.option(name)
    default = Settings.__dataclass_fields__[name].default
    kind: dict[str, Any] = {"is_flag": True} if isinstance(default, bool) else {"metavar": found.metavar}
    if settings.is_list(name):
        kind["multiple"] = True
    elif name in ("rounds", "batch_size", "seed"):
        kind["type"] = int
    if not settings.is_list(name):
        kind["default"] = default
    complete = offering(found.offers) if found.offers else None
    return Option([found.flag, name], help=found.help, group=found.group, shell_complete=complete, **kind)


def measuring(name: str, *arguments: click.Argument, more: Iterable[Option] = ()) -> Callable[[Any], Command]:
    """Make a command of all settings that it takes, of its arguments and of further options."""
    parameters = [*arguments, *map(setting, settings.options_of(name)), *more]
    return command(name, *parameters)


FAIL_ON = Option(
    ["--fail-on"],
    metavar="regression",
    help="Exit with 3 if something became significantly worse or fails now, and with 1 if nothing could be judged.",
    group=SHOW,
    shell_complete=offering(("regression",)),
)


def as_json(text: str = "Print JSON.") -> Option:
    return Option(["--json", "as_json"], is_flag=True, help=text, group=SHOW)


def require_regression(fail_on: str | None) -> None:
    """Raise UsageError for anything else that a command cannot fail on."""
    if fail_on not in (None, "regression"):
        raise UsageError(f"--fail-on takes regression, not {fail_on!r}")
