"""The mode ``run``: which backend is fastest on each workload."""
