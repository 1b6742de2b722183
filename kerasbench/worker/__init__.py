"""What a child process runs. It imports nothing of the parent but scenarios, backends and the wire format."""
