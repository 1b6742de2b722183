"""A notebook, executed as Jupyter would: cell by cell in one process, with what each cell shows."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.whole_command import prepare

FORMS = ("_repr_html_", "_repr_svg_")  # in the order in which a notebook prefers them


def cells(file: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["cells"]
    return cells


def sources(file: Path) -> list[tuple[str, str]]:
    """Return the identifier and the source of each cell of code."""
    return [(cell["id"], "".join(cell["source"])) for cell in cells(file) if cell["cell_type"] == "code"]


def execute(file: Path) -> Iterator[tuple[str, Any]]:
    """Run each cell of code; yield its identifier and the value of its last expression, None without one."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for name, source in sources(file):
        tree, value = ast.parse(source), None
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, f"{file.name}:{name}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"{file.name}:{name}", "eval"), names)
        yield name, value


def shown(value: Any) -> str:
    for form in FORMS:
        if hasattr(value, form):
            return str(getattr(value, form)())
    return repr(value)


if __name__ == "__main__":
    prepare(Path("kerasbench.lock").absolute())
    print(json.dumps({name: shown(value) for name, value in execute(Path(sys.argv[1]))}))
