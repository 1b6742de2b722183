"""From trials to statements: estimates, verdicts, metrics, summaries, findings. Pure: it prints and starts nothing."""
