"""``python -m kerasbench``."""

import os
import sys

if __name__ == "__main__":
    try:
        here = os.getcwd()
    except OSError:  # it is gone, and nobody looks there
        here = ""
    if sys.path[:1] == [here]:
        del sys.path[0]  # where `python -m` looks first: a random.py of the current folder is not Python's own

import gc
import signal

from kerasbench.errors import EXIT_USAGE, UnsupportedSystem, require_supported, uninstalled


def main() -> int:
    """Run the command line; Ctrl-C before that, or after it, ends the process without a word."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own would show where in an import it came
    try:
        require_supported()
    except UnsupportedSystem as error:
        print(f"kerasbench: {error}", file=sys.stderr)
        return error.exit_code
    gc.set_threshold(200_000)  # of objects, and not 700: nearly all of them stay
    try:
        from kerasbench.cli.main import main as command
    except ModuleNotFoundError as error:
        print(f"kerasbench: {uninstalled(error.name or '')}", file=sys.stderr)
        return EXIT_USAGE

    code = command()
    gc.freeze()  # or the interpreter would look for cycles in all that is left, for 0.04 s, before it ends
    return code


if __name__ == "__main__":
    sys.exit(main())
