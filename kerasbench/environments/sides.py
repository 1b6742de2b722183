"""The sides of a comparison: a label, an interpreter, or what is to be installed on top of an interpreter's own."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs
from packaging.version import InvalidVersion, Version

from kerasbench.environments import interpreters, venvs
from kerasbench.environments.interpreters import LABEL, MADE, Interpreters
from kerasbench.errors import EnvironmentFailed, UsageError, unknown
from kerasbench.git import environment
from kerasbench.protocol.columns import Environment

SHARED = "kerasbench-shared.pth"  # names the folders of packages that are seen behind the overlay's own
SITE_FOLDERS = (
    "import site; print('\\n'.join([*site.getsitepackages(), "
    "*([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]))"
)
USUAL = ("venv", "env")  # what environments are called that lie in the folder of a project, which then tells more
EXACT = re.compile(r"(?P<package>[\w.-]+)==(?P<version>[\w.+!]+)")


def overlay(python: str, wanted: Sequence[str], say: Callable[[str], None]) -> str:
    """Make an environment on top of an interpreter's own, again each time, since either may have changed."""
    # Also of this machine: several may share a home, and one replaces none that another measures with.
    parts = [str(Path(python).absolute()), platform.machine(), platform.node(), *wanted]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:10]
    folder = Path(platformdirs.user_cache_dir("kerasbench"), "environments")
    place = folder / f"{venvs.label(wanted)[:60]}-{digest}"
    words = " ".join(wanted)
    say(f"{words}: making an environment on top of {python}, in {place}")
    try:
        shared = subprocess.run([python, "-c", SITE_FOLDERS], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise EnvironmentFailed(f"the packages of {python} could not be found: {error}") from None
    venvs.uv("venv", "--quiet", "--clear", "--python", python, str(place), failure=f"{place}: not created")
    (packages,) = place.glob("lib/python3*/site-packages")
    # By addsitedir, because a folder that is only named would not have its own .pth files read.
    lines = [f"import site; site.addsitedir({where!r})\n" for where in shared.splitlines()]
    (packages / SHARED).write_text("".join(lines), "utf-8")
    # uv does not see through the .pth file. So it says what it would change below, and that is put on top.
    named = set(filter(None, map(venvs.package, wanted)))
    upgrade = [f"--upgrade-package={name}" for name in sorted(named)]
    below = ["--dry-run", "--color=never", "--break-system-packages", "--python", python]
    plan = venvs.uv("pip", "install", *below, *upgrade, *wanted, failure=f"{words}: not installed", messages=True)
    added = [line.removeprefix(" + ") for line in plan.splitlines() if line.startswith(" + ") and "(from " not in line]
    needed = [pin for pin in added if venvs.package(pin) not in named]
    made = str(interpreters.inside(place))
    options = ["--no-deps", "--python", made, *venvs.refresh(wanted)]
    venvs.uv("pip", "install", *options, *wanted, *needed, failure=f"{words}: not installed")
    return made


@dataclass(frozen=True)
class Side:
    label: str
    path: str = ""  # of an interpreter
    wanted: tuple[str, ...] = ()  # requirements to be installed


def parse_side(text: str, labels: Sequence[str]) -> Side:
    """Return what a word means: one of the known labels, a path, or requirements such as ``keras==3.14``."""
    text = text.strip()
    if not text:
        raise UsageError("BASE or a HEAD is empty: perhaps a variable of the shell is not set")
    if text in labels:
        return Side(text)
    path = Path(os.path.expanduser(text))
    if path.is_dir() and venvs.is_checkout(path):
        words = [str(path.absolute())]
    elif path.is_dir() or (path.is_file() and path.suffix != ".whl"):
        return _interpreter(text, path)
    elif commit := _commit(text):
        return commit
    else:
        words = venvs.split(text)
    if words:
        wanted = tuple(map(venvs.parse, words))
        return Side(_label(venvs.label(wanted)), wanted=wanted)
    if LABEL.fullmatch(text) and (program := shutil.which(text)):
        return Side(_label(text), path=program)
    if labels and LABEL.fullmatch(text):
        raise unknown("label", text, labels)
    requirement = "a requirement with a version, such as 'keras==3.14.*'"
    raise UsageError(f"{text!r} is neither a label, nor the path of an interpreter or a checkout, nor {requirement}")


def _commit(text: str) -> Side | None:
    """Return the side that ``./keras@v3.14.0`` means, a commit of a checkout; None for another text."""
    folder, at, revision = text.rpartition("@")
    path = Path(os.path.expanduser(folder)).absolute()
    if not at or not (path / ".git").exists():
        return None
    commit = _git(path, "rev-parse", "--verify", f"{revision}^{{commit}}")
    package = venvs.package(str(path)) or path.name
    return Side(_label(f"{package}-{commit[:9]}"), wanted=(f"{package} @ git+{path.as_uri()}@{commit}",))


def _git(path: Path, *words: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise UsageError(f"{path}: git is not installed, so its commits cannot be looked up")
    command = [git, "-C", str(path), *words]
    process = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if process.returncode:
        raise UsageError(f"{path}: git {' '.join(words)}: {' '.join(process.stderr.split())}")
    return process.stdout.strip()


def between(good: str, bad: str) -> list[str]:
    """Return all from GOOD to BAD: releases that pip finds here, or commits of the first parents. Raise UsageError."""
    first, last = EXACT.fullmatch(good.strip()), EXACT.fullmatch(bad.strip())
    if first and last and first["package"] == (package := last["package"]):
        try:
            oldest, newest = Version(first["version"]), Version(last["version"])
        except InvalidVersion:
            raise UsageError(f"{good} and {bad} are not both releases: name two, such as {package}==1.2.0") from None
        if oldest < newest:
            index = ("tool", "run", "--quiet", "--python", sys.executable, "pip", "index", "versions", package)
            output = venvs.uv(*index, failure=f"{package}: no releases were found")
            listed = re.search(r"^Available versions: (.*)$", output, re.MULTILINE)
            released = sorted(map(Version, listed[1].split(","))) if listed else []
            inner = [f"{package}=={version}" for version in released if oldest < version < newest]
            return [good.strip(), *inner, bad.strip()]
    else:
        (path, _, first_commit), (other, _, last_commit) = good.rpartition("@"), bad.rpartition("@")
        if not path or path != other or _commit(good) is None:
            exact = "two exact versions ('keras==3.12.0' 'keras==3.15.0')"
            commits = "two commits of one checkout (./keras@v3.14.0 ./keras@master), or name all: GOOD BETWEEN... BAD"
            raise UsageError(f"what lies between {good!r} and {bad!r}? Give {exact}, {commits}")
        commits = f"{first_commit}..{last_commit}"
        log = _git(Path(os.path.expanduser(path)), "rev-list", "--reverse", "--first-parent", commits)
        if log:
            return [good, *(f"{path}@{commit}" for commit in log.split())]
    raise UsageError(f"{bad} does not come after {good}: give the older one first")


def sides(
    texts: Sequence[str], chosen: Interpreters, backends: Sequence[str], say: Callable[[str], None]
) -> tuple[Interpreters, list[Environment], list[str]]:
    """Install what is asked for; return all interpreters, the environments torch@BASE and so on, and the labels."""
    parsed = [parse_side(text, chosen.labels()) for text in texts]
    labels = list(_labels(parsed))
    make = cache(lambda python, wanted: overlay(python, wanted, say))
    paths: dict[Environment, str] = {}
    for backend in backends:
        of_backend: dict[Environment, str] = {}
        for side, label in zip(parsed, labels, strict=True):
            made = make(chosen.of(Environment(backend)), side.wanted) if side.wanted else ""
            named = chosen.named.get(Environment(backend, side.label), "")  # a label may be of other backends alone
            of_backend[Environment(backend, label)] = side.path or made or named
        if all(of_backend.values()):
            paths |= of_backend
    if not paths:
        labelled = ", ".join(str(environment) for environment in chosen.named if environment.label)
        labels_there = f"there are: {labelled}" if labelled else "no interpreter has a label"
        raise UsageError(f"no backend has {'both ' if len(texts) == 2 else ''}{' and '.join(texts)}; {labels_there}")
    interpreters = Interpreters(dict(chosen.named) | paths, dict.fromkeys(paths, MADE) | dict(chosen.sources))
    return interpreters, list(paths), labels


def _labels(parsed: Sequence[Side]) -> Iterator[str]:
    """Yield a label of its own for each: the same twice tests the machine, and there are namesakes."""
    taken: set[str] = set()
    for index, side in enumerate(parsed):
        ending = "again" if side in parsed[:index] else "head"
        candidates = (f"{side.label}-{ending}{number}" for number in ("", *range(2, len(parsed))))
        label = next(label for label in (side.label, *candidates) if label not in taken)
        taken.add(label)
        yield label


def about(texts: Sequence[str], packages: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Return those packages that the requirements of any side name: then other backends do not matter."""
    named = {venvs.package(wanted) for text in texts for wanted in parse_side(text, labels).wanted}
    return [package for package in packages if any(name.startswith(package) for name in named)]


def _interpreter(text: str, path: Path) -> Side:
    python = interpreters.inside(path) if path.is_dir() else path
    if not interpreters.runs(str(python)):
        raise UsageError(f"{text}: neither an interpreter, nor a folder with an environment or a checkout in it")
    environment = python.absolute().parent.parent
    name = environment.parent.name if environment.name.strip(".") in USUAL else environment.name
    is_environment = (environment / "pyvenv.cfg").is_file()
    return Side(_label(name if is_environment else path.name), path=str(python.absolute()))


def _label(text: str) -> str:
    return venvs.UNFIT.sub("-", text).strip("-._+") or "this"
