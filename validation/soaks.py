"""Does `soak` find a planted leak and a planted slow-down, and call a clean run clean?

    python validation/soaks.py [MINUTES]

The three are in tests/faults: a leak of 64 KiB a step, steps that become 20 % slower in three minutes, and neither.
"""

import sys
import tempfile
from pathlib import Path

import kerasbench

FAULTS = Path(__file__).parents[1] / "tests" / "faults"


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    with tempfile.TemporaryDirectory() as results:
        for name in ("leaks", "slows_down", "fine"):
            print(
                kerasbench.soak(
                    FAULTS / f"{name}.py", backends="torch", devices="cpu", minutes=minutes, results=results
                )
            )


if __name__ == "__main__":
    main()
