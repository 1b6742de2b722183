"""A notebook, and the Python in its cells."""

import json
from pathlib import Path

from kerasbench.scenario import ScenarioError

NOTEBOOK = ".ipynb"
MAX_NOTEBOOK_BYTES = 64 << 20  # which holds its pictures, too
OF_PYTHON = ("capture", "prun", "time", "timeit")
MAGICS = ("%", "!", "?")  # begin lines that are not Python


def require_notebook(file: Path) -> None:
    """Raise ScenarioError unless it is a notebook that has code, in Python."""
    try:
        content = json.loads(file.read_bytes())
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        has_code = any(cell["cell_type"] == "code" for cell in content["cells"])
    except OSError:
        return  # who reads it for its hash says why it cannot be read
    except (ValueError, AttributeError, KeyError, TypeError):
        raise ScenarioError(f"{file}: not a Jupyter notebook: its JSON has no cells") from None
    if language.lower() != "python" or not has_code:
        raise ScenarioError(f"{file}: this notebook has no code in Python")


def notebook_code(file: Path) -> str:
    """Return the code cells of a notebook in their order; lines that are not Python become comments."""
    try:
        cells = json.loads(file.read_text("utf-8"))["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        texts = ["".join(source) if isinstance(source, list) else str(source) for source in sources]
    except (ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"{file}: not a notebook (Jupyter's JSON with cells): {type(error).__name__}") from None
    lines = [line for text in texts if _is_python(text) for line in [*text.splitlines(), ""]]
    return "\n".join(map(_without_magic, lines))


def _is_python(cell: str) -> bool:
    """Tell whether a cell is Python: of the magics that begin one, those do not change its language that time it."""
    first = cell.lstrip().partition("\n")[0].split()
    return not first or not first[0].startswith("%%") or first[0].removeprefix("%%") in OF_PYTHON


def _without_magic(line: str) -> str:
    code = line.lstrip()
    return f"{line[: len(line) - len(code)]}pass  # {code}" if code.startswith(MAGICS) else line
