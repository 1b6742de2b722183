"""The commands that prepare: what scenarios there are, one's own, what is wrong here, environments."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kerasbench.cli.measuring import require_one
from kerasbench.cli.options import EVENTS, Argument, Option, as_json, command
from kerasbench.cli.printing import as_table, diagnosis, print_json
from kerasbench.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE, UsageError
from kerasbench.settings import BACKENDS, DOCTOR, ELSEWHERE, ENVIRONMENTS, EXPERTS, SHOW, SUITES, Settings, options
from kerasbench.text import columns_of, print_document, wrapped

if TYPE_CHECKING:
    from kerasbench.protocol.columns import Environment


@command(
    "list",
    Option("--suite NAME", SHOW, "published, tiny, modern, layers or feeds. Default: all.", offers=SUITES, default=""),
    as_json("Print JSON."),
)
def list_(suite: str, as_json: bool) -> int:
    """List the scenarios of each suite: what each is, and its size."""
    from kerasbench.plan import catalog

    files = catalog.suite_files(suite) if suite else catalog.builtin_files()
    entries = catalog.describe(files, sys.executable)
    if as_json:
        data = [{"suite": entry.suite, "file": str(entry.file)} | asdict(entry.description) for entry in entries]
        print_json(data, ensure_ascii=False)
    else:
        print(as_table(entries, columns_of(sys.stdout)))
    return EXIT_OK


@dataclass(frozen=True)
class EnvironmentSettings(Settings):
    takes: ClassVar[tuple[str, ...]] = ("backends",)
    backends: list[str] = options(
        "--backend NAME", ENVIRONMENTS, "tensorflow, torch, jax or mlx. Default: the first three.", BACKENDS
    )


@dataclass(frozen=True)
class DoctorSettings(EnvironmentSettings):
    takes = ("backends", "python", *ELSEWHERE)


@command(DOCTOR, EVENTS, as_json("Print JSON, with all details."), kind=DoctorSettings)
def doctor(events: bool, as_json: bool, **given: Any) -> int:
    """Check every backend: which devices it finds, what is wrong, and the command that fixes it."""
    from kerasbench.modes.command import settings_of

    settings = settings_of(DOCTOR, DoctorSettings, {}, **given)
    require_one(as_json, settings)
    if events:
        from kerasbench.machines import lines

        return lines.run_as_lines(lambda _: lines.End(_diagnose(settings, False, partial(print, file=sys.stderr))))
    if not (settings.hosts or settings.cluster):
        return _diagnose(settings, as_json, print_document)
    from kerasbench import machines
    from kerasbench.report.progress import MachinesProgress, to_stderr

    with MachinesProgress(to_stderr()) as progress:
        remotes = machines.ask(DOCTOR, settings, progress)
    print("\n\n".join("\n".join([remote.host, *(f"    {line}" for line in remote.report)]) for remote in remotes))
    is_fit = all(remote.end and remote.end.code == EXIT_OK and not remote.cause for remote in remotes)
    return EXIT_OK if is_fit else EXIT_FAILED


def _diagnose(settings: Settings, as_json: bool, show: Callable[[str], None]) -> int:
    from kerasbench import backends, events, runtimes
    from kerasbench.contributing import missing
    from kerasbench.environments import interpreters
    from kerasbench.environments.doctor import Severity, diagnose, gather
    from kerasbench.host.lock import machine_lock
    from kerasbench.plan import parse
    from kerasbench.report.progress import ConsoleProgress, to_stderr

    chosen = interpreters.find(settings.python, [*backends.names(), *runtimes.bare()])
    names = parse.backend_names(settings.backends) or chosen.usual()
    labelled = [env for env, source in chosen.sources.items() if env.label and source == interpreters.OPTION]
    if labelled:
        raise UsageError(f"doctor checks interpreters without a label: leave out {', '.join(map(str, labelled))}")
    # The lock, because starting every framework would disturb a run.
    with machine_lock(), events.step(ConsoleProgress(to_stderr()), events.asking(names)):
        facts = gather(names, chosen)
    findings = diagnose(facts)
    if as_json:
        print_json(asdict(facts) | {"findings": [asdict(finding) for finding in findings]}, ensure_ascii=False)
    else:
        devices = [device for backend in facts.backends for device in backend.devices]
        advice = missing.advice(facts.machine.fingerprint, devices, missing.index())
        text = f"{diagnosis(facts, findings)}\n\n{advice}\n"
        show(wrapped(text, columns_of(sys.stdout)))
    return EXIT_FAILED if any(finding.severity is Severity.ERROR for finding in findings) else EXIT_OK


@command("new", Argument("file", "FILE.py|FILE.yml", "The file to write. It must not exist yet.", type=Path))
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


LABEL = "A label, such as keras-3.14: adds an environment for each backend, measured as `torch cpu @LABEL`."
EXTRA = "Install this too, such as 'keras==3.14.*', or ./keras for a checkout. Can be repeated."
RUNTIME = "onnxruntime or openvino: an environment of that alone, in which exported models are measured (--runtime)."
INTERPRETER = "Python that creates the environment. Default: the one that runs kerasbench."


@command(
    "create",
    Option("--name LABEL", ENVIRONMENTS, LABEL, "label", default=""),
    Option("--with REQUIREMENT", ENVIRONMENTS, EXTRA, "extra", multiple=True),
    Option("--runtime NAME", ENVIRONMENTS, RUNTIME, "names", multiple=True),
    Option("--cuda", ENVIRONMENTS, "Install CUDA builds. Default: if there is an NVIDIA GPU."),
    Option("--cpu", ENVIRONMENTS, "Install CPU builds. Default: without an NVIDIA GPU."),
    Option("--interpreter PATH", ENVIRONMENTS, INTERPRETER, default=sys.executable),
    Option(
        "--constraint FILE",
        EXPERTS,
        "Constraints file for uv. Default: constraints.txt of a clone.",
        "constraints",
        type=Path,
    ),
    Option("--index URL", EXPERTS, "One more package index for uv."),
    Option("--locked", ENVIRONMENTS, "Install exactly the versions in the existing .lock file."),
    Option("--force", ENVIRONMENTS, "Replace an existing environment."),
    kind=EnvironmentSettings,
)
def create(
    backends: Sequence[str], names: Sequence[str], cuda: bool, cpu: bool, extra: Sequence[str], **given: Any
) -> int:
    """Create a virtual environment for each backend in .venvs/. Later runs use it."""
    from kerasbench import backends as known
    from kerasbench import runtimes
    from kerasbench.environments import interpreters, venvs
    from kerasbench.plan import parse
    from kerasbench.protocol import columns

    if cuda and cpu:
        raise UsageError("--cuda and --cpu exclude each other: give one of them, or neither for what this machine has")
    # A file that cannot be used is found out before the downloads.
    named = interpreters.find([], [*known.names(), *runtimes.bare()]).named
    venvs.naming()
    spec = venvs.EnvironmentSpec(gpu=cuda if cuda or cpu else None, extra=tuple(map(venvs.parse, extra)), **given)
    if spec.label:
        interpreters.require_label(spec.label)
    chooses = bool(extra or cuda or cpu or spec.constraints)
    if spec.locked and chooses:
        more = "--with, --cuda, --cpu and --constraint"
        raise UsageError(f"--locked installs what the .lock file lists: leave out {more}, or --locked")
    code, file = EXIT_OK, None
    wanted = [parse.require_name("runtime", name, runtimes.bare()) for name in parse.words("--runtime", names)]
    if wanted and spec.label:
        raise UsageError("--name is for environments of backends: leave it out with --runtime")
    wanted = [*parse.backend_names(parse.words("--backend", backends)), *wanted] or known.built_in()
    venvs.require_possible(wanted, spec)
    for backend in wanted:
        environment = columns.Environment(backend, spec.label)
        place = interpreters.FOLDER / str(environment)
        python = str(interpreters.inside(place.absolute()))
        if spec.force or not place.exists():
            python = venvs.create(backend, spec, say=partial(_say_of, environment))
        elif environment in named or chooses or spec.locked or not venvs.is_whole(place):  # else naming it had failed
            print(f"{environment}: {place} already exists, skipped; use --force to rebuild it")
            continue
        file = venvs.remember(str(environment), python)
        if backend in runtimes.bare():  # it has no devices to ask about
            print(f"{backend}: {file} names it")
            continue
        code = max(code, _say_what_it_sees(environment, str(file), python))
    if file is not None:
        print(
            f"runs in {file.parent} and below use what {file.name} names; remove its line to undo that", file=sys.stderr
        )
    return code


def _say_what_it_sees(environment: "Environment", file: str, python: str) -> int:
    from kerasbench.plan import cases
    from kerasbench.processes import questions
    from kerasbench.protocol.messages import ProbeReport

    report = questions.probe(environment.backend, python)
    if isinstance(report, ProbeReport):
        labelled = f" @{environment.label}" if environment.label else ""
        print(f"{cases.describe_probe(report)}{labelled}; {file} names it")
        return EXIT_OK
    more = "" if environment.label else "; for details: python -m kerasbench doctor"
    print(f"{environment}: made, but {report.cause}{more}")
    return EXIT_USAGE


def _say_of(environment: "Environment", line: str) -> None:
    print(f"{environment}: {line}", file=sys.stderr, flush=True)
