"""What parent and child say to each other: devices, options, requests, measurements, messages.

Standard library alone, and nothing of kerasbench but this folder: a child's environment may have nothing else.
"""
