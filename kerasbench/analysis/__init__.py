"""From trials to statements: estimates, verdicts, metrics, summaries. Pure: it prints nothing and starts nothing.

Imports results, quiet (for what was recorded), exchange and text.
"""
