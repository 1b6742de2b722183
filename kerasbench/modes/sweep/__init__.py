"""The mode ``sweep``: one workload at many sizes, and where one series overtakes another."""
