"""Commands that measure: run, sweep and explain."""

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kerasbench.commands import EXIT_FAILED_CELLS, EXIT_OK, EXIT_USAGE
from kerasbench.commands.interrupts import EXIT_INTERRUPTED
from kerasbench.commands.parameters import (
    Backends,
    BatchSizes,
    Budget,
    Data,
    Devices,
    Dtype,
    Fp32,
    Jit,
    KeepEnv,
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
    Wait,
    Widths,
    split,
)
from kerasbench.errors import UsageError

if TYPE_CHECKING:
    from kerasbench.analysis.summary import Summary
    from kerasbench.results.asked import Asked
    from kerasbench.runs.run import Ended

T = TypeVar("T")


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
    keep_env: KeepEnv = None,
    results: Results = Path("results"),
    wait: Wait = False,
    resume: Resume = False,
) -> int:
    """Measure, print the tables, keep the raw results.

    Lists may be separated by commas or repeated; each combination of --jit, --dtype, --fp32 and --threads is a column
    of its own.
    """
    from kerasbench.children import variables
    from kerasbench.plan import arguments
    from kerasbench.results import asked as results_asked

    kind = arguments.parse_protocol(protocol)
    budget_s = _parsed(arguments.parse_duration_s, budget)
    asked = results_asked.Asked(
        scenarios=split(scenario),
        backends=split(backend),
        devices=split(device),
        options=arguments.options_of(split(jit), split(dtype), split(fp32), split(threads), native),
        effort=arguments.effort_of(quick, rounds, rigorous, kind, budget_s),
        seed=seed,
        data=arguments.parse_data(data),
        timeout_s=timeout,
        memory_limit_bytes=_parsed(arguments.parse_size_bytes, memory_limit),
        keep_env=variables.kept(split(keep_env)),
    )
    if resume and asked != results_asked.Asked():
        raise UsageError(
            "--resume goes on with what the interrupted run was asked for: give no option but --results, --python and "
            "--wait"
        )
    return _finish(_measured(asked, results, python, wait, resume))


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
    keep_env: KeepEnv = None,
    results: Results = Path("results"),
    wait: Wait = False,
) -> int:
    """Measure one scenario at many sizes: who overtakes whom where, and what a step is made of.

    `kerasbench run --resume` goes on with one that was interrupted.
    """
    from kerasbench.children import variables
    from kerasbench.plan import arguments, sizes
    from kerasbench.results import asked as results_asked

    batches = sizes.parse_batches(split(batch_size) or ([] if width else sizes.DEFAULT_BATCHES))
    terms = arguments.options_of(split(jit), split(dtype), split(fp32), split(threads))
    budget_s = _parsed(arguments.parse_duration_s, budget)
    asked = results_asked.Asked(
        scenarios=[scenario],
        backends=split(backend),
        devices=split(device),
        options=sizes.crossed(terms, batches, sizes.parse_widths(split(width))),
        effort=arguments.effort_of(quick, rounds, rigorous, "sweep", budget_s),
        seed=seed,
        data=arguments.parse_data(data),
        timeout_s=timeout,
        memory_limit_bytes=_parsed(arguments.parse_size_bytes, memory_limit),
        keep_env=variables.kept(split(keep_env)),
        refine=True,
    )
    return _finish(_measured(asked, results, python, wait))


def explain(
    scenario: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Scenarios: name, pattern or file.")],
    backend: Backends = None,
    device: Devices = None,
    rounds: Rounds = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    python: Python = None,
    keep_env: KeepEnv = None,
    results: Results = Path("results"),
    wait: Wait = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with every figure.")] = False,
) -> int:
    """Say where an epoch's time goes and what would make it shorter, every sentence with its number."""
    from kerasbench.children import variables
    from kerasbench.plan import arguments
    from kerasbench.results import asked as results_asked

    asked = results_asked.Asked(
        scenarios=split(scenario),
        backends=split(backend),
        devices=split(device),
        effort=arguments.effort_of(False, rounds, False),
        seed=seed,
        timeout_s=timeout,
        memory_limit_bytes=_parsed(arguments.parse_size_bytes, memory_limit),
        keep_env=variables.kept(split(keep_env)),
        explain=True,
    )
    ended = _measured(asked, results, python, wait)
    said = _explained(ended.summary, ended.brief, as_json)
    return _finish(dataclasses.replace(ended, brief=said))


def _explained(summary: "Summary", brief: str, as_json: bool) -> str:
    """Return the explanation with what failed, or what a run says of itself where nothing could be explained."""
    import json

    from kerasbench.analysis.anatomy import anatomies
    from kerasbench.report import explanation
    from kerasbench.report.failures import failures

    found = anatomies(summary)
    besides = failures(summary) if found else brief
    if not as_json:
        return "\n\n".join(part for part in (explanation.document(found), besides) if part)
    if besides:
        print(besides, file=sys.stderr)
    return json.dumps(explanation.as_data(found), indent=2)


def _parsed(parse: Callable[[str], T], given: str | None) -> T | None:
    return None if given is None else parse(given)


def _measured(asked: "Asked", results: Path, python: list[str] | None, wait: bool, resume: bool = False) -> "Ended":
    from kerasbench import backends
    from kerasbench.environments import interpreters
    from kerasbench.runs.run import measure

    return measure(asked, results, interpreters.find(split(python), backends.names()), resume, wait)


def _finish(ended: "Ended") -> int:
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
