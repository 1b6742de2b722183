"""By what a cell and a column are found: in a plan, in a record, and in tables."""

Column = tuple[str, str, str]  # backend, device label, options but for the size
CellKey = tuple[str, str, str, str, str]  # scenario, regime, backend, device label, options
