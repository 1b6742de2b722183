"""The mode ``versus``: two versions side by side, and the search for the version that made a step slower."""
