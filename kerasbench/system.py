"""Which systems kerasbench runs on. This comes before all else: the other modules do not even load on Windows."""

import sys

from kerasbench.errors import UnsupportedSystem

WINDOWS = "win32"


def require_supported(platform: str = sys.platform) -> None:
    """Raise UnsupportedSystem on Windows, which has no process groups, file locks and signals as they are used here."""
    if platform == WINDOWS:
        raise UnsupportedSystem("Windows is not supported: run it on Linux or macOS, or in WSL on Windows")
