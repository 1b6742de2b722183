"""What parent and child say to each other. Standard library alone, for a child's environment may have nothing else."""
