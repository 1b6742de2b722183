"""One interpreter for each backend: which ones a user has named, and how to make them.

Imports processes, host, backends, results and below; never runs, report or cli.
"""
