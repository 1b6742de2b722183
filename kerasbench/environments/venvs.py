"""Which keras and which Python the wheels are for.

What is to be installed, in words that pip takes: ``keras==3.14.*``, a wheel, or the path of a checkout.

Making an environment for one backend, with the wheels that fit this machine, and having it used from then on.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import tomlkit

from kerasbench import __version__, backends
from kerasbench.backends import Target, Version
from kerasbench.environments import interpreters
from kerasbench.errors import EnvironmentFailed, UsageError
from kerasbench.files import replace
from kerasbench.host import macos, nvidia
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Inventory

KERAS = ("keras>=3.12,<3.17", "numpy>=1.26")
NEWEST_PYTHON = (3, 13)  # TensorFlow 2.21 ends there


def release(version: str) -> Version:
    """Return the numbers that a version begins with: (2, 13, 0) of ``2.13.0+cpu``, none of what is no version."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


PROJECT = ("pyproject.toml", "setup.py", "setup.cfg")  # one of them makes a folder a checkout that pip installs
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
OPERATOR = r"===|[=~!<>]=|[<>]|@"
VERSIONED = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,-]*\])?({OPERATOR})[^=\s]")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9.+-]*://\S+")  # git+https://, https://, file://
INSIDE = re.compile(rf"\s*({OPERATOR}|[,;])\s*")  # blanks here end no requirement
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")  # for a label


def parse(text: str) -> str:
    """Return one requirement as pip takes it wherever it runs: the path of a checkout or of a wheel becomes absolute.

    Raises:
        UsageError: it is the path of nothing that pip could install.
    """
    text = text.strip()
    if not is_path(text):
        if not text:
            raise UsageError("an empty requirement: say what to install, such as 'keras==3.14.*' or ./keras")
        if not NAME.match(text):
            raise UsageError(f"{text!r} is no requirement: say what to install, such as 'keras==3.14.*' or ./keras")
        return text
    path = Path(text).expanduser().absolute()
    if not (is_checkout(path) or (path.is_file() and path.suffix == ".whl")):
        raise UsageError(f"{text}: neither a checkout (a folder with pyproject.toml or setup.py) nor a wheel is there")
    return os.path.normpath(path)


def is_path(text: str) -> bool:
    """Tell whether a requirement is meant as a path."""
    return "://" not in text and (text in (".", "..") or os.sep in text or text.endswith(".whl"))


def is_checkout(path: Path) -> bool:
    """Tell whether a folder holds the sources of a package."""
    return any((path / name).is_file() for name in PROJECT)


def are_requirements(text: str) -> bool:
    """Tell whether words, separated by blanks, name what to install: with a version, by an address, or as a wheel."""
    found = words(text)
    return bool(found) and all(_is_one(word) for word in found)


def _is_one(word: str) -> bool:
    """Tell whether a word names something to install; one that begins with a dash would be an option of pip."""
    named = VERSIONED.match(word) or ADDRESS.match(word) or word.endswith(".whl")
    return bool(named) and not word.startswith("-")


def words(text: str) -> list[str]:
    """Return the requirements of a text: blanks end one, but for those around ``>=``, ``@`` or a comma."""
    return INSIDE.sub(r"\1", text).split()


def package(requirement: str) -> str:
    """Return the name of the package that a parsed requirement is about; empty where it does not tell."""
    if is_path(requirement):
        with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError):
            project = tomllib.loads((Path(requirement) / PROJECT[0]).read_text("utf-8")).get("project", {})
            return _normal(str(project.get("name", "")))
        return _normal(Path(requirement).name.partition("-")[0]) if requirement.endswith(".whl") else ""
    found = NAME.match(requirement)
    return _normal(found[0]) if found and "://" not in requirement.partition("@")[0] else ""


def label(requirements: Sequence[str]) -> str:
    """Return what a column is called that has these: ``keras-3.14`` of ``keras==3.14.*``, ``keras`` of ``./keras``."""
    names = [Path(one).name.removesuffix(".whl") if is_path(one) else one.rpartition("/")[2] for one in requirements]
    words = [UNFIT.sub("-", one.replace(".*", "")).strip("-._+") for one in names]
    return "-".join(word for word in words if word)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


FOLDER = Path(".venvs")
UNFINISHED = (
    "kerasbench-unfinished"  # lies in an environment until it is whole: what has it was left by a killed process
)


@dataclass(frozen=True)
class EnvironmentSpec:
    """What environments are to be made of.

    ``interpreter`` makes them. ``gpu`` is True for CUDA, False for the CPU alone, None for what this machine has.
    ``constraints`` and ``index`` are handed to pip; ``locked``: exactly what the lock of the last time names. ``force``
    puts a new environment in the place of an old one. ``label`` tells an environment from others of its backend, and
    ``extra`` are requirements (requirements.py) beyond those of the backend.
    """

    interpreter: str = sys.executable
    gpu: bool | None = None
    constraints: Path | None = None
    index: str | None = None
    locked: bool = False
    force: bool = False
    label: str = ""
    extra: tuple[str, ...] = ()


def is_there(whom: str, folder: Path = FOLDER) -> bool:
    """Tell whether a backend, or ``torch@LABEL``, has a whole environment, or something else in its place."""
    return (folder / whom).exists() and not _is_unfinished(folder / whom)


def _is_unfinished(place: Path) -> bool:
    return (place / UNFINISHED).exists()


def create(backend: str, wish: EnvironmentSpec, folder: Path = FOLDER) -> str:
    """Make a backend's environment in ``folder``/NAME, write its lock beside it, and return its interpreter.

    With a label it lies in ``folder``/NAME@LABEL. If a killed process left it unfinished, it is created again.

    Raises:
        UsageError: it is there already, or has no lock, or the interpreter is of no use.
        EnvironmentFailed: it could not be made. What was there before is there again.
    """
    whom = str(Environment(backend, wish.label))
    place, lock = folder / whom, lock_of(folder / whom)
    if is_there(whom, folder) and not wish.force:
        raise UsageError(f"{place} already exists; use --force to rebuild it")
    if wish.locked and not lock.is_file():
        raise UsageError(f"{lock} is not there: leave out --locked to make an environment and its lock")
    made_for = target(backend, wish)
    wanted = ["-r", str(lock)] if wish.locked else _wanted(backend, made_for, wish.extra)
    python = str(interpreters.inside(place.absolute()))
    kept = _set_aside(place)
    try:
        _begin(place)
        run([wish.interpreter, "-m", "venv", str(place)], f"{place}: no virtual environment could be made")
        run([python, "-m", "pip", "install", *_options(wish), *wanted], f"{place}: pip did not install {backend}")
        frozen = run([python, "-m", "pip", "freeze"], f"{place}: pip did not tell what it installed", quiet=True)
        replace(lock, (_head(backend, made_for) + frozen).encode())
        (place / UNFINISHED).unlink()
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        if kept is not None:
            kept.rename(place)
        raise
    if kept is not None:
        shutil.rmtree(kept, ignore_errors=True)
    return python


def _wanted(backend: str, made_for: Target, extra: Sequence[str]) -> list[str]:
    """Return what pip is asked for: what is asked for as well, in place of what we would ask of the same package."""
    own = [*KERAS, *backends.get(backend).requirements(made_for)]
    named = {package(one) for one in extra}
    return [*(one for one in own if package(one) not in named), *extra]


def target(backend: str, wish: EnvironmentSpec) -> Target:
    """Return what the environment is made for.

    Raises:
        UsageError: the interpreter is of no use, CUDA was asked for where there is none, or there is a driver that
            cannot be asked.
    """
    if wish.gpu and sys.platform != "linux":
        raise UsageError("--cuda is for Linux with an NVIDIA GPU; leave it out: a Mac's wheels bring its own GPU")
    found = _usable(backend, wish.interpreter)
    version = (macos.version() or ()) if sys.platform == "darwin" else ()
    if wish.gpu is not False and nvidia.package_missing():
        install = shlex.join([sys.executable, "-m", "pip", "install", nvidia.PACKAGE])
        raise UsageError(f"nothing here can ask the NVIDIA driver which CUDA it speaks: {install}; or say --cpu")
    cuda = _cuda(wish.gpu is True)
    return Target(sys.platform, found.architecture, release(found.python), wish.gpu is not False, cuda, version)


def _usable(backend: str, interpreter: str) -> Inventory:
    """Return what an interpreter is; raise UsageError where no backend's wheels are for it."""
    found = questions.inventory(backend, interpreter) if interpreters.runs(interpreter) else None
    if isinstance(found, Inventory):
        if release(found.python)[:2] > NEWEST_PYTHON:
            why = f"it is Python {found.python}"
        elif found.architecture == "x86_64" and sys.platform == "darwin":
            why = "it is an x86-64 Python, for which the frameworks have no wheels any more"
        else:
            return found
    else:
        why = found.cause if found else "there is none"
    kind = "an arm64 Python" if sys.platform == "darwin" else "a Python"
    newest = ".".join(map(str, NEWEST_PYTHON))
    raise UsageError(f"--interpreter {interpreter}: {why}; {kind} 3.11 to {newest} is needed")


def _cuda(asked: bool) -> int | None:
    """Return the CUDA that the driver speaks; the newest where CUDA was asked for without a card, as in an image."""
    cards = nvidia.cards()
    spoken = nvidia.cuda_of(cards)
    if asked and cards and spoken is None:
        oldest = min(nvidia.OLDEST_DRIVER.values())
        raise UsageError(f"--cuda: driver {cards[0].driver} is too old; update it to {oldest} or newer")
    return max(nvidia.OLDEST_DRIVER) if asked and spoken is None else spoken


def lock_of(environment: Path) -> Path:
    """Return where an environment's lock lies: every package and version, as ``pip install -r`` takes it."""
    return environment.with_name(f"{environment.name}.lock")


def remember(made: dict[str, str], folder: Path | None = None) -> Path:
    """Name new interpreters in the nearest file that configures kerasbench, else in a new kerasbench.toml; return it.

    What else the file says stays, comments included.

    Raises:
        ResultsError: it cannot be written.
    """
    here = (folder or Path.cwd()).absolute()
    found, _ = interpreters.configured(here)
    file = found or here / interpreters.OWN_FILE
    document = tomlkit.parse(file.read_text("utf-8")) if found else tomlkit.document()
    table = document
    for name in ("python",) if file.name == interpreters.OWN_FILE else ("tool", "kerasbench", "python"):
        table = table.setdefault(name, tomlkit.table())
    for backend, python in made.items():
        table[backend] = _as_written(Path(python), file.parent)
    replace(file, tomlkit.dumps(document).encode())
    return file


def _as_written(python: Path, base: Path) -> str:
    """Return a path relative to its file where it lies below it, so that the folder may be moved."""
    return str(python.relative_to(base)) if python.is_relative_to(base) else str(python)


def _set_aside(place: Path) -> Path | None:
    """Return where the whole environment lies that was in a place; None where there was none.

    What a killed process has left in the place goes; what it had set aside is what was there.
    """
    kept = place.with_name(f"{place.name}.old")
    if _is_unfinished(place):
        shutil.rmtree(place, ignore_errors=True)
    if not place.exists():
        return kept if kept.exists() else None
    shutil.rmtree(kept, ignore_errors=True)
    try:
        return place.rename(kept)
    except OSError as error:
        raise EnvironmentFailed(
            f"{place}: cannot be set aside as {kept.name}: {error.strerror}; it is as it was"
        ) from None


def _begin(place: Path) -> None:
    try:
        place.mkdir(parents=True)
        (place / UNFINISHED).touch()
    except OSError as error:
        raise EnvironmentFailed(f"{place}: no virtual environment could be made: {error.strerror}") from None


def _options(wish: EnvironmentSpec) -> list[str]:
    constraints = ["-c", str(wish.constraints)] if wish.constraints else []
    index = ["--extra-index-url", wish.index] if wish.index else []
    return [*constraints, *index]


def run(command: Sequence[str], failure: str, quiet: bool = False) -> str:
    """Run a command, its words on stderr; raise EnvironmentFailed where it fails. Return what it printed, if quiet."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    piped = quiet or not _has_descriptor(sys.stderr)
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE if piped else sys.stderr, env=variables, encoding="utf-8", check=False
        )
    except OSError as error:
        raise EnvironmentFailed(f"{failure}: {command[0]}: {error.strerror}") from None
    if piped and not quiet:
        print(done.stdout, end="", file=sys.stderr)
    if done.returncode == 0:
        return done.stdout or ""
    raise EnvironmentFailed(f"{failure}: its last words are above; what was there before is there again")


def _has_descriptor(stream: IO[str]) -> bool:
    """Tell whether a child can write to a stream: not in some notebooks."""
    try:
        return stream.fileno() >= 0
    except (OSError, AttributeError):  # io.UnsupportedOperation is an OSError
        return False


def _head(backend: str, made_for: Target) -> str:
    version = ".".join(map(str, made_for.python))
    where = f"Python {version} on {made_for.system} {made_for.architecture}"
    return f"# {backend}, as kerasbench {__version__} installed it for {where}\n"
