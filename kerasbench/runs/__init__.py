"""A whole run: select, plan, measure round by round, stop when there is enough, go on after an interruption.

Named in the plural because ``kerasbench.run`` is the public function. Imports events, plan, environments, processes,
host, results, analysis and below; not report: who calls it draws.
"""
