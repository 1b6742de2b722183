"""The commands: each is a function of its options that prints what was found and returns an exit code.

What a command needs beyond parsing is imported where it begins: ``list`` and ``--help`` are quick to start.
"""
