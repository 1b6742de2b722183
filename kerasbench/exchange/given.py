"""What a user says of a model that comes from a file or by its name: its open dimensions, its batch, its layers.

Imported by the worker: standard library only.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_NAME = 64  # what a regime's name may have
STRUCTURE = "structure"  # the member of a file of rows that says how its arrays belong together
UNFIT = re.compile(r"[^\w.-]")  # letters and digits of all scripts are fit


@dataclass(frozen=True)
class Input:
    """The shape of one input, as ``--input tokens=128:int32`` has it: without the samples, or with 1 for them.

    ``name`` is empty for the only input, ``dtype`` where the model is to say it.
    """

    name: str
    shape: list[int]
    dtype: str = ""

    @property
    def label(self) -> str:
        """``tokens-128-int32``, fit to be part of a regime's name."""
        size = "x".join(map(str, self.shape))
        return UNFIT.sub("_", "-".join(part for part in (self.name, size, self.dtype) if part))


@dataclass(frozen=True)
class Given:
    """What is said of a model that is no scenario file. ``batch`` None: 32.

    ``custom`` is a Python file with its own layers, ``rows`` a file with its rows, of which there are ``samples``;
    empty where there is none. ``trust``: load what may run code of its own.
    """

    inputs: list[Input] = field(default_factory=list)
    batch: int | None = None
    custom: str = ""
    trust: bool = False
    rows: str = ""
    samples: int = 0

    @property
    def regime(self) -> str:
        """The name of the regime: what is measured differs by the sizes, so they are in it."""
        parts = [one.label for one in self.inputs] + ([f"batch-{self.batch}"] if self.batch else [])
        return "-".join(parts)[:MAX_NAME].strip("-_.") or "default"


NOTHING = Given()


def fitting(name: str, default: str = "model") -> str:
    """Return a model's name with what no scenario's has replaced: ``ep=05`` is ``ep_05``."""
    return UNFIT.sub("_", name)[:MAX_NAME].lstrip("-_.") or default


def decode_given(fields: Mapping[str, Any]) -> Given:
    """Rebuild it from the JSON of a request."""
    return Given(**{**fields, "inputs": [Input(**one) for one in fields["inputs"]]})
