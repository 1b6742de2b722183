"""A whole run on a console: what is prepared, then each trial."""

from kerasbench.plan.duration import History
from kerasbench.report.preparation import Preparation
from kerasbench.report.progress import ConsoleProgress


class ConsoleAudience(Preparation):
    """Tell on a console what a run prepares, and then how its trials go."""

    def observer(self, known: History) -> ConsoleProgress:
        return ConsoleProgress(self._console, known)
