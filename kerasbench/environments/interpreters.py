"""Which Python runs which backend. One for all would not do: CUDA builds bring wheels that overwrite each other."""

import grp
import os
import pwd
import re
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import Any

from kerasbench import backends
from kerasbench.errors import UsageError, unknown
from kerasbench.protocol.columns import AT, Environment
from kerasbench.text import complain

OWN_FILE, PYPROJECT = "kerasbench.toml", "pyproject.toml"
FOLDER = Path(".venvs")  # of the environments that kerasbench makes
# What a file may say of options: nothing that runs code, for a file may come with somebody's checkout.
DEFAULTS = {"results": "results", "budget": "budget", "backend": "backends"}  # and their names in Settings
OPTION, MADE = "--python", "made"  # who names an interpreter, unless a file does; or it was made for this run
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # what is a word of a column's name, and of a file's


@dataclass(frozen=True)
class Interpreters:
    """The interpreters that were named, and where each was. Every other backend has this one's own."""

    named: Mapping[Environment, str] = field(default_factory=dict)
    sources: Mapping[Environment, str] = field(default_factory=dict)

    def of(self, environment: Environment, runtime: str = "") -> str:
        """``runtime``: what needs no backend; the backend's interpreter may have it, if none is named for it."""
        named = self.named.get(Environment(runtime)) if runtime else None
        return named or self.named.get(environment, sys.executable)

    def source(self, environment: Environment) -> str:
        return self.sources.get(environment, "")

    def usual(self) -> list[str]:
        """Return the backends that are meant where none is named: one from outside, if it is here or was named."""
        there = {environment.backend for environment in self.named}
        there |= {name for name in backends.names() if util.find_spec(backends.get(name).PACKAGE)}
        return [name for name in backends.names() if name in backends.built_in() or name in there]

    def environments(self, backends: Iterable[str]) -> list[Environment]:
        """Return all that these backends are measured in: plain ``torch`` only if it was named, or has no labels."""
        columns = []
        for plain in map(Environment, backends):
            labelled = [named for named in self.named if named.backend == plain.backend and named.label]
            columns += [plain, *labelled] if plain in self.named or not labelled else labelled
        return columns

    def to_name_again(self) -> list[str]:
        """Return what ``--python`` takes to have again what no file names."""
        return [f"{name}={path}" for name, path in self.named.items() if self.source(name) in (OPTION, MADE)]

    def labels(self) -> list[str]:
        return list(dict.fromkeys(environment.label for environment in self.named if environment.label))

    def require(self, environments: Iterable[Environment]) -> None:
        for environment in environments:
            if not runs(path := self.of(environment)):
                name = f" --name {environment.label}" if environment.label else ""
                place = (FOLDER / str(environment)).absolute()  # if it is there, it no longer works
                force = " --force" if Path(path) == inside(place) and place.is_dir() else ""
                gone = f"{self.source(environment)}: no interpreter of {environment} at {path}"
                create = f"python -m kerasbench env create --backend {environment.backend}{name}{force}"
                raise UsageError(f"{gone}; correct the path, or create it with {create}")


def find(given: Sequence[str], names: Sequence[str], folder: Path | None = None) -> Interpreters:
    """Take ``--python NAME=PATH``, such as ``torch@LABEL=...``, and what the nearest file says of all other names."""
    file, configuration = configured(folder or Path.cwd())
    by_file, by_option = {}, {}
    for name, path in configuration.get("python", {}).items():
        assert file is not None
        if not isinstance(path, str) or not path:
            raise UsageError(f"{file}: python.{name} takes the path of an interpreter, not {path!r}")
        try:
            by_file[_environment(name, names)] = _path(path, file.parent)
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from None
    for text in given:
        backend, equals, path = text.partition("=")
        if not equals or not path.strip():
            raise UsageError(f"{OPTION} takes NAME=PATH, such as torch=.venvs/torch/bin/python, not {text!r}")
        by_option[_environment(backend.strip(), names)] = _path(path.strip(), Path.cwd())
    sources = dict.fromkeys(by_file, str(file)) | dict.fromkeys(by_option, OPTION)
    return Interpreters(by_file | by_option, sources)


def defaults(folder: Path | None = None) -> dict[str, Any]:
    """By the names of ``kerasbench.settings``. The folder of the results is relative to the file, and below it."""
    file, configuration = configured(folder or Path.cwd(), lambda _: None)  # ``find`` says what is passed over
    if file is None:
        return {}
    given: dict[str, Any] = {}
    for name in sorted(DEFAULTS.keys() & configuration.keys()):
        value = configuration[name]
        words = value if name == "backend" and isinstance(value, list) else [value]
        if not all(isinstance(word, str) and word and word.isprintable() for word in words):
            raise UsageError(f"{file}: {name} takes text, as --{name} does, not {value!r}")
        given[DEFAULTS[name]] = words if name == "backend" else value
    if "results" in given:
        place = Path(os.path.normpath(file.parent / given["results"]))
        if not place.is_relative_to(file.parent):
            raise UsageError(f"{file}: results takes a folder below that of this file, not {given['results']!r}")
        given["results"] = os.path.relpath(place)
    return given


def configured(folder: Path, say: Callable[[str], None] = complain) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest file that configures kerasbench, here, above or at home, and what it says of it; or None."""
    for place in _places(folder):
        file, project = place / OWN_FILE, place / PYPROJECT
        if file.is_file() and _is_own(file, say):
            configuration = _read(file)
        elif project.is_file() and "kerasbench" in (tools := _tools(project, say)) and _is_own(project, say):
            file, configuration = project, tools["kerasbench"]
        else:
            continue
        is_valid = isinstance(configuration, dict) and not configuration.keys() - {"python", *DEFAULTS}
        if not is_valid or not isinstance(configuration.get("python", {}), dict):
            table = 'a table [python] with lines like torch = "PATH"'
            raise UsageError(f"{file}: allowed are {', '.join(DEFAULTS)}, and {table}")
        return file, configuration
    return None, {}


def _places(folder: Path) -> Iterator[Path]:
    for place in (folder, *folder.parents):
        yield place
        if place == Path.home():
            return
        if (place / PYPROJECT).is_file() or (place / ".git").exists():
            break
    yield Path.home()


def _is_own(file: Path, say: Callable[[str], None]) -> bool:
    """Tell whether a file, and a link in its place, is this user's or root's, and nobody else may change it."""
    state, user = file.stat(), os.getuid()
    if {state.st_uid, file.lstat().st_uid} - {user, 0}:
        say(f"{file}: ignored, because it is another user's and names programs to start")
        return False
    others = "everybody" if state.st_mode & stat.S_IWOTH else ""
    if not others and state.st_mode & stat.S_IWGRP:
        others = "its group"
        with suppress(KeyError):
            group, name = grp.getgrgid(state.st_gid), pwd.getpwuid(user).pw_name
            if group.gr_name == name and not {*group.gr_mem} - {name}:
                others = ""  # where each user has such a group (Ubuntu, Fedora), the umask 002 makes files writable
    if others:
        say(f"{file}: ignored, because {others} may change it and it names programs to start: chmod go-w {file}")
    return not others


def _tools(project: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the tables of tools in a pyproject.toml; empty if it cannot be read: it may be a template."""
    try:
        tools = _read(project).get("tool", {})
    except UsageError as error:
        say(f"{error}; ignored")
        return {}
    return tools if isinstance(tools, dict) else {}


def runs(path: str) -> bool:
    return shutil.which(path) is not None


def inside(environment: Path) -> Path:
    return environment / "bin" / "python"


def _environment(text: str, backends: Sequence[str]) -> Environment:
    environment = Environment.parse(text)
    if environment.backend not in backends:
        raise unknown("backend", environment.backend, backends)
    if AT in text:
        require_label(environment.label)
    return environment


def require_label(label: str) -> None:
    if not LABEL.fullmatch(label):
        use = "letters, digits and, after the first, any of ._+-, such as keras-3.14"
        raise UsageError(f"{label!r} cannot be a label: use {use}")


def _path(text: str, base: Path) -> str:
    """Return an absolute path; links stay, because a virtual environment's python is one."""
    if os.sep not in text and not (base / text).exists():
        return shutil.which(text) or text  # `python3.12`, as a shell finds it
    path = Path(os.path.normpath(base.absolute() / Path(os.path.expanduser(text))))
    return str(inside(path) if path.is_dir() else path)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of the text, of its encoding, of a number, of a thousand brackets
        raise UsageError(f"{file}: not TOML: {error}") from None
