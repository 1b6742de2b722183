"""What ``--malloc keep`` sets for a child."""

# How glibc's malloc keeps what a program has freed. By itself it maps large blocks one by one, gives the end of its
# heap back to the system, and whole heaps of threads.
KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(16 << 30), "MALLOC_ARENA_MAX": "1"}
