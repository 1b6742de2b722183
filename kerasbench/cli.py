"""The command line: parse, call, print, exit code.

Exit codes: 0 all asked-for cells measured; 1 usage or environment; 2 some cells failed; 3 regression found, where
asked to fail on one; 130 interrupted.
"""

import os
import sys
from typing import Annotated

import typer

from kerasbench import __version__
from kerasbench.commands import EXIT_OK, EXIT_USAGE, measuring, preparing, reading
from kerasbench.commands.interrupts import EXIT_INTERRUPTED, heeded
from kerasbench.errors import KerasbenchError
from kerasbench.text import complain, write_whatever_stdout_takes

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure Keras 3 models on every backend and every device, each trial in a process of its own. "
    "Without a command: run (see `kerasbench run --help` for its options).",
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    write_whatever_stdout_takes()
    try:
        with heeded():
            code = app(with_default_command(given), prog_name="kerasbench", standalone_mode=False)
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


def with_default_command(arguments: list[str]) -> list[str]:
    """Put ``run`` before options that name no command."""
    names_none = not arguments or (arguments[0].startswith("-") and arguments[0] not in ("--help", "--version"))
    return ["run", *arguments] if names_none else arguments


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    if version:
        print(f"kerasbench {__version__}")


environments = typer.Typer(help="Environments for single backends.", rich_markup_mode=None)


@environments.callback()
def environments_root() -> None:
    """Make an environment for each backend, with the wheels that fit this machine."""


# In the order in which --help shows them.
for command in (measuring.run, measuring.sweep, measuring.explain, reading.report, reading.compare):
    app.command()(command)
app.command()(preparing.doctor)
app.command("list")(reading.list_)
app.add_typer(environments, name="env")
environments.command()(preparing.create)
