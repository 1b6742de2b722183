"""The result file: what was asked for and measured, raw; how it is written, read, checked and merged."""
