"""What is to be installed, in words that pip takes: ``keras==3.14.*``, a wheel, or the path of a checkout."""

import os
import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kerasbench.errors import UsageError

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
