"""What will be measured: scenarios to choose from, options, cases, sizes, and how long it takes.

Imports processes (to describe scenario files), backends, analysis, results and below; never runs, report or cli.
"""
