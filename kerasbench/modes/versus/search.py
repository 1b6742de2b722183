"""How a search for a version ended: as a page, in sentences, as data."""

from collections.abc import Sequence

from kerasbench.analysis.estimates import Interval, LogEstimate, Verdict
from kerasbench.modes.versus import BISECT
from kerasbench.modes.versus.bisect import Bisection, Probe, SearchOutcome
from kerasbench.protocol.columns import CaseKey
from kerasbench.report.data import of_key
from kerasbench.report.document import Document, OfCase, ProbedVersion, Search
from kerasbench.report.sections import EMPTY, Cell, Page, Section, Table
from kerasbench.report.words import could_have_seen, times
from kerasbench.text import count

SAID = {Verdict.SLOWER: "slower", Verdict.FASTER: "faster", Verdict.SAME: "tie", Verdict.INCONCLUSIVE: "undecided"}


def bisected(search: Bisection, versions: Sequence[str], case: str) -> Page:
    versions = brief(versions)
    rows = []
    for probe in sorted(search.probes, key=lambda probe: probe.index):
        contrast, verdict = probe.contrast, EMPTY
        ratios = (contrast.ratio, contrast.control_ratio) if contrast else (None, None)
        cells = [Cell(times(ratio), ratio.value) if ratio else EMPTY for ratio in ratios]
        if contrast and contrast.verdict and not probe.why:
            verdict = Cell(SAID[contrast.verdict], strong=contrast.is_decided)
        rows.append([Cell(versions[probe.index]), *cells, verdict])
    step = "prediction" if any(_predicts(probe) for probe in search.probes) else "training step"
    note = (
        f"Each probe measured a version side by side with {versions[0]}: its time per {step}, relative to that "
        f"(95 % interval). {versions[0]} again should take 1×."
    )
    table = Table(["version", "takes", f"{versions[0]} again takes", "so it is"], rows)
    answer, *others = sentences(search, versions)
    title = f"{case}: {answer}" if case else answer
    return Page(title.rstrip("."), [Section("", table=table, notes=[note], lines=others)])


def brief(versions: Sequence[str]) -> list[str]:
    """Return the ends of paths, where these still tell versions apart."""
    ends = [version.rpartition("/")[2] or version for version in versions]
    return ends if len(set(ends)) == len(ends) else list(versions)


def _predicts(probe: Probe) -> bool:
    return probe.contrast is not None and probe.contrast.over.row.workload.predicts_only


def sentences(search: Bisection, versions: Sequence[str]) -> list[str]:
    probes = f"It took {count(len(search.probes), 'probe')} to search {count(len(versions) - 1, 'version')}."
    last, fast, slow = search.probes[-1], versions[search.fast], versions[search.slow]
    if search.outcome is SearchOutcome.FOUND:
        step = "prediction" if _predicts(last) else "step"
        change = f": a {step} takes {times(search.change)} as long as with {fast}" if search.change else ""
        return [f"{slow} is the first slow version{change}.", probes]
    name, is_single, detectable = versions[last.index], len(search.probes) == 1, ""
    of_last = f"{name} cannot be {'compared' if is_single else 'placed'}: {last.why}."
    if last.contrast is not None and not last.why:
        of_last = f"{name} takes {times(last.contrast.ratio)} as long as {versions[0]}."
        if last.contrast.verdict is Verdict.INCONCLUSIVE:
            detectable = could_have_seen(last.ratio, last.effect)
    if search.outcome is SearchOutcome.NONE:
        between = " The versions in between were not measured." if len(versions) > 2 else ""
        answer = f"{versions[-1]} is not clearly slower than {versions[0]}.{between} {of_last} {detectable}"
    elif is_single:
        answer = f"Not decided. {of_last} {detectable}"
    else:
        answer = f"Not decided. The change is after {fast} and not after {slow}. {of_last} More --rounds may decide."
    return [answer.strip(), probes]


def of_search(bisection: Bisection, versions: Sequence[str], case: CaseKey | None) -> Document:
    is_found = bisection.outcome is SearchOutcome.FOUND
    tried = [
        ProbedVersion(
            version=versions[probe.index],
            takes_times_as_much=probe.ratio.value if probe.ratio else None,
            low=probe.ratio.low if probe.ratio else None,
            high=probe.ratio.high if probe.ratio else None,
            verdict=(probe.contrast and probe.contrast.verdict) or Verdict.INCONCLUSIVE,
            why_no_verdict=probe.why,
            control=_interval(probe.contrast.control_ratio) if probe.contrast else None,
        )
        for probe in sorted(bisection.probes, key=lambda probe: probe.index)
    ]
    search = Search(
        outcome=bisection.outcome,
        versions=list(versions),
        last_fast=versions[bisection.fast] if is_found or bisection.fast else None,
        first_slow=versions[bisection.slow] if is_found else None,
        case=OfCase(**of_key(case)) if case else None,
        tried=tried,
    )
    return Document(command=BISECT.name, search=search)


def _interval(ratio: LogEstimate | None) -> Interval | None:
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    return Interval(ratio.value, ratio.low, ratio.high)
