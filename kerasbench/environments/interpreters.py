"""Which Python runs which backend: named on the command line, in a file of the project's, or the one that runs this.

CUDA builds of the frameworks bring NVIDIA wheels that overwrite each other, and tensorflow-metal wants an older
TensorFlow: an environment for each backend is the way out. A child needs only keras, numpy and its backend there.
"""

import os
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kerasbench.errors import UsageError, unknown

OWN_FILE, PYPROJECT = "kerasbench.toml", "pyproject.toml"
OPTION = "--python"


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file may say of kerasbench: the interpreters by backend, whose names and paths are checked one by one."""

    python: dict[str, Any] = {}


@dataclass(frozen=True)
class Interpreters:
    """The interpreters that were named, by backend, and where each was; every other backend has this one's own."""

    named: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def of(self, backend: str) -> str:
        """Return the path of the interpreter that runs a backend."""
        return self.named.get(backend, sys.executable)

    def source(self, backend: str) -> str:
        """Return who named it: ``--python``, a file, or nobody (empty)."""
        return self.sources.get(backend, "")

    def require(self, backends: Iterable[str]) -> None:
        """Raise UsageError where the interpreter of one of these backends cannot be started."""
        for backend in backends:
            if not runs(path := self.of(backend)):
                raise UsageError(
                    f"{self.source(backend)}: no interpreter of {backend} at {path}; mend the path, or make it with "
                    f"python -m kerasbench env create --backend {backend}"
                )


def find(given: Sequence[str], known: Sequence[str], folder: Path | None = None) -> Interpreters:
    """Return the interpreters that ``--python NAME=PATH`` names, and those of the nearest file for all others.

    The file is ``kerasbench.toml`` with a table ``[python]``, or ``pyproject.toml`` with ``[tool.kerasbench.python]``,
    in ``folder`` (the current one) or above it. A path is relative to its file; a folder means the environment in it.

    Raises:
        UsageError: a name or a table means nothing, or the file cannot be read. That a path leads nowhere is not
            looked for.
    """
    file, found = configured(folder or Path.cwd())
    by_file = {name: _path(text, file.parent) for name, text in _checked(file, found, known).items()} if file else {}
    by_option = dict(_parsed(text, known) for text in given)
    sources = dict.fromkeys(by_file, str(file)) | dict.fromkeys(by_option, OPTION)
    return Interpreters(by_file | by_option, sources)


def configured(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest file that configures kerasbench, and what it says of it; None where there is none.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    for place in (folder, *folder.parents):
        if (own := place / OWN_FILE).is_file():
            return own, _read(own)
        if (project := place / PYPROJECT).is_file():
            tool = _read(project).get("tool", {})
            if isinstance(tool, dict) and "kerasbench" in tool:
                return project, tool["kerasbench"]
    return None, {}


def runs(path: str) -> bool:
    """Tell whether there is something at a path that can be started."""
    return shutil.which(path) is not None


def inside(environment: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return environment / "bin" / "python"


def _parsed(text: str, known: Sequence[str]) -> tuple[str, str]:
    backend, equals, path = text.partition("=")
    if not equals or not path.strip():
        raise UsageError(f"{OPTION} takes NAME=PATH, such as torch=.venvs/torch/bin/python, not {text!r}")
    if backend.strip() not in known:
        raise unknown("backend", backend.strip(), known)
    return backend.strip(), _path(path.strip(), Path.cwd())


def _path(text: str, base: Path) -> str:
    """Return an absolute path; links stay, because a virtual environment's python is one."""
    if os.sep not in text and not (base / text).exists():
        return shutil.which(text) or text  # `python3.12`, as a shell finds it
    path = Path(os.path.normpath(base.absolute() / Path(text).expanduser()))
    return str(inside(path) if path.is_dir() else path)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: not TOML: {error}") from None


def _checked(file: Path, found: Any, known: Sequence[str]) -> dict[str, str]:
    try:
        table = msgspec.convert(found, Configuration).python
    except msgspec.ValidationError:
        raise UsageError(f'{file}: kerasbench knows one table here, [python] with lines like torch = "PATH"') from None
    for name, path in table.items():
        if name not in known:
            raise UsageError(f"{file}: {unknown('backend', name, known)}")
        if not isinstance(path, str) or not path:
            raise UsageError(f"{file}: python.{name} takes the path of an interpreter, not {path!r}")
    return table
