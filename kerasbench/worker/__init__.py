"""What a child process runs.

Imports native, backends, scenario, datasets, exchange and text, and nothing of the parent.
"""
