"""The command line: parse, call, print, exit code.

Exit codes: 0 all asked-for cells measured; 1 usage or environment; 2 some cells failed; 3 regression found, where
asked to fail on one; 130 interrupted.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kerasbench import __version__
from kerasbench.errors import KerasbenchError, UsageError
from kerasbench.interrupts import EXIT_INTERRUPTED, heeded
from kerasbench.parameters import (
    Backends,
    BatchSizes,
    Budget,
    Data,
    Devices,
    Dtype,
    Fp32,
    Jit,
    MemoryLimit,
    Native,
    ProtocolName,
    Python,
    Quick,
    Results,
    Resume,
    Rigorous,
    Rounds,
    Scenarios,
    Seed,
    Threads,
    Timeout,
    Widths,
    split,
)
from kerasbench.printable import printable

if TYPE_CHECKING:
    from kerasbench.benchmark import Ended

EXIT_OK, EXIT_USAGE, EXIT_FAILED_CELLS, EXIT_REGRESSION = 0, 1, 2, 3
FORMATS = ("markdown", "csv", "json", "html")

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
    try:
        with heeded():
            code = app(with_default_command(given), prog_name="kerasbench", standalone_mode=False)
    except KerasbenchError as error:
        return _complain(str(error))
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # `kerasbench | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except _ParserError as error:
        return _complain(error.format_message())
    return code if isinstance(code, int) else EXIT_OK


def _complain(what: str) -> int:
    """Say on stderr what is wrong; it may quote a scenario or a file, and moves no cursor."""
    print(f"kerasbench: {printable(what)}", file=sys.stderr)
    return EXIT_USAGE


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
    scenario: Scenarios = None,
    backend: Backends = None,
    device: Devices = None,
    quick: Quick = False,
    rounds: Rounds = None,
    rigorous: Rigorous = False,
    budget: Budget = None,
    jit: Jit = None,
    dtype: Dtype = None,
    fp32: Fp32 = None,
    threads: Threads = None,
    native: Native = False,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    data: Data = "synthetic",
    protocol: ProtocolName = "steady",
    python: Python = None,
    results: Results = Path("results"),
    resume: Resume = False,
) -> int:
    """Measure, print the tables, keep the raw results.

    Lists may be separated by commas or repeated; each combination of --jit, --dtype, --fp32 and --threads is a column
    of its own.
    """
    from kerasbench import backends, benchmark, interpreters, limits, plan

    kind = plan.parse_protocol(protocol)
    budget_s = None if budget is None else plan.parse_duration_s(budget)
    asked = plan.Asked(
        scenarios=split(scenario),
        backends=split(backend),
        devices=split(device),
        options=plan.options_of(split(jit), split(dtype), split(fp32), split(threads), native),
        effort=plan.effort_of(quick, rounds, rigorous, kind, budget_s),
        seed=seed,
        data=plan.parse_data(data),
        timeout_s=timeout,
        memory_limit_bytes=None if memory_limit is None else limits.parse_size_bytes(memory_limit),
    )
    if resume and asked != plan.Asked():
        raise UsageError(
            "--resume goes on with what the interrupted run was asked for: give no option but --results and --python"
        )
    return finish(benchmark.measure(asked, results, interpreters.find(split(python), backends.names()), resume))


@app.command()
def sweep(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="One regime: name or file.")],
    batch_size: BatchSizes = None,
    width: Widths = None,
    backend: Backends = None,
    device: Devices = None,
    quick: Quick = False,
    rounds: Rounds = None,
    rigorous: Rigorous = False,
    budget: Budget = None,
    jit: Jit = None,
    dtype: Dtype = None,
    fp32: Fp32 = None,
    threads: Threads = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    data: Data = "synthetic",
    python: Python = None,
    results: Results = Path("results"),
) -> int:
    """Measure one scenario at many sizes: who overtakes whom where, and what a step is made of.

    `kerasbench run --resume` goes on with one that was interrupted.
    """
    from kerasbench import backends, benchmark, interpreters, limits, plan, sizes

    batches = sizes.parse_batches(split(batch_size) or ([] if width else sizes.DEFAULT_BATCHES))
    terms = plan.options_of(split(jit), split(dtype), split(fp32), split(threads))
    budget_s = None if budget is None else plan.parse_duration_s(budget)
    asked = plan.Asked(
        scenarios=[scenario],
        backends=split(backend),
        devices=split(device),
        options=sizes.crossed(terms, batches, sizes.parse_widths(split(width))),
        effort=plan.effort_of(quick, rounds, rigorous, "sweep", budget_s),
        seed=seed,
        data=plan.parse_data(data),
        timeout_s=timeout,
        memory_limit_bytes=None if memory_limit is None else limits.parse_size_bytes(memory_limit),
        refine=True,
    )
    return finish(benchmark.measure(asked, results, interpreters.find(split(python), backends.names())))


def finish(ended: "Ended") -> int:
    """Print how a run ended and return its exit code."""
    print(ended.brief)
    if ended.unsaved:
        print(f"kerasbench: {ended.unsaved}", file=sys.stderr)
        return EXIT_USAGE
    print(f"all tables: {ended.tables}\nraw results: {ended.data}", file=sys.stderr)
    if ended.plot is not None:
        print(f"plot: {ended.plot}", file=sys.stderr)
    if ended.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED_CELLS if ended.failed_cells else EXIT_OK


@app.command()
def explain(
    scenario: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Scenarios: name, pattern or file.")],
    backend: Backends = None,
    device: Devices = None,
    rounds: Rounds = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    python: Python = None,
    results: Results = Path("results"),
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False,
) -> int:
    """Say where an epoch's time goes and what would make it shorter, every sentence with its number."""
    from kerasbench import backends, benchmark, interpreters, limits, plan
    from kerasbench.explain import anatomies
    from kerasbench.report import explanation
    from kerasbench.results import load
    from kerasbench.summary import summarize

    asked = plan.Asked(
        scenarios=split(scenario),
        backends=split(backend),
        devices=split(device),
        effort=plan.effort_of(False, rounds, False),
        seed=seed,
        timeout_s=timeout,
        memory_limit_bytes=None if memory_limit is None else limits.parse_size_bytes(memory_limit),
        explain=True,
    )
    ended = benchmark.measure(asked, results, interpreters.find(split(python), backends.names()))
    found = anatomies(summarize(load(ended.data)))
    said = json.dumps(explanation.as_data(found), indent=2) if as_json else explanation.document(found)
    return finish(dataclasses.replace(ended, brief=said))


@app.command()
def report(
    places: Annotated[list[Path] | None, typer.Argument(metavar="[DIR|FILE]...", help="Default: results.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 where tables differ.")] = False,
    form: Annotated[
        str,
        typer.Option("--format", metavar="KIND", help="markdown (beside the data), or csv, json or html on stdout."),
    ] = "markdown",
    plots: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Draw the plots of each machine there, as PNG.")
    ] = None,
) -> int:
    """Make every page anew from its data: of runs, of machines, their index, and quotations in README.md and docs/."""
    from kerasbench import results
    from kerasbench.report import files, tidy
    from kerasbench.summary import summarize

    chosen = places or files.default_places(Path())
    if form not in FORMATS:
        raise UsageError(f"--format takes {', '.join(FORMATS)}, not {form!r}")
    if plots is not None:
        return _written(files.draw(chosen, plots))
    if form == "markdown":
        pages = files.made_from(chosen)
        return _check(files.stale(pages)) if check else _written(files.write(pages))
    if form == "html":
        from kerasbench.report import html

        print(html.document([(one.record.machine.chip, one) for one in files.machines(chosen).values()]), end="")
        return EXIT_OK
    records = [results.load(file) for file in files.expand(chosen)]
    if form == "csv":
        print(tidy.document([summarize(record) for record in records]), end="")
    else:
        print(results.as_json(records))
    return EXIT_OK


def _written(pages: list[Path]) -> int:
    print("\n".join(str(page) for page in pages) or "every page is as its data say")
    return EXIT_OK


def _check(differing: list[Path]) -> int:
    for tables in differing:
        print(
            f"kerasbench: {tables}: differs from its data; python -m kerasbench report makes it anew", file=sys.stderr
        )
    return EXIT_USAGE if differing else EXIT_OK


@app.command()
def compare(
    places: Annotated[list[Path], typer.Argument(metavar="OLD NEW [MORE]...", help="Result files or folders.")],
    fail_on: Annotated[
        str | None, typer.Option(metavar="regression", help="Exit with 3 where a cell became slower, or fails now.")
    ] = None,
) -> int:
    """Compare two sets of results cell by cell; more than two stand side by side."""
    from kerasbench import changes, results
    from kerasbench.report import comparison

    if fail_on not in (None, "regression"):
        raise UsageError(f"--fail-on takes regression, not {fail_on!r}")
    if len(places) < 2:
        raise UsageError("compare takes two or more result files or folders: OLD NEW")
    sides = [[results.load(file) for file in results.result_files(place)] for place in places]
    if len(places) > 2:
        if fail_on:
            raise UsageError("--fail-on needs two sets of results, OLD and NEW")
        print(
            comparison.side_by_side(
                [(place.stem or str(place), side) for place, side in zip(places, sides, strict=True)]
            )
        )
        return EXIT_OK
    found = changes.compare(*sides)
    print(comparison.changes(found, *(str(place) for place in places)))
    return EXIT_REGRESSION if fail_on and found.regressions else EXIT_OK


environments = typer.Typer(help="Environments for single backends.", rich_markup_mode=None)
app.add_typer(environments, name="env")


@environments.callback()
def environments_root() -> None:
    """Make an environment for each backend, with the wheels that fit this machine."""


@environments.command()
def create(
    backend: Backends = None,
    cuda: Annotated[bool, typer.Option("--cuda", help="With CUDA. Default: where there is an NVIDIA driver.")] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="For the CPU alone.")] = False,
    interpreter: Annotated[str, typer.Option(metavar="PATH", help="The Python to make it with.")] = sys.executable,
    constraint: Annotated[Path | None, typer.Option(metavar="FILE", help="pip's constraints.")] = None,
    index: Annotated[
        str | None, typer.Option(metavar="URL", help="Another index for pip, such as torch's for CPU builds.")
    ] = None,
    locked: Annotated[bool, typer.Option("--locked", help="Exactly what the lock of the last time names.")] = False,
    force: Annotated[bool, typer.Option("--force", help="In the place of an environment that is there.")] = False,
) -> int:
    """Make a virtual environment in .venvs/ for each backend, and have kerasbench use it from then on."""
    from kerasbench import backends, interpreters, plan, provision, trial
    from kerasbench.wire import ProbeReport

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or none for what this machine has")
    interpreters.find([], backends.names())  # a file that cannot be used is found out before the downloads
    gpu = True if cuda else False if cpu else None
    wish = provision.Wish(interpreter, gpu, constraint, index, locked, force)
    code = EXIT_OK
    for name in plan.parse_backends(split(backend), backends.names()) or backends.names():
        python = provision.create(name, wish)
        file = provision.remember({name: python})
        report = trial.probe(name, python)
        if isinstance(report, ProbeReport):
            print(f"{plan.describe_probe(report)}; {file} names it")
        else:
            print(f"{name}: made, but {report.cause}; python -m kerasbench doctor says more")
            code = EXIT_USAGE
    return code


@app.command()
def doctor(
    backend: Backends = None,
    python: Python = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with everything that was found out.")] = False,
) -> int:
    """Say what each backend sees, what is wrong, and the command that mends it."""
    from kerasbench import backends, interpreters, plan
    from kerasbench.doctor import diagnose
    from kerasbench.doctor.facts import gather
    from kerasbench.doctor.finding import Severity
    from kerasbench.lock import machine_lock
    from kerasbench.report import checkup

    names = plan.parse_backends(split(backend), backends.names()) or backends.names()
    chosen = interpreters.find(split(python), backends.names())
    with machine_lock():  # starting every framework would disturb a run
        facts = gather(names, chosen)
    findings = diagnose(facts)
    data = checkup.as_data(facts, findings)
    print(json.dumps(data, indent=2, ensure_ascii=False) if as_json else checkup.as_text(facts, findings))
    return EXIT_USAGE if any(finding.severity is Severity.ERROR for finding in findings) else EXIT_OK


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> int:
    """Show the scenarios and their regimes."""
    from kerasbench import catalog
    from kerasbench.report import listing

    entries = catalog.describe_all(catalog.builtin_files(), sys.executable)
    print(json.dumps(listing.as_data(entries), indent=2, ensure_ascii=False) if as_json else listing.as_table(entries))
    return EXIT_OK
