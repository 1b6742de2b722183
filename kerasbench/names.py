"""Names that the declarations of options share with the command line, which needs only these to show its commands."""

RUN, SWEEP, EXPLAIN, VERSUS, FASTEST, SOAK = "run", "sweep", "explain", "versus", "fastest", "soak"
BISECT, DOCTOR, CREATE = "bisect", "doctor", "create"
TABLES = (RUN, SWEEP, EXPLAIN, VERSUS, BISECT)  # what is asked for is measured to the end
MEASURING = (*TABLES, FASTEST, SOAK)
BACKENDS, SUITES = "backends", "suites"  # names that a shell is offered, looked up when it asks
CHOICE = (
    "Training script or notebook (.py, .ipynb), saved model (.keras), scenario file (.py), name of a built-in scenario "
    "or pattern of names, or keras.applications.NAME."
)

# What options are for, in the order of --help. What only an expert needs comes last.
LONG, WHAT, SCRIPT, MODEL, SHOW, COLUMNS, ENVIRONMENTS, MACHINES, FILES, EXPERTS = GROUPS = (
    "How long",
    "What to measure",
    "A training script or notebook (its own arguments stand behind --)",
    "A saved model, or one of keras.applications",
    "What to show",
    "Configurations (every combination is measured)",
    "Environments",
    "Other machines (docs/set-up-machines.md)",
    "Files",
    "For experts",
)
