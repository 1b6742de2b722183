"""One interpreter for each backend: which ones a user has named, and how to make them.

Imports children, machine, backends, results and below; never runs, report or commands.
"""
