"""The mode ``explain``: where the time of an epoch goes, and what would make it shorter."""
