"""No function and no file is longer than can be read at once."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "kerasbench"
LINES_OF_A_FUNCTION, LINES_OF_A_FILE = 40, 400
ARGUMENTS = 8  # as ruff counts them; only a list of options has more
LISTS_OF_OPTIONS = ("api.py", "commands/")  # typer reads a command's options off its parameters; api.py has the same


def too_long(file: Path) -> set[str]:
    """Return the names of a file's functions that are too long; a list of options may be as long as it has to."""
    name = file.relative_to(PACKAGE).as_posix()
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            asked = len(node.args.args) + len(node.args.kwonlyargs)
            is_list = name.startswith(LISTS_OF_OPTIONS) and (
                asked > ARGUMENTS or "typer.Option" in ast.unparse(node.args)
            )
            if node.end_lineno - node.lineno >= LINES_OF_A_FUNCTION and not is_list:
                found.add(node.name)
    return found


def test_no_function_is_longer_than_forty_lines() -> None:
    found = {file.relative_to(PACKAGE).as_posix(): names for file in PACKAGE.rglob("*.py") if (names := too_long(file))}
    assert found == {}


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    lines = {file: len(file.read_text("utf-8").splitlines()) for file in PACKAGE.rglob("*.py")}
    assert {file.name: count for file, count in lines.items() if count > LINES_OF_A_FILE} == {}
