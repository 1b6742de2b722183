"""From trials to statements: estimates, verdicts, metrics, summaries, findings. Pure: it prints and starts nothing.

Imports results, quiet (for what was recorded), exchange and text.
"""
