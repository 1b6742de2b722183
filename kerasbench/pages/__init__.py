"""Pages of runs, of folders and of machines: they ask each mode what it has to say."""
