"""tests/ mirrors kerasbench/: the tests of ``X/y.py`` are ``tests/X/test_y.py``, a room's own ``tests/X/test_X.py``."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE, TESTS = ROOT / "kerasbench", ROOT / "tests"
EXCEPTIONS = {  # module -> where it is tested instead
    "exchange/descriptions.py": "plan/test_catalog.py: two records without behaviour, remembered and read again",
    "worker/trial/parts.py": "real/test_explain.py: parts are those of a real step",
}


def behaves(file: Path) -> bool:
    """Tell whether a module defines anything that can go wrong: a function or a class."""
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.parse(file.read_text("utf-8")).body)


def home_of(module: str) -> str:
    """Return where a module's tests belong, relative to tests/."""
    place = Path(module)
    name = place.stem.strip("_") if place.stem != "__init__" else place.parent.name or PACKAGE.name
    return str(place.parent / f"test_{name}.py")


MODULES = [str(file.relative_to(PACKAGE)) for file in sorted(PACKAGE.rglob("*.py")) if behaves(file)]


def test_every_module_has_a_test_file_where_it_is_looked_for() -> None:
    missing = [module for module in MODULES if not (TESTS / home_of(module)).exists()]
    assert sorted(missing) == sorted(EXCEPTIONS)


def test_every_test_file_of_a_room_is_in_a_room_that_there_is() -> None:
    rooms = {file.parent.relative_to(TESTS) for file in TESTS.rglob("test_*.py")} - {Path(), Path("real")}
    assert [str(room) for room in sorted(rooms) if not (PACKAGE / room / "__init__.py").exists()] == []


def test_where_the_home_of_a_module_belong() -> None:
    assert home_of("cli.py") == "test_cli.py"
    assert home_of("__main__.py") == "test_main.py"
    assert home_of("__init__.py") == "test_kerasbench.py"
    assert home_of("machine/__init__.py") == "machine/test_machine.py"
    assert home_of("worker/trial/feed.py") == "worker/trial/test_feed.py"
