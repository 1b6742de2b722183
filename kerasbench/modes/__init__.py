"""The modes: what a run is for. Each is a folder that is named after its command.

``tell.py`` has what it says of its runs, other files what follows from them. Nothing outside asks for one by its name.
"""

from importlib import import_module

from kerasbench.analysis.findings import Findings
from kerasbench.names import EXPLAIN, FASTEST, RUN, SOAK, SWEEP, VERSUS
from kerasbench.report.teller import Teller

ORDER = (EXPLAIN, RUN, SWEEP, VERSUS, FASTEST, SOAK)  # in which a page has what they say


def teller(mode: str) -> Teller:
    told: Teller = import_module(f"{__name__}.{mode}.tell").TELLER
    return told


def tellers(findings: Findings) -> list[Teller]:
    """Return those who have something to say of it: the run's own alone, where nothing is ranked."""
    return [teller(mode) for mode in (ORDER if findings.is_ranked else [findings.mode])]


def title(findings: Findings) -> str:
    titles = (known.title(findings) for known in (*tellers(findings), teller(RUN)))
    return next(filter(None, titles), "")


def sentences(findings: Findings) -> list[str]:
    """Return the answer as text: that of the run's own mode, or where it is of several, of all."""
    own = teller(findings.mode).sentences(findings)
    return own or [line for known in tellers(findings) for line in known.sentences(findings)]
