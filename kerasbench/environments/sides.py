"""Environments for one comparison: a few packages on top of an interpreter's own, whose other packages they share.

What differs between two of them is what was asked for, and what that needs in another version than is shared. It takes
seconds to make one. They are kept in the user's cache folder, and made again where what they share is no longer the
same. One from a path or an address is made again each time, because that may have changed.

The two sides of a comparison: a label that was given before, an interpreter, or what is to be installed.
"""

import hashlib
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs
from filelock import FileLock

from kerasbench.environments import interpreters, venvs
from kerasbench.environments.interpreters import LABEL, Interpreters
from kerasbench.errors import EnvironmentFailed, UsageError, unknown
from kerasbench.protocol.columns import Environment

SHARED = "kerasbench-shared.pth"  # names the folders of packages that are seen behind the environment's own
STATE = "kerasbench-shared.txt"  # what was shared when the environment was made
LOCK = ".lock"
UNFINISHED = ".unfinished-"  # begins the name of a folder in which an environment is being made
BELOW = (
    "import site, sys; print('\\n'.join([' '.join(sys.version.split()), *site.getsitepackages(), "
    "*([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]))"
)


def folder() -> Path:
    """Return where they are kept."""
    return Path(platformdirs.user_cache_dir("kerasbench")) / "environments"


def built(python: str, wanted: Sequence[str], say: Callable[[str], None]) -> str:
    """Return the interpreter of an environment with these requirements on top of what another interpreter has.

    It is made where there is none yet, where the other interpreter or its packages are no longer those that it was made
    on, and where a requirement is a path or an address; ``say`` hears so.

    Raises:
        EnvironmentFailed: it could not be made.
    """
    place = folder() / _name(python, wanted)
    interpreter = interpreters.inside(place)
    words = " ".join(wanted)
    version, *folders = _below(python)
    state = "\n".join([version, *folders, *_distributions(folders)])
    if _state(place) == state and interpreters.runs(str(interpreter)) and not any(_may_change(one) for one in wanted):
        say(f"{words}: made earlier, in {place}")
        return str(interpreter)
    say(f"{words}: making an environment on top of {python}, in {place}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # The machine is this run's, and the home may be that of other machines too.
        with FileLock(place.parent / LOCK), tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=place.parent) as scratch:
            for left in place.parent.glob(f"{UNFINISHED}*"):  # by a run that was killed
                if str(left) != scratch:
                    shutil.rmtree(left, ignore_errors=True)
            _make(Path(scratch) / place.name, python, folders, wanted)
            (Path(scratch) / place.name / STATE).write_text(state, "utf-8")
            shutil.rmtree(place, ignore_errors=True)
            (Path(scratch) / place.name).rename(place)
    except OSError as error:
        raise EnvironmentFailed(f"{place}: cannot be made: {error.strerror}") from None
    return str(interpreter)


def _may_change(requirement: str) -> bool:
    """Tell whether the same words may be other code tomorrow: a path, or an address such as a branch's."""
    return venvs.is_path(requirement) or "://" in requirement


def _below(python: str) -> list[str]:
    """Return an interpreter's version, and then the folders of its packages."""
    said = venvs.run([python, "-c", BELOW], f"{python} did not tell where its packages are", quiet=True)
    return [line for line in said.splitlines() if line]


def _distributions(folders: Sequence[str]) -> list[str]:
    """Return the packages in these folders, each with its version."""
    return sorted(one.name for folder in folders for one in Path(folder).glob("*.*-info"))


def _state(place: Path) -> str | None:
    """Return what was shared when an environment was made; None where it does not tell, or is not there."""
    try:
        return (place / STATE).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _make(place: Path, python: str, folders: Sequence[str], wanted: Sequence[str]) -> None:
    venvs.run([python, "-m", "venv", str(place)], f"{place}: no virtual environment could be made")
    own = str(interpreters.inside(place))
    (packages,) = place.glob("lib/python3*/site-packages")
    # By addsitedir, because a folder that is only named would not have its own .pth files read.
    lines = [f"import site; site.addsitedir({one!r})" for one in folders]
    (packages / SHARED).write_text("\n".join(lines) + "\n", "utf-8")
    failure = f"{' '.join(wanted)}: pip did not install it"
    # First what was asked for, though the same version may be shared: that may be another one tomorrow. Then what it
    # needs and is not shared; a path by its package's name, or it would be installed again.
    venvs.run([own, "-m", "pip", "install", "--ignore-installed", "--no-deps", *wanted], failure)
    named = [venvs.package(one) if venvs.is_path(one) else one for one in wanted]
    if needing := [one for one in named if one]:
        venvs.run([own, "-m", "pip", "install", *needing], failure)


def _name(python: str, wanted: Sequence[str]) -> str:
    """Return the name of an environment's folder: readable, and another for each interpreter and set of packages.

    And for each machine: several may share a home, and one replaces none that another measures with.
    """
    told = [str(Path(python).absolute()), platform.machine(), platform.node(), *wanted]
    digest = hashlib.sha256("\n".join(told).encode()).hexdigest()[:10]
    return f"{venvs.label(wanted)[:60]}-{digest}"


Say = Callable[[str], None]
USUAL = ("venv", "env")  # what environments are called that lie in the folder of a project, which then tells more


@dataclass(frozen=True)
class Side:
    """What one word of a user means. ``path`` is an interpreter's, ``wanted`` is to be installed; neither: a label."""

    label: str
    path: str = ""
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sides:
    """The interpreters of both sides, their labels, and whom they are for: ``torch@BASE``, ``torch@HEAD`` and so on."""

    interpreters: Interpreters
    labels: list[str]
    columns: list[Environment]


def meant(text: str, known: Sequence[str]) -> Side:
    """Return what a word means: one of the known labels, a path, or requirements such as ``keras==3.14``.

    A folder is a checkout where it has a pyproject.toml, else the environment in it.

    Raises:
        UsageError: it means nothing.
    """
    text = text.strip()
    if text in known:
        return Side(text)
    path = Path(text).expanduser()
    if path.is_dir() and venvs.is_checkout(path):
        checkout = venvs.parse(str(path.absolute()))
        return Side(_label(venvs.label([checkout])), wanted=(checkout,))
    if path.is_dir() or (path.is_file() and path.suffix != ".whl"):
        return _interpreter(text, path)
    if venvs.are_requirements(text):
        wanted = tuple(venvs.parse(one) for one in venvs.words(text))
        return Side(_label(venvs.label(wanted)), wanted=wanted)
    if LABEL.fullmatch(text) and shutil.which(text):
        return Side(_label(text), path=str(shutil.which(text)))
    if known and LABEL.fullmatch(text):
        raise unknown("label", text, known)
    raise UsageError(
        f"{text!r} is neither a label, nor the path of an interpreter or a checkout, nor a requirement with a version, "
        "such as 'keras==3.14.*'"
    )


def sides(base: str, head: str, chosen: Interpreters, backends: Sequence[str], say: Say) -> Sides:
    """Return the interpreters of both sides for each of the backends, and make those that are to be installed.

    ``chosen`` are those that have a name: a label is one of theirs, and what is installed is put on top of a backend's
    own. ``say`` hears what is made.

    Raises:
        UsageError: a word means nothing, or there is no backend that has both. EnvironmentFailed: one was not made.
    """
    both = _told_apart([meant(text, chosen.labels()) for text in (base, head)])
    found: dict[Environment, str] = {}
    columns: list[Environment] = []
    made = cache(lambda python, wanted: built(python, wanted, say))
    for backend in backends:
        paths = [_path(side, backend, chosen, made) for side in both.values()]
        if all(paths):
            own = [Environment(backend, label) for label in both]
            found |= dict(zip(own, map(str, paths), strict=True))
            columns += own
    if not columns:
        raise UsageError(f"there is no backend that has both {base} and {head}; {_having(chosen)}")
    sources = dict.fromkeys(found, "versus")
    return Sides(Interpreters(dict(chosen.named) | found, dict(chosen.sources) | sources), list(both), columns)


def about(base: str, head: str, packages: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return which of these packages the requirements of either side are about: then other backends do not matter.

    What begins with a package's name is a part of it: ``jaxlib``, ``tensorflow-cpu``.
    """
    wanted = [one for text in (base, head) for one in meant(text, known).wanted]
    named = {venvs.package(one) for one in wanted}
    return [one for one in packages if any(name.startswith(one) for name in named)]


def _interpreter(text: str, path: Path) -> Side:
    """Return the side that a folder with an environment, or the file of an interpreter, is."""
    python = interpreters.inside(path) if path.is_dir() else path
    if not interpreters.runs(str(python)):
        raise UsageError(f"{text}: neither an interpreter, nor a folder with an environment or a checkout in it")
    environment = python.absolute().parent.parent
    if not (environment / "pyvenv.cfg").is_file():
        return Side(_label(path.name), path=str(python.absolute()))
    name = environment.parent.name if environment.name.strip(".") in USUAL else environment.name
    return Side(_label(name), path=str(python.absolute()))


def _label(text: str) -> str:
    """Return a label made of a word."""
    return venvs.UNFIT.sub("-", text).strip("-._+") or "this"


def _told_apart(given: Sequence[Side]) -> dict[str, Side]:
    """Return both by their labels. The same one twice, which tests the machine, is told apart, and so are namesakes."""
    base, head = given
    if base.label != head.label:
        return {base.label: base, head.label: head}
    return {base.label: base, f"{head.label}-{'again' if head == base else 'head'}": head}


def _path(side: Side, backend: str, chosen: Interpreters, made: Callable[[str, Sequence[str]], str]) -> str | None:
    """Return the interpreter of a side for a backend; None where its label is of other backends alone."""
    if side.path:
        return side.path
    if side.wanted:
        return made(chosen.of(Environment(backend)), side.wanted)
    return chosen.named.get(Environment(backend, side.label))


def _having(chosen: Interpreters) -> str:
    labelled = [str(one) for one in chosen.named if one.label]
    return f"there are: {', '.join(labelled)}" if labelled else "no interpreter has a label"
