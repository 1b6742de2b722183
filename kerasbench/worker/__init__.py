"""What a child process runs.

Imports native, backends, scenario, datasets, protocol and text, and nothing of the parent.
"""
