"""What a fact is: something that a backend did, which explains a time or will become one."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from kerasbench.backends import Operation
from kerasbench.protocol.measurement import Compiler, Resolved
from kerasbench.runners.layers import Layers

if TYPE_CHECKING:
    from kerasbench.runners.trainer import Trainer

NOTHING, NOT_KNOWN = "none", "not known"
Notes = Mapping[str, str]


@dataclass(frozen=True)
class Evidence:
    """What facts are read from, after all that is timed."""

    runner: "Trainer"
    resolved: Resolved
    compiler: Compiler | None
    notes: Mapping[str, Notes] = field(default_factory=dict)  # of the first step, or prediction, by fact
    # What one more step, or prediction, ran. None: the backend does not tell.
    operations: list[Operation] | None = None
    python_steps: int | None = None  # of one more execution, how many steps Python ran one by one; None: it is unknown


class Fact:
    """Of each there is one, without state."""

    name: ClassVar[str]  # in result files
    title: ClassVar[str]  # what it is about: recurrent layers
    says: ClassVar[str]  # what a page says in front of what ``explains``, without a colon

    def watch(self, layers: Layers, backend: str) -> AbstractContextManager[Notes]:
        """Return what takes notes meanwhile, of what can be seen in no model afterwards."""
        return nullcontext({})

    def read(self, evidence: Evidence) -> str:
        """Return it in a few words, NOTHING or NOT_KNOWN; what it raises is NOT_KNOWN too."""
        raise NotImplementedError

    def explains(self, value: str) -> bool:
        """Tell whether it is worth a line on any page; where it differs between versions, it has one in any case."""
        return False
