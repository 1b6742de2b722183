"""What a Python file of the user's is, by its text: the parent runs none in order to find out."""

import ast
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from kerasbench.scenario import MAX_FILE_BYTES, ScenarioError

KERAS = ("keras", "keras_hub", "keras_cv", "tensorflow")
# Packages that have a fit() of their own.
OTHER_FITS = {"catboost", "imblearn", "lightgbm", "sklearn", "umap", "xgboost"}
PACKAGE, CLASS, NAME = "kerasbench", "Scenario", "scenario"


def require_scenario(file: Path) -> None:
    """Raise ScenarioError for a file that cannot be read as Python, or in which nothing makes a ``Scenario``."""
    if not file.stat().st_size:
        new = file.with_stem(f"{file.stem}_scenario").name
        raise ScenarioError(f"{file}: an empty file. To begin a scenario file, type: kerasbench new {new}")
    try:
        tree = _parsed(file)
    except SyntaxError as error:
        place = f"{file}, line {error.lineno or 1}"
        said = f"{error.msg}, says Python {sys.version_info.major}.{sys.version_info.minor}"
        raise ScenarioError(f"{place}: SyntaxError: {said}: correct this line") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ScenarioError(f"{file}: not a Python file ({type(error).__name__}: {error})") from None
    if not _makes_scenario(tree, _folders(file), {file.resolve()}):
        ways = "measure a training script that imports Keras, or begin a scenario file: kerasbench new my_model.py"
        raise ScenarioError(
            f"{file}: it imports no Keras, and nothing in it makes a Scenario, so it was not run: {ways}"
        )


def is_script(file: Path) -> bool:
    """Tell whether it is a Python file that imports Keras, and in which nothing makes a ``Scenario``."""
    if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
        return False
    try:
        tree = _parsed(file)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    folders = _folders(file)
    trees = _trees(tree, folders, {file.resolve()})
    return not _makes_scenario(tree, folders, {file.resolve()}) and any(map(_imports_keras, trees))


def modules_beside(file: Path) -> list[Path]:
    """Return the files in a script's folder that it imports, and that these import."""
    folder, visits = file.resolve().parent, {file.resolve()}
    with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        for _ in _trees(_parsed(file), [folder], visits):
            pass
    inside = sorted(module for module in visits - {file.resolve()} if module.is_relative_to(folder))
    return [file.parent / module.relative_to(folder) for module in inside]


def attributes(code: str | bytes, file: Path) -> set[str]:
    """Return the names of attributes and of keyword arguments in a script's code, and in the modules beside it.

    A ``fit`` of what packages such as scikit-learn make is none.
    """
    try:
        trees = [*_trees(ast.parse(code), _folders(file), {file.resolve()})]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # running it says what is wrong
    nodes = [node for tree in trees for node in ast.walk(tree)]
    others = _made_by_others(nodes)
    names = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and not (node.attr == "fit" and _is_of(node.value, others))
    }
    return names | {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg}


def _made_by_others(nodes: list[ast.AST]) -> tuple[str, ...]:
    """Return how a script calls OTHER_FITS, what it imports from them, and what it makes with these."""
    others = tuple(
        (alias.asname or alias.name).partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (getattr(node, "module", None) or alias.name).partition(".")[0] in OTHER_FITS
    )
    for node in nodes if others else ():
        if isinstance(node, ast.Assign) and _is_of(node.value, others):
            others += tuple(ast.unparse(target) for target in node.targets)
    return others


def _is_of(node: ast.AST, others: tuple[str, ...]) -> bool:
    """Tell whether an expression is one of these, an attribute of it, or what calling that returns."""
    while isinstance(node, ast.Call | ast.Attribute) and ast.unparse(node) not in others:
        node = node.func if isinstance(node, ast.Call) else node.value
    return ast.unparse(node) in others


def _imports_keras(tree: ast.Module) -> bool:
    """Tell whether it imports Keras, or TensorFlow, which has it."""
    return any(module.partition(".")[0] in KERAS for module in _imported(list(ast.walk(tree))))


def _trees(tree: ast.Module, folders: list[Path], visits: set[Path]) -> Iterator[ast.Module]:
    """Yield it, and the modules beside it that it imports."""
    yield tree
    for module in dict.fromkeys(_imported(list(ast.walk(tree)))):
        for helper in _files_of(module, folders):
            if helper.resolve() not in visits:
                visits.add(helper.resolve())
                with contextlib.suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                    yield from _trees(_parsed(helper), folders, visits)


def _parsed(file: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as for "\d": the file's child gives them too
        return ast.parse(file.read_bytes(), str(file))


def _folders(file: Path) -> list[Path]:
    """Return where a scenario file finds what it imports, besides packages."""
    search = [Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return [*dict.fromkeys((file.parent, file.resolve().parent)), *search]


def _makes_scenario(tree: ast.Module, folders: list[Path], visits: set[Path]) -> bool:
    """Tell whether it, or a module beside it that it imports, names ``Scenario``; or it names ``scenario`` itself."""
    nodes = list(ast.walk(tree))
    modules = dict.fromkeys(_imported(nodes))
    if any(module.partition(".")[0] == PACKAGE for module in modules) and CLASS in _words(nodes):
        return True
    if NAME in _bound(tree):
        return True
    for module in modules:
        for helper in _files_of(module, folders):
            if helper.resolve() not in visits:
                visits.add(helper.resolve())
                try:
                    makes = _makes_scenario(_parsed(helper), folders, visits)
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
