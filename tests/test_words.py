"""Words that no user reads any more: they stand in no string, page or document. docs/reading-results.md has ours."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerasbench.scenario import Scenario

ROOT = Path(__file__).parent.parent
# What to say, and what is said no more: at most 40, each without an innocent use here.
SAY = {
    "a session": ("sittings", "a sitting", "one sitting"),
    "native baseline": ("twin",),
    "image (data), chart (drawing)": ("a picture",),
    "token id": ("word number",),
    "anyone who": ("whoever",),
    "untested": ("nobody has",),
    "unknown": ("nobody knows",),
    "how-it-works.md explains moderated intervals": ("borrow from",),
    "memory returned to Linux": ("comes and goes", "come and go"),
    "waits for": ("is waited for",),
    "what else runs on the machine": ("surroundings of",),
    "matrix multiplication": ("matrix product", "float32 products"),
    "greedily": ("likeliest",),
    "gives": ("hands out",),
    "clearly": ("in words that", "significantly"),
    "fastest, had the shortest time": ("quickest", "looks fastest"),
    "takes N× as long as": ("× faster", "× as fast"),
    "what to do": ("remedy:",),
    "published numbers": ("published figures",),
    "logical CPUs": ("processors",),
    "other programs used": ("other processes used",),
    "was dropped": ("dropped out", "left the race"),
    "say what is": ("is no scenario",),
    "is not a file": ("is no file",),
    "because ... is missing": ("for want of",),
    "undecided": ("not proven", "not judged", "unreliable"),
    "tie": ("level with",),
    "other programs": ("neighbours", "trials disturbed", "others disturbed"),
    "GPUs of": ("cards of",),
}
RETIRED = {phrase: instead for instead, phrases in SAY.items() for phrase in phrases}
DOCUMENTS = ("*.md", "docs/**/*.md", "docs/*.ipynb", "results/*.md", "validation/**/*.md", ".github/**/*.yml")
KEYS = re.compile(
    r"[a-z]+(?:_[a-z]+)*|\s*(?:[A-Z]\w+\.\w+\s+)+"
)  # of result files, which stay until the schema changes


def strings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module, its docstrings aside, with their lines."""
    tree = ast.parse(file.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def told() -> Iterator[tuple[str, str]]:
    for pattern in DOCUMENTS:
        for file in sorted(ROOT.glob(pattern)):
            for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
                yield f"{file.relative_to(ROOT)}:{number}", line
    for file in sorted((ROOT / "kerasbench").rglob("*.py")):
        for number, text in strings(file):
            if not KEYS.fullmatch(text):
                yield f"{file.relative_to(ROOT)}:{number}", text
    for file in sorted((ROOT / "scenarios").rglob("*.py")):
        yield str(file.relative_to(ROOT)), ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    yield "kerasbench.Scenario", Scenario.__doc__ or ""


@pytest.fixture(scope="module")
def everything() -> list[tuple[str, str]]:
    return [(place, text.lower()) for place, text in told()]


@pytest.mark.parametrize("phrase", RETIRED)
def test_a_retired_word_stands_nowhere(phrase: str, everything: list[tuple[str, str]]) -> None:
    places = [place for place, text in everything if re.search(rf"(?<!\w){re.escape(phrase)}", text)]
    assert places == [], f"say: {RETIRED[phrase]}"
