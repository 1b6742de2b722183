"""Commands that measure: run, sweep and explain."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kerasbench.commands import EXIT_FAILED_CELLS, EXIT_OK, EXIT_REGRESSION, EXIT_USAGE
from kerasbench.commands.interrupts import EXIT_INTERRUPTED
from kerasbench.commands.parameters import (
    SHOW,
    Backends,
    BatchSizes,
    Budget,
    BusyCores,
    Compared,
    Control,
    Custom,
    Data,
    Devices,
    Dtype,
    FailOn,
    Fp32,
    Inputs,
    Jit,
    KeepEnv,
    MemoryLimit,
    ModelBatch,
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
    Suite,
    Threads,
    Threshold,
    Timeout,
    Trust,
    Wait,
    Widths,
    require_regression,
    split,
)
from kerasbench.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerasbench.analysis.findings import Findings
    from kerasbench.analysis.versus import Versus
    from kerasbench.environments.interpreters import Interpreters
    from kerasbench.report.drawn import Drawn
    from kerasbench.results.asked import Asked, Resumed


def run(
    scenario: Scenarios = None,
    suite: Suite = "",
    backend: Backends = None,
    device: Devices = None,
    input_: Inputs = None,
    batch_size: ModelBatch = None,
    custom: Custom = None,
    trust: Trust = False,
    quick: Quick = False,
    rounds: Rounds = None,
    rigorous: Rigorous = False,
    control: Control = False,
    budget: Budget = None,
    jit: Jit = None,
    dtype: Dtype = None,
    fp32: Fp32 = None,
    threads: Threads = None,
    native: Native = False,
    busy_cores: BusyCores = None,
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
    """Measure scenarios on backends and devices, print the tables and save the results.

    An option that takes a NAME or a list can be repeated, and takes commas: --backend jax,torch.
    """
    from kerasbench.plan import catalog, words
    from kerasbench.results.asked import Resumed

    said = words.Words(
        scenarios=split(scenario),
        suite=suite,
        backends=split(backend),
        devices=split(device),
        quick=quick,
        rounds=rounds,
        rigorous=rigorous,
        control=control,
        budget=budget,
        jit=split(jit),
        dtype=split(dtype),
        fp32=split(fp32),
        threads=split(threads),
        native=native,
        busy_cores=split(busy_cores),
        timeout_s=timeout,
        memory_limit=memory_limit,
        seed=seed,
        data=data,
        protocol=protocol,
        keep_env=split(keep_env),
        inputs=split(input_),
        batch=batch_size,
        custom=custom or "",
        trust=trust,
    )
    asked = words.run(said)
    if not resume:
        return _tell(_drawn(asked, results, python, wait))
    files = [one for one in said.scenarios if catalog.own_files([one])]
    if said != words.Words(budget=budget, scenarios=files, custom=said.custom, trust=trust):
        raise UsageError(
            "--resume reuses the interrupted run's options; only --budget, --results, --python and --wait may be "
            "added. Files of your own must be named again: --scenario FILE, --custom FILE, --trust"
        )
    return _tell(_drawn(Resumed(asked.effort.budget_s, files, asked.given), results, python, wait))


def sweep(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="One scenario: name or file.")],
    batch_size: BatchSizes = None,
    width: Widths = None,
    backend: Backends = None,
    device: Devices = None,
    input_: Inputs = None,
    custom: Custom = None,
    trust: Trust = False,
    quick: Quick = False,
    rounds: Rounds = None,
    rigorous: Rigorous = False,
    control: Control = False,
    budget: Budget = None,
    jit: Jit = None,
    dtype: Dtype = None,
    fp32: Fp32 = None,
    threads: Threads = None,
    busy_cores: BusyCores = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    data: Data = "synthetic",
    python: Python = None,
    keep_env: KeepEnv = None,
    results: Results = Path("results"),
    wait: Wait = False,
) -> int:
    """Measure one scenario at many batch sizes or widths: which column overtakes which, and where?

    `kerasbench run --resume` continues a sweep that was interrupted.
    """
    from kerasbench.plan import words

    asked = words.sweep(
        words.Words(
            scenarios=[scenario],
            backends=split(backend),
            devices=split(device),
            quick=quick,
            rounds=rounds,
            rigorous=rigorous,
            control=control,
            budget=budget,
            jit=split(jit),
            dtype=split(dtype),
            fp32=split(fp32),
            threads=split(threads),
            busy_cores=split(busy_cores),
            batch_sizes=split(batch_size),
            widths=split(width),
            timeout_s=timeout,
            memory_limit=memory_limit,
            seed=seed,
            data=data,
            keep_env=split(keep_env),
            inputs=split(input_),
            custom=custom or "",
            trust=trust,
        )
    )
    return _tell(_drawn(asked, results, python, wait))


def versus(
    base: Annotated[
        str,
        typer.Argument(metavar="BASE", help="A label, an interpreter, a checkout, or requirements: 'keras==3.14.*'."),
    ],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="What is compared with it, in the same words.")],
    scenario: Compared = None,
    backend: Backends = None,
    device: Devices = None,
    quick: Quick = False,
    rounds: Rounds = None,
    rigorous: Rigorous = False,
    budget: Budget = None,
    threshold: Threshold = "3%",
    fail_on: FailOn = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    data: Data = "synthetic",
    python: Python = None,
    keep_env: KeepEnv = None,
    results: Results = Path("results"),
    wait: Wait = False,
) -> int:
    """Compare two versions of Keras or of a backend side by side: what became faster or slower?

    Each is measured in the same bouts as the other, on every backend that has both. What has to be installed is put on
    top of the backend's interpreter, and kept for the next time.
    """
    from kerasbench import backends
    from kerasbench.environments import interpreters
    from kerasbench.plan.words import Words
    from kerasbench.report.preparation import Preparation
    from kerasbench.report.progress import to_stderr
    from kerasbench.runs import versions

    require_regression(fail_on)
    said = Words(
        scenarios=split(scenario),
        backends=split(backend),
        devices=split(device),
        quick=quick,
        rounds=rounds,
        rigorous=rigorous,
        budget=budget,
        timeout_s=timeout,
        memory_limit=memory_limit,
        seed=seed,
        data=data,
        keep_env=split(keep_env),
        threshold=threshold,
    )
    chosen = interpreters.find(split(python), backends.names())
    asked, both = versions.asked_for(base, head, said, chosen, Preparation(to_stderr()).say, wait)
    drawn = _drawn_by(asked, results, both, wait)
    code = _tell(drawn)
    return _gated(drawn.found.versus) if fail_on and code in (EXIT_OK, EXIT_FAILED_CELLS) else code


def _gated(found: "Sequence[Versus]") -> int:
    """Return the exit code of --fail-on: what fails with base and head alike is no difference between them."""
    from kerasbench.analysis.versus import require_decided

    if any(one.is_worse for one in found):
        return EXIT_REGRESSION
    if any(pair.baseless for one in found for pair in one.pairs):
        return EXIT_FAILED_CELLS
    require_decided(found)
    return EXIT_OK


def explain(
    scenario: Annotated[list[str], typer.Argument(metavar="SCENARIO...", help="Scenarios: name, pattern or file.")],
    backend: Backends = None,
    device: Devices = None,
    input_: Inputs = None,
    batch_size: ModelBatch = None,
    custom: Custom = None,
    trust: Trust = False,
    quick: Quick = False,
    rounds: Rounds = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    seed: Seed = 0,
    python: Python = None,
    keep_env: KeepEnv = None,
    results: Results = Path("results"),
    wait: Wait = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=SHOW)] = False,
) -> int:
    """Show where the time of an epoch goes, and what would make it shorter."""
    from kerasbench.plan import words
    from kerasbench.report import page
    from kerasbench.report.printed import print_page

    asked = words.explanation(
        words.Words(
            scenarios=split(scenario),
            backends=split(backend),
            devices=split(device),
            quick=quick,
            rounds=rounds,
            timeout_s=timeout,
            memory_limit=memory_limit,
            seed=seed,
            keep_env=split(keep_env),
            inputs=split(input_),
            batch=batch_size,
            custom=custom or "",
            trust=trust,
        )
    )
    drawn = _drawn(asked, results, python, wait)
    if as_json:
        print(_explained_as_json(drawn.found))
    else:
        print_page(page.explained(drawn.found))
    return _finish(drawn)


def _explained_as_json(found: "Findings") -> str:
    """Return an explanation as JSON, and print to stderr what is to be said beside it."""
    import json

    from kerasbench.report import explanation, markdown, page

    besides = page.beside(found)
    if besides.sections:
        print(markdown.rendered(besides), file=sys.stderr)
    return json.dumps(explanation.as_data(found.anatomies), indent=2)


def _drawn(asked: "Asked | Resumed", results: Path, python: list[str] | None, wait: bool) -> "Drawn":
    """Measure what was asked for, or go on with what was interrupted; save the data, the tables and the plot."""
    from kerasbench import backends
    from kerasbench.environments import interpreters

    return _drawn_by(asked, results, interpreters.find(split(python), backends.names()), wait)


def _drawn_by(asked: "Asked | Resumed", results: Path, chosen: "Interpreters", wait: bool) -> "Drawn":
    """The same, by interpreters that are known."""
    from kerasbench.report.audience import ConsoleAudience
    from kerasbench.report.drawn import draw
    from kerasbench.report.progress import to_stderr
    from kerasbench.runs.run import measured

    with measured(asked, results, chosen, ConsoleAudience(to_stderr()), wait) as ended:
        return draw(ended.record, ended.store, ended.unsaved)


def _tell(drawn: "Drawn") -> int:
    """Print what a run says of itself, and return its exit code."""
    from kerasbench.report import page
    from kerasbench.report.printed import print_page

    print_page(page.screen(drawn.found))
    return _finish(drawn)


def _finish(drawn: "Drawn") -> int:
    """Say where a run's files are, or why they are not, and return its exit code."""
    if drawn.unsaved:
        print(f"kerasbench: {drawn.unsaved}", file=sys.stderr)
        return EXIT_USAGE
    print(f"all tables: {drawn.tables}\nraw results: {drawn.data}", file=sys.stderr)
    if drawn.plot is not None:
        print(f"plot: {drawn.plot}", file=sys.stderr)
    if drawn.interrupted:
        from kerasbench.runs.resume import to_name_again

        words = (
            f"run --resume --results {shlex.quote(str(drawn.data.parent))} {to_name_again(drawn.found.record.asked)}"
        )
        print(f"go on: python -m kerasbench {words.strip()}", file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_FAILED_CELLS if drawn.found.summary.failures else EXIT_OK
