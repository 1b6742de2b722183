"""Drawing: sections as markdown, pages of them, HTML, CSV, plots, progress. It words and draws what analysis has found.

Nothing is computed here: a section takes ``Findings`` or a ``Summary``. Imports analysis, results, doctor and below;
``progress`` alone shows a plan, and ``audience`` hands it what it knows of one.
"""
