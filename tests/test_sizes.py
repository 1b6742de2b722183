"""No function and no file is longer than can be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "kerasbench"
LINES_OF_A_FUNCTION, LINES_OF_A_FILE = 40, 400
LISTS_OF_OPTIONS = {  # their parameters alone are twenty lines: typer reads a command's options off them
    "api.py": {"run"},
    "commands/measuring.py": {"run", "sweep"},
}
TOO_LONG = {  # to be taken apart
    "children/process.py": {"run"},
    "plan/cells.py": {"make"},
    "worker/trial/trial.py": {"run_trial"},
}


def functions(file: Path) -> Iterator[tuple[str, int]]:
    """Return the name of each function of a file, and its lines."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_no_function_is_longer_than_forty_lines() -> None:
    found: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        long = {name for name, lines in functions(file) if lines > LINES_OF_A_FUNCTION}
        if long:
            found[file.relative_to(PACKAGE).as_posix()] = long
    assert found == LISTS_OF_OPTIONS | TOO_LONG


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    lines = {file: len(file.read_text("utf-8").splitlines()) for file in PACKAGE.rglob("*.py")}
    assert {file.name: count for file, count in lines.items() if count > LINES_OF_A_FILE} == {}
