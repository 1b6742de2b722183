"""The two sides of a comparison: a label that was given before, an interpreter, or what is to be installed."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kerasbench.environments import interpreters, layers, requirements
from kerasbench.environments.interpreters import LABEL, Interpreters
from kerasbench.errors import UsageError, unknown
from kerasbench.exchange.options import parted, subject

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
    columns: list[str]


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
    if path.is_dir() and requirements.is_checkout(path):
        checkout = requirements.parse(str(path.absolute()))
        return Side(_label(requirements.label([checkout])), wanted=(checkout,))
    if path.is_dir() or (path.is_file() and path.suffix != ".whl"):
        return _interpreter(text, path)
    if requirements.are_requirements(text):
        wanted = tuple(requirements.parse(one) for one in requirements.words(text))
        return Side(_label(requirements.label(wanted)), wanted=wanted)
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
    found: dict[str, str] = {}
    columns: list[str] = []
    made = cache(lambda python, wanted: layers.built(python, wanted, say))
    for backend in backends:
        paths = [_path(side, backend, chosen, made) for side in both.values()]
        if all(paths):
            own = [subject(backend, label) for label in both]
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
    named = {requirements.package(one) for one in wanted}
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
    return requirements.UNFIT.sub("-", text).strip("-._+") or "this"


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
        return made(chosen.of(backend), side.wanted)
    return chosen.named.get(subject(backend, side.label))


def _having(chosen: Interpreters) -> str:
    labelled = [whom for whom in chosen.named if parted(whom)[1]]
    return f"there are: {', '.join(labelled)}" if labelled else "no interpreter has a label"
