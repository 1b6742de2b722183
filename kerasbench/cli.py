"""The command line: parse, call, print, exit code.

Exit codes: 0 all asked-for cells measured; 1 usage or environment; 2 some cells failed; 130 interrupted.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kerasbench import __version__
from kerasbench.errors import KerasbenchError

EXIT_OK, EXIT_USAGE, EXIT_FAILED_CELLS, EXIT_INTERRUPTED = 0, 1, 2, 130
DEFAULT_TIMEOUT_S = {"steady": 300.0, "published": 7200.0}

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure Keras 3 models on every backend and every device, each trial in a process of its own. "
    "Without a command: run (see `kerasbench run --help` for its options).",
)
# The parser's own error class: typer brings its parser along, and names it nowhere in public.
_ParserError: Any = typer.BadParameter.__mro__[2]


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is signal.SIG_DFL:  # not under nohup, which has it ignored
            signal.signal(ending, signal.default_int_handler)  # as Ctrl-C: end the child, keep what was measured
    try:
        code = app(with_default_command(given), prog_name="kerasbench", standalone_mode=False)
    except KerasbenchError as error:
        print(f"kerasbench: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `kerasbench | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except _ParserError as error:
        print(f"kerasbench: {error.format_message()}", file=sys.stderr)
        return EXIT_USAGE
    return code if isinstance(code, int) else EXIT_OK


def with_default_command(arguments: list[str]) -> list[str]:
    """Put ``run`` before options that name no command."""
    names_none = not arguments or (arguments[0].startswith("-") and arguments[0] not in ("--help", "--version"))
    return ["run", *arguments] if names_none else arguments


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False) -> None:
    if version:
        print(f"kerasbench {__version__}")


@app.command()
def run(
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN|FILE.py", help="Scenarios: name, pattern or file. Default: all."),
    ] = None,
    backend: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="tensorflow, torch, jax. Default: all that are installed.")
    ] = None,
    device: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="cpu, gpu, gpu:1. Default: all that a backend sees.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One short round: no intervals, no verdicts.")] = False,
    rounds: Annotated[int | None, typer.Option(min=1, help="Exactly so many rounds. Default: 3 to 5.")] = None,
    rigorous: Annotated[bool, typer.Option("--rigorous", help="Ten rounds.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds after which a trial is stopped. Default: 300 (published: 7200)."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the data, the weights and the order.")] = 0,
    data: Annotated[
        str, typer.Option(metavar="KIND", help="synthetic (drawn here, no download) or real (by keras.datasets).")
    ] = "synthetic",
    protocol: Annotated[
        str,
        typer.Option(metavar="KIND", help="steady (seconds a trial) or published (all published epochs, one round)."),
    ] = "steady",
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where the result file and the tables go.")] = Path(
        "results"
    ),
) -> int:
    """Measure, print the tables, keep the raw results. Lists may be separated by commas or repeated."""
    from kerasbench import plan
    from kerasbench.benchmark import measure

    ended = measure(
        scenarios=split(scenario),
        backend_names=split(backend),
        devices=split(device),
        effort=plan.effort_of(quick, rounds, rigorous, plan.parse_protocol(protocol)),
        seed=seed,
        data=plan.parse_data(data),
        timeout_s=timeout or DEFAULT_TIMEOUT_S[protocol],
        folder=results,
    )
    print(ended.brief)
    if ended.unsaved:
        print(f"kerasbench: {ended.unsaved}", file=sys.stderr)
        return EXIT_USAGE
    print(f"all tables: {ended.tables}\nraw results: {ended.data}", file=sys.stderr)
    if ended.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED_CELLS if ended.failed_cells else EXIT_OK


@app.command()
def report(
    places: Annotated[list[Path] | None, typer.Argument(metavar="[DIR|FILE]...", help="Default: results.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 where tables differ.")] = False,
) -> int:
    """Make the tables beside result files anew from their data."""
    from kerasbench import results
    from kerasbench.report import files

    data = [file for place in places or [Path("results")] for file in results.result_files(place)]
    if not check:
        for file in data:
            print(files.regenerate(file))
        return EXIT_OK
    differing = files.stale(data)
    for tables in differing:
        print(
            f"kerasbench: {tables}: differs from its data; python -m kerasbench report makes it anew", file=sys.stderr
        )
    return EXIT_USAGE if differing else EXIT_OK


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> int:
    """Show the scenarios and their regimes."""
    from kerasbench import catalog
    from kerasbench.report import listing

    entries = catalog.describe_all(catalog.builtin_files(), sys.executable)
    print(json.dumps(listing.as_data(entries), indent=2, ensure_ascii=False) if as_json else listing.as_table(entries))
    return EXIT_OK


def split(given: list[str] | None) -> list[str]:
    """Return the names in repeated and comma-separated options."""
    return [name.strip() for text in given or [] for name in text.split(",") if name.strip()]
