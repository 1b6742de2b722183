"""Linux: what /proc says."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
# x86 says "model name"; Arm boards say "Model" or "Hardware", of the board as a whole.
CHIP_FIELDS = ("model name", "Model", "Hardware")


def chip(cpuinfo: Path = CPUINFO) -> str:
    """Return the processor's name, empty where the kernel does not tell."""
    try:
        return parse_chip(cpuinfo.read_text("utf-8", "replace"))
    except OSError:
        return ""


def parse_chip(cpuinfo: str) -> str:
    """Return the processor's name out of /proc/cpuinfo's text."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return next((fields[name] for name in CHIP_FIELDS if fields.get(name)), "")
