"""Environments by uv, one for each backend, with the wheels that fit this machine; and what requirements mean."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT

import tomlkit
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from kerasbench import __version__, backends, runtimes
from kerasbench.backends import Target, Version
from kerasbench.environments import interpreters, pins
from kerasbench.errors import EnvironmentFailed, UsageError
from kerasbench.files import replace, scratch_folder
from kerasbench.git import environment
from kerasbench.host import macos, nvidia
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Inventory

NUMPY = "numpy>=1.26"
KERAS, NIGHTLY = "keras", "keras-nightly"  # distributions of the same files: an environment has one of them
CPU_BUILD = "+cpu"  # at the end of the version of torch's CPU build for Linux, which has an index of its own
PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")  # one of them makes a folder a checkout that can be installed
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*://\S+")  # git+https://, https://, file://
INSIDE = re.compile(r"\s*(===|[=~!<>]=|[<>@,;])\s*")  # blanks around these are inside a requirement
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")  # for a label


@dataclass(frozen=True)
class EnvironmentSpec:
    interpreter: str = sys.executable
    gpu: bool | None = None  # True: CUDA builds. False: CPU builds. None: what this machine has
    constraints: Path | None = None
    index: str | None = None  # one more package index
    locked: bool = False  # install exactly what the lock file names
    force: bool = False  # replace an existing environment
    label: str = ""  # tells it from others of its backend
    extra: tuple[str, ...] = ()  # requirements beyond the backend's own


def require_possible(names: Sequence[str], spec: EnvironmentSpec, folder: Path = interpreters.FOLDER) -> None:
    """Raise UsageError for what could not be made of these environments, before the first one is downloaded."""
    if spec.constraints and not spec.constraints.is_file():
        raise UsageError(f"--constraint {spec.constraints}: there is no such file")
    for name in names:
        if spec.force or not (folder / str(Environment(name, spec.label))).exists():
            target(name, spec)


def create(
    backend: str,
    spec: EnvironmentSpec,
    folder: Path = interpreters.FOLDER,
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Make the environment of a backend, or of a runtime, in ``folder``/NAME or /NAME@LABEL, and its lock beside it.

    Before anything is downloaded, ``say`` gets a line: which builds are installed, and whose versions.
    """
    place = folder / str(Environment(backend, spec.label))
    lock = Path(f"{place}.lock")
    if place.exists() and not spec.force:
        raise UsageError(f"{place} already exists; use --force to rebuild it")
    if spec.locked and not lock.is_file():
        raise UsageError(f"{lock} does not exist: leave out --locked to create an environment and its lock")
    made_for = target(backend, spec)
    # Before the environment is made: an old one stays until it is known what to install.
    locked = lock.read_text("utf-8") if spec.locked else _compiled(place, backend, spec, made_for, say)
    python = str(interpreters.inside(place.absolute()))
    try:
        # With pip in it (--seed), because what the doctor suggests are commands of pip.
        uv("venv", "--seed", "--clear", "--python", spec.interpreter, str(place), failure=f"{place}: not created")
        options = ["--python", python, *_index(spec, CPU_BUILD in locked), *refresh(locked.splitlines())]
        uv("pip", "sync", "-", *options, failure=f"{place}: {backend} was not installed", stdin=locked)
        replace(lock, locked.encode())
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)  # half an environment would look like a whole one
        raise
    return python


def _compiled(place: Path, backend: str, spec: EnvironmentSpec, made_for: Target, say: Callable[[str], None]) -> str:
    """Return what to install, each package in one version, as a lock file has it."""
    replaced = set(map(package, spec.extra))
    replaced |= {KERAS, NIGHTLY} if replaced & {KERAS, NIGHTLY} else set()
    usual = [NUMPY, backend]
    if backend not in runtimes.bare():
        usual = [*keras(backend), *backends.get(backend).requirements(made_for)]
    wanted = [*(text for text in usual if package(text) not in replaced), *spec.extra]
    # Without --cuda and --cpu: what this machine has. CUDA builds are gigabytes that nothing here would run.
    is_cpu = spec.gpu is False or (spec.gpu is None and made_for.cuda is None)
    has_choice = backend not in runtimes.bare() and made_for.system == "linux"
    builds = ["CPU builds" + ("" if spec.gpu is False else ", because there is no NVIDIA GPU")]
    builds = builds if is_cpu else [f"CUDA {made_for.cuda} builds, several GB; --cpu installs smaller ones"]
    kept = [] if spec.constraints else pins.kept(wanted, made_for)
    versions = "versions of constraints.txt" if kept else "the newest versions that fit"
    say("; ".join([*builds * has_choice, str(spec.constraints) if spec.constraints else versions]))
    index, failure = _index(spec, is_cpu), f"{place}: no versions were found"
    options = ["--python", spec.interpreter, "--no-header", "--no-annotate", "--quiet", *index]
    if index and not spec.index:
        why = "PyTorch's CPU builds have an index of their own; --cuda takes the builds of the usual one, several GB"
        failure += f" ({why})"
    version, machine = ".".join(map(str, made_for.python)), f"{made_for.system} {made_for.architecture}"
    head = f"# {place.name} by kerasbench {__version__}, Python {version}, {machine}\n"
    with scratch_folder() as scratch:
        constraints = spec.constraints
        if kept:
            constraints = Path(scratch, "constraints.txt")
            constraints.write_text("\n".join(kept), "utf-8")
        options += ["--constraint", str(constraints)] if constraints else []
        if NIGHTLY in map(package, wanted):  # packages that need Keras ask for its releases
            without = Path(scratch, "overrides.txt")
            without.write_text(f"{KERAS}; sys_platform == 'never'", "utf-8")
            options += ["--override", str(without)]
        return head + uv("pip", "compile", "-", *options, failure=failure, stdin="\n".join(wanted))


def keras(backend: str) -> list[str]:
    return [backends.get(backend).KERAS, NUMPY]


def _index(spec: EnvironmentSpec, cpu: bool) -> list[str]:
    if spec.index:  # the newest of all, as pip takes it: uv alone takes a package from the first index that has any
        return ["--index", spec.index, "--index-strategy", "unsafe-best-match"]
    return ["--torch-backend", "cpu"] if cpu and sys.platform == "linux" else []


def is_whole(place: Path) -> bool:
    """Tell whether an environment was made to its end, which its lock says, and can be started."""
    return Path(f"{place}.lock").is_file() and interpreters.runs(str(interpreters.inside(place)))


def uv(*arguments: str, failure: str, stdin: str = "", messages: bool = False) -> str:
    """Run uv and return what it prints. Its messages go to stderr, or are returned too if ``messages``."""
    env = {name: value for name, value in environment().items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    command, to = [_uv_path(), *arguments], STDOUT if messages else None
    done = subprocess.run(command, input=stdin, stdout=PIPE, stderr=to, env=env, encoding="utf-8", check=False)
    if done.returncode:
        if messages:
            print(done.stdout, end="", file=sys.stderr)
        raise EnvironmentFailed(f"{failure}: see the message of uv above")
    return done.stdout


def pip(interpreter: str, *arguments: str) -> str:
    return shlex.join([interpreter, "-m", "pip", "install", *arguments])


def _uv_path() -> str:
    if on_path := shutil.which("uv"):
        return on_path
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        install = pip(sys.executable, "uv")
        raise UsageError(f"uv, which installs packages for env create and versus, is missing: {install}") from None


def target(backend: str, spec: EnvironmentSpec) -> Target:
    if spec.gpu and sys.platform != "linux":
        raise UsageError("--cuda is for Linux with an NVIDIA GPU; leave it out: a Mac's wheels support its GPU")
    inventory = _usable(backend, spec.interpreter)
    version = macos.version() if sys.platform == "darwin" else ()
    if spec.gpu is not False and nvidia.package_missing():
        install = pip(sys.executable, nvidia.PACKAGE)
        raise UsageError(f"which CUDA the NVIDIA driver supports cannot be found out: {install}; or add --cpu")
    cards = nvidia.cards()
    cuda = nvidia.cuda_of(cards)
    if spec.gpu and cuda is None:
        if cards:
            oldest = min(nvidia.OLDEST_DRIVER.values())
            raise UsageError(f"--cuda: driver {cards[0].driver} is too old; update it to {oldest} or newer")
        cuda = max(nvidia.OLDEST_DRIVER)  # without a card, as in an image for another machine
    return Target(sys.platform, inventory.architecture, release(inventory.python), spec.gpu is not False, cuda, version)


def _usable(backend: str, interpreter: str) -> Inventory:
    newest = () if backend in runtimes.bare() else backends.get(backend).NEWEST_PYTHON
    answer = questions.inventory(interpreter) if interpreters.runs(interpreter) else None
    if not isinstance(answer, Inventory):
        why = answer.cause if answer else "there is none"
    elif newest and release(answer.python)[:2] > newest:
        why = f"it is Python {answer.python}, for which {backend} has no wheels"
    elif answer.architecture == "x86_64" and sys.platform == "darwin":
        why = "it is an x86-64 Python, for which the frameworks have no wheels any more"
    else:
        return answer
    kind = "an arm64 Python" if sys.platform == "darwin" else "a Python"
    until = f"to {newest[0]}.{newest[1]}" if newest else "or newer"
    raise UsageError(f"--interpreter {interpreter}: {why}; {kind} 3.11 {until} is needed")


def naming(folder: Path | None = None) -> Path:
    here = (folder or Path.cwd()).absolute()
    configured, _ = interpreters.configured(here)
    file = configured or here / interpreters.OWN_FILE
    if file.is_symlink():  # found out before anything is downloaded
        raise UsageError(f"{file}: is a link, and nothing is written through links: replace it with a file")
    if configured is None and file.exists():
        raise UsageError(f"{file}: not used, because others own it or may change it: make it yours, and chmod go-w it")
    return file


def remember(environment: str, python: str, folder: Path | None = None) -> Path:
    """Name a new interpreter in the nearest file that configures kerasbench, or in a new one; return the file."""
    file = naming(folder)
    document = tomlkit.parse(file.read_text("utf-8")) if file.exists() else tomlkit.document()
    table = document
    for name in ("python",) if file.name == interpreters.OWN_FILE else ("tool", "kerasbench", "python"):
        table = table.setdefault(name, tomlkit.table())
    path = Path(python)
    # Relative where it lies below the file, so that the folder may be moved.
    table[environment] = str(path.relative_to(file.parent)) if path.is_relative_to(file.parent) else python
    replace(file, tomlkit.dumps(document).encode())
    return file


def release(version: str) -> Version:
    """Return the numbers that a version begins with: (2, 13, 0) of ``2.13.0+cpu``; empty for other words."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in numbers[0].split(".")) if numbers else ()


def parse(text: str) -> str:
    """Return a requirement that means the same in every folder: paths of checkouts and wheels become absolute."""
    text = text.strip()
    if _is_path(text):
        path = Path(os.path.expanduser(text)).absolute()
        if not (is_checkout(path) or (path.is_file() and path.suffix == ".whl")):
            checkout = "a checkout (a folder with pyproject.toml or setup.py)"
            raise UsageError(f"{text}: neither {checkout} nor a wheel is there")
        return os.path.normpath(path)
    if not (ADDRESS.match(text) or _requirement(text)):
        raise UsageError(f"{text!r} is not a requirement: give what to install, such as 'keras==3.14.*' or ./keras")
    return text


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _is_path(text: str) -> bool:
    return "://" not in text and (text in (".", "..") or os.sep in text or text.endswith(".whl"))


def is_checkout(path: Path) -> bool:
    return any((path / name).is_file() for name in PROJECT)


def split(text: str) -> list[str]:
    """Return the requirements of a text; none if any has neither a version nor an address (it may be a label)."""
    words = INSIDE.sub(r"\1", text).split()
    for word in words:
        requirement = _requirement(word)
        versioned = requirement is not None and (requirement.specifier or requirement.url)
        if not (versioned or ADDRESS.match(word) or (word.endswith(".whl") and not word.startswith("-"))):
            return []
    return words


def refresh(requirements: Sequence[str]) -> list[str]:
    """Return uv's options against old builds in its cache: a path or an address may be other code than yesterday."""
    names = [package(text) for text in requirements if (_is_path(text) or "://" in text) and not text.endswith(".whl")]
    return [f"--refresh-package={name}" for name in names] if all(names) else ["--refresh"]


def package(requirement: str) -> str:
    """Return the name of the package that a parsed requirement is about; empty where it does not tell."""
    if requirement.endswith(".whl"):
        return canonicalize_name(Path(requirement).name.partition("-")[0])
    if _is_path(requirement):
        with suppress(OSError, ValueError, RecursionError, AttributeError):
            project = tomllib.loads((Path(requirement) / PROJECT[0]).read_text("utf-8")).get("project", {})
            return canonicalize_name(str(project.get("name", "")))
    named = _requirement(requirement)
    return canonicalize_name(named.name) if named else ""


def label(wanted: Sequence[str]) -> str:
    """Return what a column is called that has these: ``keras-3.14`` of ``keras==3.14.*``, ``keras`` of ``./keras``."""
    names = [Path(text).name.removesuffix(".whl") if _is_path(text) else text.rpartition("/")[2] for text in wanted]
    return "-".join(filter(None, (UNFIT.sub("-", name.replace(".*", "")).strip("-._+") for name in names)))
