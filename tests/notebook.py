"""A notebook, executed as Jupyter would: cell by cell in one process; what each cell shows is printed as JSON."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

from tests.whole_command import prepare


def execute(file: Path) -> dict[str, str]:
    """Run each cell of code; return what its last expression shows, by its identifier."""
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = {}
    for cell in json.loads(file.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree, value, place = ast.parse("".join(cell["source"])), None, f"{file.name}:{cell['id']}"
        last = tree.body.pop()
        if not isinstance(last, ast.Expr):
            tree.body.append(last)
        exec(compile(tree, place, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), place, "eval"), names)
        shown[cell["id"]] = repr(value)
        for form in ("_repr_svg_", "_repr_html_"):  # a notebook prefers the last
            if hasattr(value, form):
                shown[cell["id"]] = str(getattr(value, form)())
    return shown


if __name__ == "__main__":
    prepare(Path("kerasbench.lock").absolute())
    print(json.dumps(execute(Path(sys.argv[1]))))
