"""Text from a scenario or a framework, fit to be shown: on a terminal it must move no cursor and change no title."""

import re
import sys

# ECMA-48: control sequences (colours, cursor), operating system commands (titles, links), and the two-character ones.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-Z\\-~])")


def printable(text: str) -> str:
    """Return text without escape sequences, and blanks for all other control characters but line breaks."""
    return "\n".join(blanked(line) for line in _SEQUENCE.sub("", text).split("\n"))


def blanked(text: str) -> str:
    """Return text with blanks for all control characters, line breaks included: no page and no table may hold one."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def complain(what: str) -> None:
    """Say on stderr what is wrong; it may quote a scenario or a file, and moves no cursor."""
    print(f"kerasbench: {printable(what)}", file=sys.stderr)
