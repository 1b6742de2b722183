"""Commands for the machine, before anything is measured: doctor and env create."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kerasbench.commands import EXIT_OK, EXIT_USAGE
from kerasbench.commands.parameters import Python, Targets, split
from kerasbench.errors import UsageError


def doctor(
    backend: Targets = None,
    python: Python = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, with everything that was found out.")] = False,
) -> int:
    """Say what each backend sees, what is wrong, and the command that mends it."""
    import json

    from kerasbench import backends
    from kerasbench.doctor import diagnose
    from kerasbench.doctor.facts import gather
    from kerasbench.doctor.finding import Severity
    from kerasbench.environments import interpreters
    from kerasbench.machine.lock import machine_lock
    from kerasbench.plan import arguments
    from kerasbench.report.doctor import as_data, as_text
    from kerasbench.report.preparation import Preparation
    from kerasbench.report.progress import to_stderr

    names = arguments.parse_backends(split(backend), backends.names()) or backends.names()
    chosen = interpreters.find(split(python), backends.names())
    # The lock, because starting every framework would disturb a run.
    with machine_lock(), Preparation(to_stderr()).asking(names):
        facts = gather(names, chosen)
    findings = diagnose(facts)
    data = as_data(facts, findings)
    print(json.dumps(data, indent=2, ensure_ascii=False) if as_json else as_text(facts, findings))
    return EXIT_USAGE if any(finding.severity is Severity.ERROR for finding in findings) else EXIT_OK


def create(
    backend: Targets = None,
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
    from kerasbench import backends
    from kerasbench.children import questions
    from kerasbench.environments import interpreters, venvs
    from kerasbench.exchange.messages import ProbeReport
    from kerasbench.plan import arguments, cells

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or none for what this machine has")
    interpreters.find([], backends.names())  # a file that cannot be used is found out before the downloads
    gpu = True if cuda else False if cpu else None
    wish = venvs.Wish(interpreter, gpu, constraint, index, locked, force)
    code = EXIT_OK
    for name in arguments.parse_backends(split(backend), backends.names()) or backends.names():
        if venvs.is_there(name) and not force:
            print(f"{name}: {venvs.FOLDER / name} is there already and stays as it is; --force makes it anew")
            continue
        python = venvs.create(name, wish)
        file = venvs.remember({name: python})
        report = questions.probe(name, python)
        if isinstance(report, ProbeReport):
            print(f"{cells.describe_probe(report)}; {file} names it")
        else:
            print(f"{name}: made, but {report.cause}; python -m kerasbench doctor says more")
            code = EXIT_USAGE
    return code
