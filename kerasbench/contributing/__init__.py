"""Results of one's own for everybody: what of them is public, the branch that brings them, and which are missing."""
