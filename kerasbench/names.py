"""Names that the declarations of options share with the command line, which needs only these to show its commands."""

RUN, SWEEP, EXPLAIN, VERSUS, FASTEST, SOAK = "run", "sweep", "explain", "versus", "fastest", "soak"
BISECT, DOCTOR, CREATE = "bisect", "doctor", "create"
TABLES = (RUN, SWEEP, EXPLAIN, VERSUS, BISECT)  # what is asked for is measured to the end
MEASURING = (*TABLES, FASTEST, SOAK)
BACKENDS, SUITES = "backends", "suites"  # names that a shell is offered, looked up when it asks
CHOICE = "Name, pattern, scenario file (.py), saved model (.keras), or keras.applications.NAME."

# What options are for, in the order of --help. What only an expert needs comes last.
LONG, WHAT, MODEL, SHOW, COLUMNS, ENVIRONMENTS, MACHINES, FILES, EXPERTS = GROUPS = (
    "How long",
    "What to measure",
    "A saved model, or one of keras.applications",
    "What to show",
    "Configurations (every combination is measured)",
    "Environments",
    "Other machines (docs/set-up-machines.md)",
    "Files",
    "For experts",
)
