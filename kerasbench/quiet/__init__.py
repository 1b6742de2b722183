"""Is the machine quiet: the gate before a trial, the signals of noise around it.

Imports machine, exchange and text.
"""
