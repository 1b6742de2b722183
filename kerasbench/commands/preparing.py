"""Commands before anything is measured: doctor, new and env create."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench.commands import EXIT_OK, EXIT_USAGE
from kerasbench.commands.help import Argument, Option, command
from kerasbench.commands.options import as_json, setting
from kerasbench.errors import UsageError
from kerasbench.settings import ENVIRONMENTS, EXPERTS, listed
from kerasbench.text import print_document

if TYPE_CHECKING:
    from collections.abc import Sequence


@command("doctor", setting("backends"), setting("python"), as_json("Print JSON, with all details."))
def doctor(backends: "Sequence[str]", python: "Sequence[str]", as_json: bool) -> int:
    """Check every backend: which devices it finds, what is wrong, and the command that fixes it."""
    import json

    from kerasbench import backends as known
    from kerasbench.doctor import diagnose
    from kerasbench.doctor.facts import gather
    from kerasbench.doctor.finding import Severity
    from kerasbench.environments import interpreters
    from kerasbench.machine.lock import machine_lock
    from kerasbench.plan import request
    from kerasbench.report.doctor import as_data, as_text
    from kerasbench.report.preparation import Preparation
    from kerasbench.report.progress import to_stderr

    names = request.parse_backends(listed(backends), known.names()) or known.names()
    chosen = interpreters.find(listed(python), known.names())
    # The lock, because starting every framework would disturb a run.
    with machine_lock(), Preparation(to_stderr()).asking(names):
        facts = gather(names, chosen)
    findings = diagnose(facts)
    data = as_data(facts, findings)
    print_document((json.dumps(data, indent=2, ensure_ascii=False) if as_json else as_text(facts, findings)) + "\n")
    return EXIT_USAGE if any(finding.severity is Severity.ERROR for finding in findings) else EXIT_OK


@command("new", Argument(["file"], metavar="FILE.py", type=Path, text="The file to write. It must not exist yet."))
def new(file: Path) -> int:
    """Write a commented scenario file for a model of your own. It can be measured at once."""
    from kerasbench.plan import beginning

    beginning.begin(file)
    said = shlex.quote(str(file))
    print(f"{file}: put your model and data into it\npython -m kerasbench --scenario {said} --quick  # measures it")
    return EXIT_OK


def _of_environments(*names: str, text: str, **more: Any) -> Option:
    return Option(list(names), help=text, **({"group": ENVIRONMENTS} | more))


@command(
    "create",
    setting("backends"),
    _of_environments(
        "--name",
        metavar="LABEL",
        default="",
        text="A label, such as keras-3.14: a further environment of each backend, and a column `torch cpu @LABEL`.",
    ),
    _of_environments(
        "--with",
        "extra",
        metavar="REQUIREMENT",
        multiple=True,
        text="Install this too, such as 'keras==3.14.*', or ./keras for a checkout. Can be repeated.",
    ),
    _of_environments("--cuda", is_flag=True, text="Install CUDA builds. Default: if there is an NVIDIA driver."),
    _of_environments("--cpu", is_flag=True, text="Install CPU builds only."),
    _of_environments(
        "--interpreter",
        metavar="PATH",
        default=sys.executable,
        text="Python that creates the environment. Default: the one that runs kerasbench.",
    ),
    _of_environments("--constraint", metavar="FILE", type=Path, group=EXPERTS, text="Constraints file for pip."),
    _of_environments(
        "--index", metavar="URL", group=EXPERTS, text="One more package index for pip, such as torch's for CPU builds."
    ),
    _of_environments("--locked", is_flag=True, text="Install exactly the versions in the existing .lock file."),
    _of_environments("--force", is_flag=True, text="Replace an existing environment."),
)
def create(
    backends: "Sequence[str]",
    name: str,
    extra: "Sequence[str]",
    cuda: bool,
    cpu: bool,
    interpreter: str,
    constraint: Path | None,
    index: str | None,
    locked: bool,
    force: bool,
) -> int:
    """Create a virtual environment for each backend in .venvs/. Later runs use it."""
    from kerasbench import backends as known
    from kerasbench.children import questions
    from kerasbench.environments import interpreters, requirements, venvs
    from kerasbench.exchange.messages import ProbeReport
    from kerasbench.exchange.options import subject
    from kerasbench.plan import cells, request

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or neither for what this machine has")
    interpreters.find([], known.names())  # a file that cannot be used is found out before the downloads
    if name:
        interpreters.require_label(name)
    if locked and extra:
        raise UsageError("--locked installs exactly what the lock names: leave out --with, or --locked")
    gpu = True if cuda else False if cpu else None
    wanted = tuple(requirements.parse(one) for one in extra)
    wish = venvs.Wish(interpreter, gpu, constraint, index, locked, force, name, wanted)
    code = EXIT_OK
    for one in request.parse_backends(listed(backends), known.names()) or known.names():
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
