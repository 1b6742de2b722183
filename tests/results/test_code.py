"""Which files are in a column's hash: by what they import, and by changing a copy of the package."""

import ast
import shutil
from pathlib import Path

import grimp
import pytest

from kerasbench import backends, variants
from kerasbench.processes.process import WORKER
from kerasbench.protocol.columns import Column, Options
from kerasbench.results import code
from kerasbench.results.code import BACKEND, EVERY_COLUMN, FOLDERS, PACKAGE, all_measuring_code, measuring_code

TABLE = {
    name.format(backend=backend)
    for names in (
        EVERY_COLUMN,
        [BACKEND],
        *([variant.file, *variant.files] for variant in variants.ALL),
    )
    for name in names
    for backend in (backends.built_in() if name.startswith("native/") else backends.names())  # others have no baseline
} | {file.relative_to(PACKAGE).as_posix() for folder in FOLDERS for file in (PACKAGE / folder).glob("*.py")}
# What of the above a table does not have, which the imports lead to.
LEFT_OUT = {
    "__init__.py": "names that a user imports, each by itself",
    "text.py": "words",
    "variants/variant.py": "hooks that do nothing",
    "errors.py": "words",
    "files.py": "makes folders and keeps pages, without a child",
    "host/__init__.py": "what the machine is, which its own record says",
    "host/linux.py": "why memory ran out, after a child was killed",
    "processes/group.py": "ends what a child has started",
    "processes/outcome.py": "what became of a trial, once it is over",
    "analysis/estimates.py": "how sure a number is",
}
COLUMNS = {
    column.label: column
    for backend in ("jax", "tensorflow", "torch")
    for column in (
        Column(backend, "cpu"),
        *(Column(backend, "cpu", Options(**{name: True})) for name in ("malloc", "native", "threads", "warm_cache")),
    )
}


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """The package as another machine or a wheel would have it: in another folder, compiled, its files newer."""
    package = tmp_path / "site-packages" / "kerasbench"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
    (package / "worker" / "__pycache__").mkdir()
    (package / "worker" / "__pycache__" / "clock.cpython-311.pyc").write_bytes(b"compiled")
    return package


def test_it_is_the_same_wherever_the_package_is_installed(elsewhere: Path) -> None:
    assert all(measuring_code(column, elsewhere) == measuring_code(column) for column in COLUMNS.values())
    assert all_measuring_code(elsewhere) == all_measuring_code()
    assert len(all_measuring_code()) == code.LENGTH


def test_a_column_that_differs_by_what_has_no_code_of_its_own_has_the_same() -> None:
    options = Options(batch=64, control=True, environment="keras-3.14")
    assert measuring_code(Column("jax", "gpu:1", options)) == measuring_code(Column("jax", "cpu"))
    assert len({measuring_code(Column(backend, "cpu")) for backend in backends.names()}) == len(backends.names())


def test_a_backend_that_is_not_there_may_stand_in_a_result_file() -> None:
    assert measuring_code(Column("../" * 2_000, "cpu")) != measuring_code(Column("jax", "cpu"))


@pytest.mark.parametrize(
    ("files", "columns"),
    [
        *((name, list(COLUMNS)) for name in ("worker/train.py", "processes/block.py", "runs/turns.py", "scenario.py")),
        ("backends/jax.py", [name for name in COLUMNS if name.startswith("jax")]),
        ("native/__init__.py", [name for name in COLUMNS if "native" in name]),
        ("native/torch.py", ["torch cpu native=on"]),
        ("variants/malloc.py", [name for name in COLUMNS if "malloc" in name]),
        ("cli/*.py report/*.py plan/[cdlr]*.py analysis/*.py settings.py results/*.py runs/r*.py runs/[mc]*.py", []),
    ],
)
def test_a_change_voids_the_columns_that_use_the_file(elsewhere: Path, files: str, columns: list[str]) -> None:
    for file in (file for pattern in files.split() for file in elsewhere.glob(pattern)):
        file.write_text(file.read_text() + "# changed\n")
    changed = [name for name, column in COLUMNS.items() if measuring_code(column, elsewhere) != measuring_code(column)]
    assert changed == columns
    assert (all_measuring_code(elsewhere) != all_measuring_code()) is bool(columns)


def test_what_a_variant_says_is_in_no_hash(elsewhere: Path) -> None:
    file, column = elsewhere / "variants" / "malloc.py", Column("jax", "cpu", Options(malloc="keep"))
    text = file.read_text("utf-8")
    for part, changes in (('metavar = "default|keep"', False), ("return KEEPS_MEMORY", True)):
        file.write_text(text.replace(part, f"{part}  # reworded\n\n"), "utf-8")
        code._hash_of_each_file.cache_clear()
        measuring_code.cache_clear()
        assert (measuring_code(column, elsewhere) != measuring_code(column)) is changes
    (elsewhere / "variants" / "more.py").write_text("")
    assert measuring_code(Column("jax", "cpu"), elsewhere) == measuring_code(Column("jax", "cpu"))


def test_all_that_runs_in_a_child_or_gives_turns_is_in_a_table_or_left_out_for_a_reason() -> None:
    graph = grimp.build_graph("kerasbench", exclude_type_checking_imports=True, cache_dir=None)
    files = {module: PACKAGE.joinpath(*module.split(".")[1:]) for module in graph.modules}
    names = {
        module: (file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).relative_to(PACKAGE).as_posix()
        for module, file in files.items()
    }
    modules = {name: module for module, name in names.items()}
    assert set(modules) >= TABLE  # after a file was renamed, its entry is
    assert WORKER.relative_to(PACKAGE).as_posix() in TABLE  # which nobody imports
    reached, ways = set(TABLE), list(TABLE)
    while ways:
        imported = graph.find_modules_directly_imported_by(modules[ways.pop()])
        rooms = {module.rpartition(".")[0] for module in imported}  # which are imported with what is in them
        new = {names[module] for module in {*imported, *rooms} if module} - reached
        reached |= new
        ways += new - set(LEFT_OUT)
    empty = {name for name in reached if len(ast.parse((PACKAGE / name).read_text("utf-8")).body) == 1}  # a docstring
    assert reached - empty - TABLE == set(LEFT_OUT)
