"""The command line: parse, call, print, exit code.

Exit codes: 0 all asked-for cases measured; 1 usage or environment, or nothing could be judged where asked to fail on a
regression; 2 some cases failed; 3 regression found, where asked to fail on one; 130 interrupted.
"""

import os
import sys

import click

from kerasbench import __version__
from kerasbench.cli import EXIT_OK, EXIT_USAGE, commands
from kerasbench.cli.interrupts import EXIT_INTERRUPTED, heeded
from kerasbench.cli.options import Group, is_completing, with_default_command
from kerasbench.errors import KerasbenchError
from kerasbench.text import complain, write_whatever_stdout_takes

NAME = "kerasbench"

environments = Group(
    "env",
    purposes={"Commands": [commands.create]},
    help="Make a virtual environment for each backend, with the wheels that fit this machine.",
)
app = Group(
    NAME,
    purposes={
        "Measure": [commands.run, commands.sweep, commands.explain, commands.versus],
        "Read results": [commands.report, commands.compare],
        "Prepare": [commands.list_, commands.new, commands.doctor, environments],
    },
    help="Which Keras 3 backend is fastest for a model on this machine? Measure it.\n\n"
    "Options without a command are those of `run`: `kerasbench --quick` is `kerasbench run --quick`. "
    "`kerasbench run --help` shows them.",
    no_args_is_help=False,
    invoke_without_command=True,
    callback=lambda: None,
)
app = click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")(app)


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if not is_completing(NAME):
        given = with_default_command(given) or ["--help"]
    write_whatever_stdout_takes()
    try:
        with heeded():
            if is_completing(NAME):
                app.main(given, prog_name=NAME)
            with app.make_context(NAME, list(given)) as context:
                code = app.invoke(context)
    except click.exceptions.Exit as asked:  # --help, --version
        return asked.exit_code
    except KerasbenchError as error:
        return _refused(str(error))
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `kerasbench | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except click.ClickException as error:
        return _refused(error.format_message())
    return code if isinstance(code, int) else EXIT_OK


def _refused(what: str) -> int:
    complain(what)
    return EXIT_USAGE
