"""macOS: what sysctl says."""

import subprocess

TIMEOUT_S = 5


def chip() -> str:
    """Return the processor's name (``Apple M1``), empty where sysctl does not tell."""
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
