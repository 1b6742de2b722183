"""From trials to statements: estimates, verdicts, metrics, summaries. Pure: it prints and starts nothing."""
