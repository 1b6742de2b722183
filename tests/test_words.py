"""Words that no user reads any more: they stand in no string, page or document. docs/reading-results.md has ours."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerasbench.host.noise import WarningKind
from kerasbench.scenario import Scenario

ROOT = Path(__file__).parent.parent
# At most 40, each without an innocent use here; what is said in its place stands behind it.
RETIRED = {
    "sittings": "sessions",
    "a sitting": "a session",
    "one sitting": "one session",
    "twin": "native baseline",
    "a picture": "image (data), chart (drawing)",
    "word number": "token id",
    "whoever": "anyone who",
    "nobody has": "untested",
    "nobody knows": "unknown",
    "borrow from": "how-it-works.md explains moderated intervals",
    "comes and goes": "memory returned to Linux",
    "come and go": "memory returned to Linux",
    "is waited for": "waits for",
    "surroundings of": "what else runs on the machine",
    "matrix product": "matrix multiplication",
    "float32 products": "float32 matrix multiplications",
    "likeliest": "greedily",
    "hands out": "gives",
    "in words that": "clearly",
    "quickest": "fastest",
    "looks fastest": "had the shortest time",
    "significantly": "clearly",
    "× faster": "takes N× as long as",
    "times as fast": "takes N× as long as",
    "× as fast": "takes N× as long as",
    "remedy:": "what to do",
    "published figures": "published numbers",
    "processors": "CPU cores",
    "other processes used": "other programs used",
    "dropped out": "was dropped",
    "left the race": "was dropped",
    "is no scenario": "say what is",
    "is no file": "is not a file",
    "for want of": "because ... is missing",
    "not proven": "undecided",
    "level with": "tie",
    "neighbours": "other programs",
    "cards of": "GPUs of",
}
DOCUMENTS = ("*.md", "docs/**/*.md", "docs/*.ipynb", "results/*.md", "benchmarks/**/*.md", ".github/**/*.yml")
KEYS = re.compile(r"[a-z]+(?:_[a-z]+)*")  # of result files, which stay until the schema changes


def test_there_are_few() -> None:
    assert len(RETIRED) <= 40


def strings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module, its docstrings and comments aside, with their lines."""
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
    """Yield everything that a user reads, by where it stands."""
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
    for kind in WarningKind:
        yield f"WarningKind.{kind.name}", f"{kind.meaning} {kind.remedy}"
    yield "kerasbench.Scenario", Scenario.__doc__ or ""


@pytest.fixture(scope="module")
def everything() -> list[tuple[str, str]]:
    return [(place, text.lower()) for place, text in told()]


@pytest.mark.parametrize("phrase", RETIRED)
def test_a_retired_word_stands_nowhere(phrase: str, everything: list[tuple[str, str]]) -> None:
    places = [place for place, text in everything if re.search(rf"(?<!\w){re.escape(phrase)}", text)]
    assert places == [], f"say: {RETIRED[phrase]}"
