"""The command line: parse, call, print, exit code.

Exit codes: 0 all asked-for cells measured; 1 usage or environment, or nothing could be judged where asked to fail on a
regression; 2 some cells failed; 3 regression found, where asked to fail on one; 130 interrupted.
"""

import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from kerasbench import __version__
from kerasbench.commands import EXIT_OK, EXIT_USAGE, measuring, preparing, reading
from kerasbench.commands.help import WIDTH, Command, Group, is_completing, with_default_command
from kerasbench.commands.interrupts import EXIT_INTERRUPTED, heeded
from kerasbench.errors import KerasbenchError
from kerasbench.text import complain, write_whatever_stdout_takes

NAME = "kerasbench"
SETTINGS = {"max_content_width": WIDTH}

app = typer.Typer(
    cls=Group,
    context_settings=SETTINGS,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Which Keras 3 backend is fastest for a model on this machine? Measure it.\n\n"
    "Without a command, `run` is meant: `kerasbench --quick` is `kerasbench run --quick`. "
    "`kerasbench run --help` shows its options.",
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if not is_completing(NAME):
        given = with_default_command(given)
    write_whatever_stdout_takes()
    try:
        with heeded():
            code = app(given, prog_name=NAME, standalone_mode=False)
    except KerasbenchError as error:
        return _refused(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `kerasbench | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except typer.TyperException as error:
        return _refused(error.format_message())
    return code if isinstance(code, int) else EXIT_OK


def _refused(what: str) -> int:
    complain(what)
    return EXIT_USAGE


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False) -> None:
    if version:
        print(f"{NAME} {__version__}")


environments = typer.Typer(cls=Group, context_settings=SETTINGS, rich_markup_mode=None)


@environments.callback()
def environments_root() -> None:
    """Make a virtual environment for each backend, with the wheels that fit this machine."""


# By purpose, in the order in which --help shows them.
PURPOSES: dict[str, dict[str, Callable[..., int]]] = {
    "Measure": {
        "run": measuring.run,
        "sweep": measuring.sweep,
        "explain": measuring.explain,
        "versus": measuring.versus,
    },
    "Read results": {"report": reading.report, "compare": reading.compare},
    "Prepare": {"list": reading.list_, "new": preparing.new, "doctor": preparing.doctor},
}
for purpose, named in PURPOSES.items():
    for name, command in named.items():
        app.command(name, cls=Command, context_settings=SETTINGS, rich_help_panel=purpose)(command)
app.add_typer(environments, name="env", rich_help_panel="Prepare")
environments.command(cls=Command, context_settings=SETTINGS)(preparing.create)
