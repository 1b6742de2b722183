"""By how much do ratios differ from block to block, and from session to session, of one backend with other options?

    python validation/options_scatter.py read SESSION SESSION ...   writes validation/data/options_scatter.json
    python validation/options_scatter.py                            prints what that says

A session is a folder with the result files of one hour, each of other options: several sessions of the same runs, an
hour or more apart. What is read are the ratios of each row's columns that do not follow from each other, in every block
that others did not disturb. They are of three kinds: of columns that are the same program in truth, such as JAX with
jit=on and without, of one backend with other options, and of two backends. The first show what the method leaves.

Between blocks: the variance within sessions, less what the slices of the blocks explain. Between sessions: the variance
of the means of sessions, less what their blocks explain. Both are pooled by their degrees of freedom, and their roots
are printed; a minus means that they are smaller than what explains them. Then: how many intervals of one block hold the
mean of all others, with what analysis/families.py assumes, and with other standard deviations.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from one_block import METRICS

from kerasbench import variants
from kerasbench.analysis.cases import HEADLINE, Measured
from kerasbench.analysis.estimates import t_quantile, variance
from kerasbench.analysis.families import ASSUMED, Family
from kerasbench.analysis.ratios import family_of, neighbours, of_blocks
from kerasbench.analysis.summary import summarize
from kerasbench.results.store import load

DATA = Path(__file__).parent / "data" / "options_scatter.json"
SAME, OPTIONS, BACKENDS = "the same program", "other options", "two backends"
FAMILIES = {SAME: Family.REPEATED, OPTIONS: Family.OPTIONS, BACKENDS: Family.BACKENDS}
TRIED = (0.02, 0.03, 0.04, 0.05, 0.07)  # in place of what is assumed between blocks


@dataclass(frozen=True)
class Ratio:
    """One ratio of two columns: of each session the logarithm, its error and its slices in each undisturbed block."""

    kind: str
    run: str  # what its columns differ in
    row: str
    backend: str
    columns: tuple[str, str]
    metric: str
    sessions: list[list[tuple[float, float, int]]]

    @property
    def logs(self) -> list[list[float]]:
        return [[log for log, _, _ in blocks] for blocks in self.sessions if blocks]

    @property
    def within(self) -> float:
        """The variance that slices explain, in the mean of its blocks."""
        return statistics.fmean(error**2 for blocks in self.sessions for _, error, _ in blocks)

    @property
    def of_blocks(self) -> tuple[float, int]:
        """The variance within sessions, and its degrees of freedom."""
        degrees = sum(len(logs) - 1 for logs in self.logs)
        return math.fsum((len(logs) - 1) * variance(logs) for logs in self.logs) / max(1, degrees), degrees

    @property
    def of_sessions(self) -> tuple[float, int]:
        """The variance of the means of sessions beyond what their blocks explain, and its degrees of freedom."""
        explained = self.of_blocks[0] * statistics.fmean(1 / len(logs) for logs in self.logs)
        return variance([statistics.fmean(logs) for logs in self.logs]) - explained, len(self.logs) - 1


def program(case: Measured) -> tuple[object, ...]:
    """Return what was in force of the options that make columns."""
    trial, measurement = case.trials[0]
    resolved = measurement.resolved
    in_force = (
        resolved.jit,
        resolved.dtype_policy,
        resolved.fp32,
        resolved.threads,
        resolved.steps_per_execution,
        resolved.malloc,
    )
    return (variants.has(trial.options, "replaces"), *in_force)


def kind_of(pair: tuple[Measured, Measured]) -> str:
    family = family_of(*pair)
    if family is Family.OPTIONS:
        return SAME if program(pair[0]) == program(pair[1]) else OPTIONS
    return BACKENDS if family is Family.BACKENDS else SAME


def read(folders: Sequence[Path]) -> None:
    """Write the ratios of all sessions; a run is known by the options of its columns."""
    by_key: dict[tuple[str, str, tuple[str, str], str], Ratio] = {}
    sessions = []
    for index, folder in enumerate(folders):
        records = [load(file) for file in sorted(folder.glob("*.json"))]
        sessions.append([f"{record.started} to {record.finished}" for record in records])
        for record in records:
            run = ", ".join(options.label or "default" for options in record.config.options)
            for row in summarize(record).rows:
                for pair in neighbours(row.cases.values()):
                    (first, _), (second, _) = (case.trials[0] for case in pair)
                    columns = first.column.label, second.column.label
                    for metric in METRICS:
                        key = (run, row.label, columns, metric)
                        blank: list[list[tuple[float, float, int]]] = [[] for _ in folders]
                        new = Ratio(kind_of(pair), run, row.label, first.backend, columns, metric, blank)
                        by_key.setdefault(key, new).sessions[index].extend(
                            (round(block.log, 5), round(block.error, 5), block.slices)
                            for block in of_blocks(pair, metric)
                            if block.error is not None and not block.disturbed
                        )
    machine, commit = records[-1].machine, records[-1].commit
    about = {"machine": machine.chip, "cores": machine.cores, "system": machine.system, "commit": commit}
    lines = ",\n".join(json.dumps(asdict(ratio)) for ratio in by_key.values())
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(f'{{"about": {json.dumps({**about, "sessions": sessions})},\n"ratios": [\n{lines}\n]}}\n')


def ratios() -> Iterator[Ratio]:
    """Yield the committed ratios that have two blocks of a session."""
    for stored in json.loads(DATA.read_text())["ratios"]:
        ratio = Ratio(**{**stored, "columns": tuple(stored["columns"])})
        if ratio.of_blocks[1]:
            yield ratio


def root(value: float) -> str:
    """Return the square root of a variance in percent; of one below zero with a minus."""
    return f"{math.copysign(abs(value) ** 0.5, value):.1%}"


def pooled(parts: Iterable[tuple[float, int]]) -> tuple[str, int]:
    known = [(value, degrees) for value, degrees in parts if degrees]
    degrees = sum(weight for _, weight in known)
    return root(math.fsum(value * weight for value, weight in known) / max(1, degrees)), degrees


def held(ratio: Ratio, between: float) -> Iterator[bool]:
    """Tell of each block whether its interval, widened by so much, holds the mean of all other blocks."""
    blocks = [block for session in ratio.sessions for block in session]
    for index, (log, error, slices) in enumerate(blocks):
        others = statistics.fmean(value for value, _, _ in (*blocks[:index], *blocks[index + 1 :]))
        yield abs(log - others) <= t_quantile(max(1, slices - 1)) * math.hypot(error, between)


def say_each(committed: Sequence[Ratio]) -> None:
    """Print each ratio of a training step."""
    print("| kind | row | ratio | each session | within blocks | between blocks | between sessions |")
    print("|---|---|---|---|---|---|---|")
    for ratio in sorted(committed, key=lambda ratio: (list(FAMILIES).index(ratio.kind), ratio.row, ratio.columns)):
        if ratio.metric == HEADLINE:
            values = ", ".join(f"{math.exp(statistics.fmean(logs)):.3g}" for logs in ratio.logs)
            between = root(ratio.of_blocks[0] - ratio.within), root(ratio.of_sessions[0])
            pair = f"{ratio.columns[1]} / {ratio.columns[0]}"
            print(f"| {' | '.join([ratio.kind, ratio.row, pair, values, root(ratio.within), *between])} |")


def say_pooled(committed: Sequence[Ratio]) -> None:
    """Print what blocks and sessions differ by, of each kind and metric."""
    print("\n| kind | metric | ratios | between blocks | degrees | median | between sessions | degrees |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in FAMILIES:
        for metric in METRICS:
            of_kind = [ratio for ratio in committed if (ratio.kind, ratio.metric) == (kind, metric)]
            blocks = [(ratio.of_blocks[0] - ratio.within, ratio.of_blocks[1]) for ratio in of_kind]
            if not of_kind:
                continue
            middle = root(statistics.median(value for value, _ in blocks))
            cells = [len(of_kind), *pooled(blocks), middle, *pooled(ratio.of_sessions for ratio in of_kind)]
            print(f"| {kind} | {metric} | {' | '.join(map(str, cells))} |")


def say_by_backend(committed: Sequence[Ratio]) -> None:
    """Print the same of training steps for each run and backend."""
    print("\n| kind | columns | backend | ratios | between blocks | degrees | between sessions | degrees |")
    print("|---|---|---|---|---|---|---|---|")
    steps = [ratio for ratio in committed if ratio.metric == HEADLINE and ratio.kind != BACKENDS]
    for kind, run, backend in sorted({(ratio.kind, ratio.run, ratio.backend) for ratio in steps}):
        of_backend = [ratio for ratio in steps if (ratio.kind, ratio.run, ratio.backend) == (kind, run, backend)]
        blocks = [(ratio.of_blocks[0] - ratio.within, ratio.of_blocks[1]) for ratio in of_backend]
        cells = [len(of_backend), *pooled(blocks), *pooled(ratio.of_sessions for ratio in of_backend)]
        print(f"| {kind} | {run} | {backend} | {' | '.join(map(str, cells))} |")


def say_held(committed: Sequence[Ratio]) -> None:
    """Print how many intervals of one block hold the mean of the others."""
    print(f"\n| kind | metric | blocks | as assumed | {' | '.join(f'with {between:.0%}' for between in TRIED)} |")
    print("|---|---|---|---|" + "---|" * len(TRIED))
    for kind, family in FAMILIES.items():
        for metric in METRICS:
            of_kind = [ratio for ratio in committed if (ratio.kind, ratio.metric) == (kind, metric)]
            if not of_kind:
                continue
            assumed = [
                hit for ratio in of_kind for hit in held(ratio, ASSUMED[family].between_blocks(ratio.backend, metric))
            ]
            cells = [statistics.fmean(hit for ratio in of_kind for hit in held(ratio, between)) for between in TRIED]
            shares = " | ".join(f"{share:.0%}" for share in (statistics.fmean(assumed), *cells))
            print(f"| {kind} | {metric} | {len(assumed)} | {shares} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("read", nargs="*", help="the word read, and the folders of the sessions")
    asked = parser.parse_args().read
    if asked[:1] == ["read"]:
        read([Path(folder) for folder in asked[1:]])
    committed = list(ratios())
    for say in (say_each, say_pooled, say_by_backend, say_held):
        say(committed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
