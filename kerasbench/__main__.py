"""``python -m kerasbench``."""

import sys

from kerasbench.cli import main

if __name__ == "__main__":
    sys.exit(main())
