"""A whole run, from its configuration to its result file. In the plural, because ``kerasbench.run`` is public."""
