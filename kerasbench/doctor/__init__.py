"""The doctor: what is wrong with this machine and its environments, and the command that mends each thing.

``facts`` are gathered by children; each rule is a small function that looks at them and says what it found.
"""

import dataclasses
from collections.abc import Callable, Iterator

from kerasbench.doctor import apple, installation, nvidia, surroundings
from kerasbench.doctor.facts import Facts
from kerasbench.doctor.finding import Finding, Severity

Rule = Callable[[Facts], Iterator[Finding]]
RULES: tuple[Rule, ...] = (*installation.RULES, *nvidia.RULES, *apple.RULES, *surroundings.RULES)
GRAVEST_FIRST = list(Severity)


def diagnose(facts: Facts) -> list[Finding]:
    """Return what every rule finds, the gravest first."""
    found = [finding for rule in RULES for finding in rule(facts)]
    explained = {finding.backend for finding in found if finding.severity is Severity.ERROR}
    for one in facts.backends:
        if one.name not in explained:
            found += installation.does_not_load(facts, one)
    return sorted(_together(found), key=lambda finding: GRAVEST_FIRST.index(finding.severity))


def _together(found: list[Finding]) -> list[Finding]:
    """Say once what is wrong with several backends that one command mends."""
    of: dict[Finding, list[str]] = {}
    for finding in found:
        of.setdefault(dataclasses.replace(finding, backend=""), []).append(finding.backend)
    return [dataclasses.replace(one, backend=", ".join(filter(None, names))) for one, names in of.items()]
