"""Pages, charts and progress: what analysis has found, in words and drawn. Nothing is computed here."""
