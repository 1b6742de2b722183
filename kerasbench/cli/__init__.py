"""The commands: each is a function of its options that prints what was found and returns an exit code.

What a command needs beyond parsing is imported where it begins: ``list`` and ``--help`` are quick to start.
"""

EXIT_OK, EXIT_USAGE, EXIT_FAILED_CASES, EXIT_REGRESSION = 0, 1, 2, 3
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
