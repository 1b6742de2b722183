"""The commands that prepare: what scenarios there are, one's own, what is wrong here, environments."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench.cli.measuring import require_one
from kerasbench.cli.options import EVENTS, Argument, Option, as_json, command, offering, with_settings
from kerasbench.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError
from kerasbench.names import CREATE, DOCTOR, ENVIRONMENTS, EXPERTS, SHOW, SUITES
from kerasbench.text import print_document

if TYPE_CHECKING:
    from rich.console import Console


@command(
    "list",
    Option(
        ["--suite"],
        metavar="NAME",
        default="",
        help="published, tiny or modern. Default: all.",
        group=SHOW,
        shell_complete=offering(SUITES),
    ),
    as_json("Print JSON."),
)
def list_(suite: str, as_json: bool) -> int:
    """List the scenarios of each suite: what each is, and its size."""
    import json

    from kerasbench.cli import listing
    from kerasbench.plan import catalog

    files = catalog.suite_files(suite) if suite else catalog.builtin_files()
    entries = catalog.describe_all(files, sys.executable)
    if as_json:
        print_document(json.dumps(listing.as_data(entries), indent=2, ensure_ascii=False) + "\n")
    else:
        print(listing.as_table(entries))
    return EXIT_OK


@with_settings(DOCTOR, EVENTS, as_json("Print JSON, with all details."))
def doctor(backends: Sequence[str], python: Sequence[str], events: bool, as_json: bool, **machines: object) -> int:
    """Check every backend: which devices it finds, what is wrong, and the command that fixes it."""
    if events:
        from kerasbench.machines import lines

        return lines.told(lambda told: lines.End(_diagnose(backends, python, False, told.console())))
    if not (machines["hosts"] or machines["cluster"]):
        return _diagnose(backends, python, as_json)
    from kerasbench import machines as others
    from kerasbench.report.progress import MachinesProgress, to_stderr
    from kerasbench.settings import settings

    require_one(as_json, machines)
    asked = settings(DOCTOR, machines, backends=backends, python=python)
    with MachinesProgress(to_stderr()) as progress:
        remotes = others.ask(DOCTOR, asked, progress)
    print("\n\n".join("\n".join([remote.host, *(f"    {line}" for line in remote.said)]) for remote in remotes))
    is_fit = all(remote.end and remote.end.code == EXIT_OK and not remote.cause for remote in remotes)
    return EXIT_OK if is_fit else EXIT_FAILED


def _diagnose(backends: Sequence[str], python: Sequence[str], as_json: bool, to: "Console | None" = None) -> int:
    import json

    from kerasbench import backends as known
    from kerasbench import events
    from kerasbench.cli.listing import diagnosis_as_data, diagnosis_as_text
    from kerasbench.environments import interpreters
    from kerasbench.environments.doctor import Gravity, diagnose, gather
    from kerasbench.host.lock import machine_lock
    from kerasbench.plan import parse
    from kerasbench.report.progress import ConsoleProgress, to_stderr
    from kerasbench.settings import words

    names = parse.backend_names(words("backends", backends)) or known.names()
    chosen = interpreters.find(words("python", python), known.names())
    labelled = [env for env, source in chosen.sources.items() if env.label and source == interpreters.OPTION]
    if labelled:
        raise UsageError(f"doctor checks interpreters without a label: leave out {', '.join(map(str, labelled))}")
    # The lock, because starting every framework would disturb a run.
    with machine_lock(), events.step(ConsoleProgress(to_stderr()), events.asking(names)):
        facts = gather(names, chosen)
    findings = diagnose(facts)
    text = diagnosis_as_text(facts, findings)
    if as_json:
        text = json.dumps(diagnosis_as_data(facts, findings), indent=2, ensure_ascii=False)
    if to:
        to.print(text, soft_wrap=True, markup=False)
    else:
        print_document(text + "\n")
    return EXIT_FAILED if any(finding.severity is Gravity.ERROR for finding in findings) else EXIT_OK


@command(
    "new", Argument(["file"], metavar="FILE.py|FILE.yml", type=Path, text="The file to write. It must not exist yet.")
)
def new(file: Path) -> int:
    """Write a commented scenario file for a model of your own. It can be measured at once.

    FILE.yml: write two workflows for GitHub instead. They measure pull requests, and comment on them.
    """
    from kerasbench.plan import templates

    if file.suffix in (".yml", ".yaml"):
        for workflow in templates.begin_workflows(file):
            print(f"{workflow}: replace OWNER and COMMIT with the owner and a commit of kerasbench")
        return EXIT_OK
    templates.begin_file(file)
    print(f"{file}: put your model and data into it")
    print(f"python -m kerasbench {shlex.quote(str(file))} --quick  # measures it")
    return EXIT_OK


def _of_environments(*names: str, text: str, **more: Any) -> Option:
    return Option(list(names), help=text, **({"group": ENVIRONMENTS} | more))


@with_settings(
    CREATE,
    _of_environments(
        "--name",
        metavar="LABEL",
        default="",
        text="A label, such as keras-3.14: adds an environment for each backend, measured as `torch cpu @LABEL`.",
    ),
    _of_environments(
        "--with",
        "extra",
        metavar="REQUIREMENT",
        multiple=True,
        text="Install this too, such as 'keras==3.14.*', or ./keras for a checkout. Can be repeated.",
    ),
    _of_environments("--cuda", is_flag=True, text="Install CUDA builds. Default: if there is an NVIDIA GPU."),
    _of_environments("--cpu", is_flag=True, text="Install CPU builds. On Linux, PyTorch's is gigabytes smaller."),
    _of_environments(
        "--interpreter",
        metavar="PATH",
        default=sys.executable,
        text="Python that creates the environment. Default: the one that runs kerasbench.",
    ),
    _of_environments("--constraint", metavar="FILE", type=Path, group=EXPERTS, text="Constraints file for uv."),
    _of_environments("--index", metavar="URL", group=EXPERTS, text="One more package index for uv."),
    _of_environments("--locked", is_flag=True, text="Install exactly the versions in the existing .lock file."),
    _of_environments("--force", is_flag=True, text="Replace an existing environment."),
)
def create(
    backends: Sequence[str],
    name: str,
    extra: Sequence[str],
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
    from kerasbench.environments import interpreters, venvs
    from kerasbench.plan import cases, parse
    from kerasbench.processes import questions
    from kerasbench.protocol.columns import Environment
    from kerasbench.protocol.messages import ProbeReport
    from kerasbench.settings import words

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or neither for what this machine has")
    named = interpreters.find([], known.names()).named  # a file that cannot be used is found out before the downloads
    venvs.naming()
    if name:
        interpreters.require_label(name)
    if locked and (extra or cuda or cpu or constraint):
        more = "--with, --cuda, --cpu and --constraint"
        raise UsageError(f"--locked installs what the .lock file lists: leave out {more}, or --locked")
    chooses = cuda or cpu or locked or bool(extra) or constraint is not None
    gpu = True if cuda else False if cpu else None
    spec = venvs.EnvironmentSpec(
        interpreter, gpu, constraint, index, locked, force, name, tuple(map(venvs.parse, extra))
    )
    code = EXIT_OK
    for backend in parse.backend_names(words("backends", backends)) or known.names():
        environment = Environment(backend, name)
        place = interpreters.FOLDER / str(environment)
        python = str(interpreters.inside(place.absolute()))
        if force or not place.exists():
            python = venvs.create(backend, spec)
        elif environment in named or chooses or not venvs.is_whole(place):  # else naming it had failed
            print(f"{environment}: {place} already exists, skipped; use --force to rebuild it")
            continue
        file = venvs.remember(str(environment), python)
        report = questions.probe(backend, python)
        if isinstance(report, ProbeReport):
            labelled = f" @{name}" if name else ""
            print(f"{cases.describe_probe(report)}{labelled}; {file} names it")
        else:
            more = "" if name else "; for details: python -m kerasbench doctor"
            print(f"{environment}: made, but {report.cause}{more}")
            code = EXIT_USAGE
    return code
