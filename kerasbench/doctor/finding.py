"""What a rule of the doctor's says."""

import shlex
import sys
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"  # a backend or a device cannot be used
    WARNING = "warning"  # it can, but not as well or not as comparably as it might
    NOTE = "note"  # worth knowing; nothing to mend


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: with which backend (empty: the machine), what it is, and the command that mends it.

    ``remedy`` is a command line as it can be pasted into a shell where ``is_command``, else a sentence.
    """

    severity: Severity
    backend: str
    cause: str
    remedy: str = ""
    is_command: bool = False


def pip(interpreter: str, *arguments: str) -> str:
    """Return the command line that has an interpreter's pip do something."""
    return shlex.join([interpreter, "-m", "pip", *arguments])


def create(backend: str, *arguments: str) -> str:
    """Return the command line that makes an environment for a backend, in the place of one that is there."""
    return shlex.join(
        [sys.executable, "-m", "kerasbench", "env", "create", "--backend", backend, *arguments, "--force"]
    )
