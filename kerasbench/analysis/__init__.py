"""From trials to statements: estimates, verdicts, metrics, summaries, summary. Pure: it prints and starts nothing."""
