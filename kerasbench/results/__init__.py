"""The result file: what was asked, what was measured, raw; how it is written, read, upgraded, checked and merged.

Imports quiet and machine (for the types of what was recorded), exchange and text. It starts no process.
"""
