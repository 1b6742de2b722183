"""Draw sentences from the documents and the strings of the package, to be read one by one: the commit is the seed.

``python docs/tools/sentences.py 60`` draws the same sixty as long as neither the commit nor the texts change.
"""

import ast
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kerasbench.git import environment

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("*.md", "docs/*.md")
LEAST_WORDS = 4  # fewer are a label
END = re.compile(r"(?<=[.?!:])\s+(?=[A-Z`*\[])")
CODE = re.compile(r"```.*?```|<!--.*?-->", re.DOTALL)


def of_documents() -> Iterator[tuple[str, str]]:
    """Yield each sentence with its file; a cell of a table is one, too."""
    for file in sorted(file for pattern in DOCUMENTS for file in ROOT.glob(pattern) if file.name != "CHANGELOG.md"):
        for line in CODE.sub("", file.read_text("utf-8")).splitlines():
            for cell in line.strip("|").split(" | "):
                yield from ((str(file.relative_to(ROOT)), sentence.strip(" #-")) for sentence in END.split(cell))


def of_strings() -> Iterator[tuple[str, str]]:
    """Yield each string of the package but docstrings, with its file: the parts of an f-string together."""
    for file in sorted((ROOT / "kerasbench").rglob("*.py")):
        place, nodes = str(file.relative_to(ROOT)), [*ast.walk(ast.parse(file.read_text("utf-8")))]
        inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        inside |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if isinstance(node, ast.JoinedStr):
                yield place, "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                yield place, " ".join(node.value.split())


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    command = ["git", "rev-parse", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    drawn = [(place, text) for place, text in (*of_documents(), *of_strings()) if len(text.split()) >= LEAST_WORDS]
    for place, text in random.Random(commit.stdout.strip()).sample(drawn, number):
        print(f"{place}: {text}")


if __name__ == "__main__":
    main()
