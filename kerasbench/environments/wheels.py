"""Which keras and which Python the wheels are for."""

import re

from kerasbench.backends import Version

KERAS = ("keras>=3.12,<3.17", "numpy>=1.26")
NEWEST_PYTHON = (3, 13)  # TensorFlow 2.21 ends there


def release(version: str) -> Version:
    """Return the numbers that a version begins with: (2, 13, 0) of ``2.13.0+cpu``, none of what is no version."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()
