"""What a child answers that measures nothing: describe a file, probe a backend, take an inventory, fetch, count."""
