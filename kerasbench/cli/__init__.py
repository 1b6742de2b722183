"""The commands: functions that print and return an exit code. They import late what ``--help`` can do without."""
