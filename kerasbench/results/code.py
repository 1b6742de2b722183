"""Which files of the package measure a column, and their hash, which each trial has.

What differs in it is not compared and not gone on with. So a file is in a table if a change of it may change a figure,
or whether there is one: what a child runs, what it is started with, who has a turn and for how long. What plans, keeps,
sums up, draws and carries is in none, and what an option alone uses is that option's.
tests/results/test_code.py follows the imports, and says what is left out and why.
"""

import hashlib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from kerasbench.protocol.columns import Column

PACKAGE = Path(__file__).parents[1]
LENGTH = 12  # hexadecimal digits: two of a million versions are alike once in 500 times

EVERY_COLUMN = (
    # What a child runs in a trial, and what a scenario file imports there.
    "worker/__main__.py",
    "worker/serve.py",
    "worker/trial.py",
    "worker/resolve.py",
    "worker/source.py",
    "worker/saved.py",
    "worker/train.py",
    "worker/parts.py",
    "worker/predict.py",
    "worker/clock.py",
    "worker/usage.py",
    "worker/pipe.py",
    "worker/checks.py",
    "worker/failure.py",
    "runners/__init__.py",
    "runners/keras.py",
    "runners/weights.py",
    "runners/layers.py",
    "runners/feed.py",
    "runners/inputs.py",
    "backends/__init__.py",
    "scenario.py",
    "datasets.py",
    # What is asked of a child, with the defaults of its protocol, and what it answers.
    "protocol/columns.py",
    "protocol/stages.py",
    "protocol/requests.py",
    "protocol/messages.py",
    "protocol/measurement.py",
    # What a child is started with, and how it is kept still until its turn; in which order turns come, until when, how
    # much each child does in them, and which of its slices do not count because others took too much of the machine.
    "processes/block.py",
    "processes/process.py",
    "processes/variables.py",
    "runs/turns.py",
    "runs/sizes.py",
    "host/load.py",
)
BACKEND = "backends/{backend}.py"
# By the name of an option, what a column has besides that uses it.
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "malloc": ("protocol/malloc.py",),
    "native": ("runners/baseline.py", "native/__init__.py", "native/{backend}.py"),
    "warm_cache": ("worker/caches.py",),
}


@cache
def measuring_code(column: Column, package: Path = PACKAGE) -> str:
    """Return the hash of the code that measures a column: the same wherever it is installed, whatever else changes."""
    return _hash([column.backend], [option for option in OPTIONS if getattr(column.options, option)], package)


@cache
def all_measuring_code(package: Path = PACKAGE) -> str:
    """Return the hash of the code that measures any column: machines that have it alike measure each column alike."""
    return _hash([file.stem for file in (package / BACKEND).parent.glob("*.py")], OPTIONS, package)


def _hash(backends: Collection[str], options: Collection[str], package: Path) -> str:
    used = (*EVERY_COLUMN, BACKEND, *(name for option in options for name in OPTIONS[option]))
    names = {name.format(backend=backend) for backend in backends for name in used}
    hashes = _hash_of_each_file(package)
    present = sorted(hashes.keys() & names)  # a result file may name a backend that is not there
    return hashlib.sha256("".join(f"{name}\0{hashes[name]}\0" for name in present).encode()).hexdigest()[:LENGTH]


@cache
def _hash_of_each_file(package: Path) -> dict[str, str]:
    contents = {file.relative_to(package).as_posix(): file.read_bytes() for file in package.rglob("*.py")}
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
