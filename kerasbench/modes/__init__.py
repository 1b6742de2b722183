"""The modes: what a run is for. Each is a folder named after its command; nothing outside asks for one by its name.

In a folder: what its command takes and its runs are like (``__init__.py``, which ``--help`` loads), what they measure
(``plan.py``), and what is said of them (``tell.py``).
"""

# The commands and their purposes, in the order of ``--help``, which loads nothing else.
COMMANDS = {
    "run": "Measure scenarios on backends and devices, print the tables and save the results.",
    "sweep": "Measure one scenario at many batch sizes or widths: from which size on is another backend fastest?",
    "explain": "Show where the time of an epoch goes, and what would make it shorter.",
    "versus": "Compare two versions of Keras or of a backend side by side: what became faster or slower?",
    "bisect": "Find the version of Keras or of a backend that made a model slower.",
    "fastest": "Find the fastest way to run a model on this machine: which backend, with which settings?",
    "soak": "Run a model for minutes: does memory grow, and do steps become slower?",
}
MODES = {command: command for command in COMMANDS} | {"bisect": "versus"}  # of the runs of each command
