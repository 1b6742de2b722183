"""Which files of the package measure a column, and their hash, which each trial has.

What differs in it is not compared and not gone on with. So a file is in it if a change of it may change a figure, or
whether there is one; what an option alone uses outside of ``FOLDERS`` is that option's. tests/results/test_code.py
follows the imports, and says what is left out and why.
"""

import ast
import hashlib
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from kerasbench import variants
from kerasbench.protocol.columns import Column
from kerasbench.variants.variant import Variant

PACKAGE = Path(__file__).parents[1]
LENGTH = 12  # hexadecimal digits: two of a million versions are alike once in 500 times

# Whole folders: what a child runs in a trial, and what is asked of it, with the defaults of its protocol.
FOLDERS = ("worker/", "sources/", "runners/", "facts/", "protocol/")
EVERY_COLUMN = (
    # What a scenario file imports in the child, and what is below all backends and variants.
    *("scenario.py", "datasets.py", "storage.py", "private.py", "backends/__init__.py", "variants/__init__.py"),
    # What a child is started with, and how it is kept still until its turn; in which order turns come, until when, how
    # much each child does in them, and which of its slices do not count because others took too much of the machine.
    *("processes/block.py", "processes/process.py", "processes/variables.py"),
    *("plan/stages.py", "runs/turns.py", "runs/sizes.py", "host/load.py"),
)
BACKEND = "backends/{backend}.py"
VARIANTS = "variants"  # their folder: a column is measured with the files of its choices, and with those that they name
HOOKS = {
    "variables",
    "before_import",
    "apply",
    "remade",
    "on_model",
    "take_away",
    "explained",
    "ran_as",
}  # that measure


@cache
def measuring_code(column: Column, package: Path = PACKAGE) -> str:
    """Return the hash of the code that measures a column: the same wherever it is installed, whatever else changes."""
    return _hash([column.backend], [variant for variant, _ in variants.chosen(column.options)], package)


@cache
def all_measuring_code(package: Path = PACKAGE) -> str:
    """Return the hash of the code that measures any column: machines that have it alike measure each column alike."""
    return _hash([file.stem for file in (package / BACKEND).parent.glob("*.py")], variants.ALL, package)


def _hash(backends: Collection[str], chosen: Collection[Variant[Any]], package: Path) -> str:
    more = (name for variant in chosen for name in (variant.file, *variant.files))
    used = (*EVERY_COLUMN, BACKEND, *more)
    names = {name.format(backend=backend) for backend in backends for name in used}
    hashes = _hash_of_each_file(package)
    # A result file may name a backend that is not there.
    present = sorted(name for name in hashes if name in names or name.startswith(FOLDERS))
    return hashlib.sha256("".join(f"{name}\0{hashes[name]}\0" for name in present).encode()).hexdigest()[:LENGTH]


@cache
def _hash_of_each_file(package: Path) -> dict[str, str]:
    contents = {file.relative_to(package).as_posix(): file.read_bytes() for file in package.rglob("*.py")}
    contents |= {name: measuring_part(text) for name, text in contents.items() if name.partition("/")[0] == VARIANTS}
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def measuring_part(variant: bytes) -> bytes:
    """Return a variant's file without what its class declares and says: in its hooks is how a column is measured."""
    classes = [part for part in ast.parse(variant).body if isinstance(part, ast.ClassDef)]
    parts = [part for kind in classes for part in kind.body if getattr(part, "name", "") not in HOOKS]
    left_out = {number for part in parts for number in range(part.lineno, (part.end_lineno or 0) + 1)}
    lines = enumerate(variant.splitlines(), start=1)
    return b"\n".join(line for number, line in lines if line.strip() and number not in left_out)
