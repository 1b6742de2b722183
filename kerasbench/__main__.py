"""``python -m kerasbench``."""

import signal
import sys


def main() -> int:
    """Run the command line; Ctrl-C before that, or after it, ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own would show where in an import it came
    from kerasbench import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
