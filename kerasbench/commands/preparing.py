"""Commands before anything is measured: doctor, new and env create."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from kerasbench.commands import EXIT_OK, EXIT_USAGE
from kerasbench.commands.parameters import ENVIRONMENTS, EXPERTS, SHOW, Python, Targets, split
from kerasbench.errors import UsageError
from kerasbench.text import print_document


def doctor(
    backend: Targets = None,
    python: Python = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with all details.", rich_help_panel=SHOW)
    ] = False,
) -> int:
    """Check every backend: which devices it finds, what is wrong, and the command that fixes it."""
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
    print_document((json.dumps(data, indent=2, ensure_ascii=False) if as_json else as_text(facts, findings)) + "\n")
    return EXIT_USAGE if any(finding.severity is Severity.ERROR for finding in findings) else EXIT_OK


def new(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="The file to write. It must not exist yet.")],
) -> int:
    """Write a commented scenario file for a model of your own. It can be measured at once."""
    from kerasbench.plan import beginning

    beginning.begin(file)
    said = shlex.quote(str(file))
    print(f"{file}: put your model and data into it\npython -m kerasbench --scenario {said} --quick  # measures it")
    return EXIT_OK


def create(
    backend: Targets = None,
    name: Annotated[
        str,
        typer.Option(
            metavar="LABEL",
            help="A label, such as keras-3.14: a further environment of each backend, and a column `torch cpu @LABEL`.",
            show_default=False,
            rich_help_panel=ENVIRONMENTS,
        ),
    ] = "",
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="REQUIREMENT",
            help="Install this too, such as 'keras==3.14.*', or ./keras for a checkout. Can be repeated.",
            rich_help_panel=ENVIRONMENTS,
        ),
    ] = None,
    cuda: Annotated[
        bool,
        typer.Option(
            "--cuda", help="Install CUDA builds. Default: if there is an NVIDIA driver.", rich_help_panel=ENVIRONMENTS
        ),
    ] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="Install CPU builds only.", rich_help_panel=ENVIRONMENTS)] = False,
    interpreter: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Python that creates the environment. Default: the one that runs kerasbench.",
            show_default=False,
            rich_help_panel=ENVIRONMENTS,
        ),
    ] = sys.executable,
    constraint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Constraints file for pip.", rich_help_panel=EXPERTS)
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="One more package index for pip, such as torch's for CPU builds.",
            rich_help_panel=EXPERTS,
        ),
    ] = None,
    locked: Annotated[
        bool,
        typer.Option(
            "--locked",
            help="Install exactly the versions in the existing .lock file.",
            rich_help_panel=ENVIRONMENTS,
        ),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing environment.", rich_help_panel=ENVIRONMENTS)
    ] = False,
) -> int:
    """Create a virtual environment for each backend in .venvs/. Later runs use it."""
    from kerasbench import backends
    from kerasbench.children import questions
    from kerasbench.environments import interpreters, requirements, venvs
    from kerasbench.exchange.messages import ProbeReport
    from kerasbench.exchange.options import subject
    from kerasbench.plan import arguments, cells

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or neither for what this machine has")
    interpreters.find([], backends.names())  # a file that cannot be used is found out before the downloads
    if name:
        interpreters.require_label(name)
    if locked and extra:
        raise UsageError("--locked installs exactly what the lock names: leave out --with, or --locked")
    gpu = True if cuda else False if cpu else None
    wanted = tuple(requirements.parse(one) for one in extra or ())
    wish = venvs.Wish(interpreter, gpu, constraint, index, locked, force, name, wanted)
    code = EXIT_OK
    for one in arguments.parse_backends(split(backend), backends.names()) or backends.names():
        whom = subject(one, name)
        if venvs.is_there(whom) and not force:
            print(f"{whom}: {venvs.FOLDER / whom} already exists, skipped; use --force to rebuild it")
            continue
        python = venvs.create(one, wish)
        file = venvs.remember({whom: python})
        report = questions.probe(one, python)
        if isinstance(report, ProbeReport):
            labelled = f" @{name}" if name else ""
            print(f"{cells.describe_probe(report)}{labelled}; {file} names it")
        else:
            print(f"{whom}: made, but {report.cause}; python -m kerasbench doctor says more")
            code = EXIT_USAGE
    return code
