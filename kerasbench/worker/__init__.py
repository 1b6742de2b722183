"""What a child process runs: it imports nothing of the parent."""
