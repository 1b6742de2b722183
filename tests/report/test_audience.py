"""One console hears all of a run: what is prepared before it, and then its trials."""

import io

from rich.console import Console

from kerasbench.plan.duration import History
from kerasbench.report.progress import ConsoleAudience
from tests import made

TORCH = made.case()


def test_preparing_and_measuring_are_told_on_one_console() -> None:
    out = io.StringIO()
    audience = ConsoleAudience(Console(file=out, width=80))
    with audience.asking(["torch"]):
        pass
    audience.say("begins now")
    observer = audience.observer(History())
    observer.run_began(made.plan(TORCH), made.record())
    lines = out.getvalue().splitlines()
    assert lines[:2] == ["asking torch what it sees", "begins now"]
    assert lines[2].startswith("1 case, 3 to 12 rounds")


def test_how_long_it_takes_is_told_by_what_earlier_trials_took() -> None:
    def announced(known: History) -> str:
        out = io.StringIO()
        ConsoleAudience(Console(file=out, width=200)).observer(known).run_began(made.plan(TORCH), made.record())
        return out.getvalue()

    assert "about 30 min 00 s to 2 h 00 min" in announced(History(trial_s={TORCH.key: 600.0}))
    assert "2 h 00 min" not in announced(History())
