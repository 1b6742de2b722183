"""The parent's side of a child process, which knows no plan, no result file and no page."""
