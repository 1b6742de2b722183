import ast
from pathlib import Path

import pytest

from kerasbench import backends, native
from kerasbench.plan import catalog

FILES = [*catalog.builtin_folder().glob("native/*.py"), *Path(native.__file__).parent.glob("*.py")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.parent.name}/{file.name}")
def test_a_twin_and_its_loop_use_no_keras_and_one_framework(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "keras" not in imported | used
    assert len(imported & set(backends.names())) <= 1
