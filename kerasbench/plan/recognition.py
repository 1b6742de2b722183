"""What a file of the user's is, by its text or its first bytes: the parent runs none in order to find out."""

import ast
import contextlib
import json
import os
import struct
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from kerasbench.errors import UnusableScenario
from kerasbench.scenario import MAX_FILE_BYTES, NOTEBOOK, is_named, is_saved

KERAS = ("keras", "keras_hub", "keras_cv", "tensorflow")
PACKAGE, CLASS, NAME = "kerasbench", "Scenario", "scenario"

# Of files that are saved models by their names.
LFS = b"version https://git-lfs.github.com/spec/"
HDF5, ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"
METADATA, MAX_METADATA_BYTES = "metadata.json", 1 << 16
ARCHIVE_END, ARCHIVE_END_BYTES = b"PK\x05\x06", 22  # of a zip file, before its comment
MAX_COMMENT_BYTES = 1 << 16
MAX_DIRECTORY_BYTES = 1 << 20  # of a zip file; Keras writes three or four members
OLD_KERAS = "2."


def require_scenario(file: Path) -> None:
    """Raise UnusableScenario for a file that cannot be read as Python, or in which nothing makes a ``Scenario``."""
    try:
        tree = _parsed(file)
    except SyntaxError as error:
        place = f"{file}, line {error.lineno or 1}"
        said = f"{error.msg}, says Python {sys.version_info.major}.{sys.version_info.minor}"
        raise UnusableScenario(f"{place}: SyntaxError: {said}: correct this line") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnusableScenario(f"{file}: not a Python file ({type(error).__name__}: {error})") from None
    if not _makes_scenario(tree, _folders(file), {file.resolve()}):
        ways = "measure a training script that imports Keras, or begin a scenario file: kerasbench new my_model.py"
        raise UnusableScenario(
            f"{file}: it imports no Keras, and nothing in it makes a Scenario, so it was not run: {ways}"
        )


def require_model(file: Path) -> None:
    """Raise UnusableScenario for what is no saved model of Keras 3 by its first bytes, or by the version in it."""
    try:
        with file.open("rb") as stream:
            start = stream.read(len(LFS))
        version = _keras_version(file) if start.startswith(ZIP) else ""
    except OSError:
        return  # who reads it for its hash says why it cannot be read
    is_hdf5_name = file.suffix != ".keras"
    if start == LFS:
        raise UnusableScenario(f"{file}: a pointer of Git LFS, not the model itself: git lfs pull fetches it")
    if start.startswith(HDF5) and not is_hdf5_name:
        raise UnusableScenario(f"{file}: an HDF5 file under another name: rename it to {file.with_suffix('.h5').name}")
    if start.startswith(ZIP) and is_hdf5_name:
        new = file.with_suffix(".keras").name
        raise UnusableScenario(f"{file}: a .keras file under another name: rename it to {new}")
    if version.startswith(OLD_KERAS):
        old = file.with_suffix(".h5").name
        raise UnusableScenario(
            f"{file}: saved by Keras {version}, and Keras 3 reads no .keras file of Keras 2. "
            f"Load it by Keras {version}, save it there as an HDF5 file, model.save('{old}'), and measure that file"
        )


def require_recognised(file: Path) -> None:
    """Raise UnusableScenario for a saved model, a script or a scenario file that is none by its contents."""
    if is_saved(file):
        require_model(file)
    elif file.suffix == NOTEBOOK:
        require_notebook(file)
    elif not is_named(file) and not is_script(file):
        require_scenario(file)


def is_script(file: Path) -> bool:
    """Tell whether it is a notebook, or a Python file that imports Keras, and in which nothing makes a ``Scenario``."""
    if file.suffix == NOTEBOOK:
        return True
    if file.suffix != ".py" or not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
        return False
    try:
        tree = _parsed(file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    folders = _folders(file)
    return not _makes_scenario(tree, folders, {file.resolve()}) and _imports_keras(tree, folders, {file.resolve()})


def _imports_keras(tree: ast.Module, folders: list[Path], seen: set[Path]) -> bool:
    """Tell whether it imports Keras, or TensorFlow, which has it, itself or by a module beside it."""
    for module in dict.fromkeys(_imported(list(ast.walk(tree)))):
        if module.partition(".")[0] in KERAS:
            return True
        for helper in _files_of(module, folders):
            if helper.resolve() not in seen:
                seen.add(helper.resolve())
                with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                    if _imports_keras(_parsed(helper), folders, seen):
                        return True
    return False


def require_notebook(file: Path) -> None:
    """Raise UnusableScenario for what is no notebook with cells of Python."""
    try:
        content = json.loads(file.read_bytes())
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        has_code = any(cell["cell_type"] == "code" for cell in content["cells"])
    except OSError:
        return  # who reads it for its hash says why it cannot be read
    except (ValueError, AttributeError, KeyError, TypeError):
        raise UnusableScenario(f"{file}: not a Jupyter notebook: its JSON has no cells") from None
    if language.lower() != "python" or not has_code:
        raise UnusableScenario(f"{file}: no notebook with cells of Python")


def _parsed(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as for "\d": the file's child gives them too
        return ast.parse(file.read_bytes(), str(file))


def _folders(file: Path) -> list[Path]:
    """Return where a scenario file finds what it imports, besides packages."""
    search = [Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return [*dict.fromkeys((file.parent, file.resolve().parent)), *search]


def _makes_scenario(tree: ast.Module, folders: list[Path], seen: set[Path]) -> bool:
    """Tell whether it, or a module beside it that it imports, names ``Scenario``; or it names ``scenario`` itself."""
    nodes = list(ast.walk(tree))
    modules = dict.fromkeys(_imported(nodes))
    if any(module.partition(".")[0] == PACKAGE for module in modules) and CLASS in _words(nodes):
        return True
    if NAME in _bound(tree):
        return True
    for module in modules:
        for helper in _files_of(module, folders):
            if helper.resolve() not in seen:
                seen.add(helper.resolve())
                try:
                    makes = _makes_scenario(_parsed(helper), folders, seen)
                except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                    makes = True  # the child says what is wrong with it
                if makes:
                    return True
    return False


def _imported(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # each may be a module, too


def _words(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield the names that it binds at its top level to what may be a ``Scenario``: no class, function or literal."""
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if not isinstance(node.value, ast.Constant | ast.JoinedStr | ast.Lambda | None):
                yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            left += ast.iter_child_nodes(node)


def _files_of(module: str, folders: list[Path]) -> Iterator[Path]:
    """Yield the files in these folders that importing a module runs: its packages', and its own."""
    parts = module.split(".")
    for folder in folders:
        for count in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:count])
            for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                if file.is_file() and file.stat().st_size <= MAX_FILE_BYTES:
                    yield file


def _keras_version(file: Path) -> str:
    """Return the version that a .keras file says it was saved by; empty where it does not say, or looks hostile."""
    import json  # late, as the next one: only saved models need them
    import zipfile

    if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
        return ""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(METADATA) as member:
            fields = json.loads(member.read(MAX_METADATA_BYTES))
    except Exception:  # whatever a damaged or encrypted archive raises: the child says what is wrong
        return ""
    version = fields.get("keras_version") if isinstance(fields, dict) else None
    return version if isinstance(version, str) and version.isprintable() and len(version) <= 32 else ""


def _directory_bytes(file: Path) -> int:
    """Return how large a zip file's list of members is, which would be read whole."""
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - MAX_COMMENT_BYTES - ARCHIVE_END_BYTES))
        tail = stream.read()
    place = tail.rfind(ARCHIVE_END)
    if place < 0 or len(tail) < place + ARCHIVE_END_BYTES:
        return 0  # no zip file
    (length,) = struct.unpack_from("<I", tail, place + 12)
    return int(length)
