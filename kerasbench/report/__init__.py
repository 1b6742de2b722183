"""Pages, charts, CSV and progress: what analysis has found, in words and drawn.

Nothing is computed here: a section takes ``Findings`` or a ``Summary``. ``progress`` alone shows a plan.
"""
