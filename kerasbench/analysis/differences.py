"""Which code ran otherwise in one version than in another: facts that differ, whether or not the time does."""

from typing import NamedTuple

from kerasbench import facts
from kerasbench.analysis.contrasts import CaseInRow
from kerasbench.facts import NOT_KNOWN, Fact


class Difference(NamedTuple):
    over: CaseInRow
    fact: Fact
    value: str
    before: str

    @property
    def is_known(self) -> bool:
        return NOT_KNOWN not in self.value + self.before


def differences(over: CaseInRow, under: CaseInRow) -> list[Difference]:
    """Return those that both cases tell of."""
    now, before = over.case.facts, under.case.facts
    return [
        Difference(over, fact, now[fact.name], before[fact.name])
        for fact in facts.ALL
        if fact.name in now and fact.name in before and now[fact.name] != before[fact.name]
    ]
