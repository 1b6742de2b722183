"""The result file: what was asked for and measured, raw; how it is written, read, checked and merged.

Imports host (for the types of what was recorded), protocol, files and text. It starts no process.
"""
