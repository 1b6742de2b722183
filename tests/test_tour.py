"""docs/tour.ipynb as a file; tests/real/test_tour.py runs it."""

import ast
import inspect
import json
from pathlib import Path

import kerasbench
from tests import notebook

ROOT = Path(__file__).parent.parent
TOUR = ROOT / "docs" / "tour.ipynb"


def test_no_output_is_committed() -> None:
    cells = [cell for cell in notebook.cells(TOUR) if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in cells] == [[]] * len(cells)
    assert {cell["execution_count"] for cell in cells} == {None}
    assert len({cell["id"] for cell in notebook.cells(TOUR)}) == len(notebook.cells(TOUR))


def test_it_asks_for_what_there_is() -> None:
    source = "\n".join(text for _, text in notebook.sources(TOUR))
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    asked = {
        node.func.attr: {one.arg for one in node.keywords}
        for node in calls
        if isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "kerasbench"
    }
    assert asked.keys() == {"run", "sweep", "compare", "load"}
    for name, keywords in asked.items():
        assert keywords <= set(inspect.signature(getattr(kerasbench, name)).parameters)


def test_the_page_about_python_leads_to_it() -> None:
    assert "](tour.ipynb)" in (ROOT / "docs" / "python.md").read_text("utf-8")


def test_a_notebook_s_cells_share_names_and_show_their_last_expression(tmp_path: Path) -> None:
    sources = {"a": "x = 1\n", "b": "x += 1\nx * 2"}
    cells = [{"cell_type": "code", "id": name, "source": [source]} for name, source in sources.items()]
    file = tmp_path / "x.ipynb"
    file.write_text(json.dumps({"cells": [*cells, {"cell_type": "markdown", "id": "c", "source": []}]}))
    assert dict(notebook.execute(file)) == {"a": None, "b": 4}
    assert notebook.shown(4) == "4"
