"""Nothing outside of variants and modes asks which of them a column has: what they are like are traits and hooks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerasbench.variants import ALL

PACKAGE = Path(__file__).parents[2] / "kerasbench"
NAMES = {word for variant in ALL for word in (variant.name, variant.flag)}
MAKES = {"Options", "but", "with_options", "get"}  # what makes or reads options, by the name that is called


def asked_for(tree: ast.Module) -> Iterator[str]:
    """Yield the variants that code makes, reads or looks for by their names, and the files that it imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in MAKES:
            yield from (word.arg for word in node.keywords if word.arg in NAMES)
            yield from _literals(node.args)
        elif isinstance(node, ast.Subscript):
            yield from _literals([node.slice])
        elif isinstance(node, ast.Compare):
            yield from _literals([node.left, *node.comparators])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kerasbench.variants."):
            yield from {(node.module or "").rpartition(".")[2]} & NAMES
        elif (
            isinstance(node, ast.Attribute) and getattr(node.value, "attr", getattr(node.value, "id", "")) == "options"
        ):
            yield from {node.attr} & NAMES


def _literals(nodes: list[ast.expr]) -> Iterator[str]:
    yield from (str(node.value) for node in nodes if isinstance(node, ast.Constant) and node.value in NAMES)


def test_nobody_else_asks_for_a_variant_by_its_name() -> None:
    files = [file for file in PACKAGE.rglob("*.py") if not {"variants", "modes"} & {*file.relative_to(PACKAGE).parts}]
    asked = {file.name: sorted(asked_for(ast.parse(file.read_text("utf-8")))) for file in files}
    # A table of inputs has a key of that name, a saved model too, and an argument of fit().
    words = {
        "feed.py": ["dtype"],
        "saved.py": ["dtype"],
        "options.py": ["batch_size"],
        "parse.py": ["dtype"],
        "streams.py": ["batch_size"],
    }
    assert {file: names for file, names in asked.items() if names and names != words.get(file)} == {}


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("options.jit", ["jit"]),
        ("case.column.options.threads", ["threads"]),
        ("'native' in options", ["native"]),
        ("options['fp32']", ["fp32"]),
        ("Options(malloc='keep').but(dtype=None)", ["dtype", "malloc"]),
        ("variant.name == 'warm_cache'", ["warm_cache"]),
        ("from kerasbench.variants.malloc import KEEP", ["malloc"]),
        ("resolved.jit + variants.batch(options)", []),
    ],
)
def test_what_asks_for_a_variant(line: str, names: list[str]) -> None:
    assert sorted(asked_for(ast.parse(line))) == names
