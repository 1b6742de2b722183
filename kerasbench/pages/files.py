"""Pages made from result files: of each run, an index by machine, quotations in other pages; plots; and CSV."""

import csv
import dataclasses
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from kerasbench.analysis.summary import Summary, summarize
from kerasbench.analysis.table import NAMES, observations
from kerasbench.errors import ResultsError, UsageError
from kerasbench.files import MAX_PAGE_BYTES, read_plain, replace, replace_page
from kerasbench.host import Machine
from kerasbench.modes import registry
from kerasbench.pages import page
from kerasbench.pages.several import MachineSummary, of_machines
from kerasbench.protocol.columns import DEFAULT
from kerasbench.report import charts, markdown, svg
from kerasbench.report.answer import kinds, title
from kerasbench.report.sections import Page
from kerasbench.results.merge import Rank, merge, merge_by_machine, rank
from kerasbench.results.run import INTERRUPTED, Group, Run
from kerasbench.results.store import JOURNAL, TABLES, Store, Tell, load, records, refuse_damaged
from kerasbench.text import MADE, blanked

INDEX = "README.md"
CHART = ".svg"  # of the file with a page's chart
# Of result files, or of a machine by the name of its charts: results/amd-epyc-35a7c9.
MARKER = re.compile(
    r"(<!-- tables of (\S+\.json(?: \S+\.json)*|\S+-[0-9a-f]{6}): ([a-z_, ]+) -->\n)(.*?)(<!-- /tables -->)", re.DOTALL
)
Inspect = Callable[[Path, Run], None]  # gets each file that is read, once
EXPLANATION = (
    "Each line links to one run: a plain run before an explanation, default settings before others, then the newest. "
    "Comparisons of versions have no line: they are under All runs. Made by `python -m kerasbench report` from the "
    "result files in this folder; do not edit."
)


@dataclass(frozen=True)
class SavedReport:
    summary: Summary
    data: Path
    tables: Path
    plot: Path | None = None  # its chart
    unsaved: str = ""  # why a file is missing

    @property
    def interrupted(self) -> bool:
        return self.summary.record.stopped_because == INTERRUPTED

    @property
    def kept(self) -> Path:
        """The file that holds what was measured: the journal, where the disk took no data file in its place."""
        journal = self.data.with_suffix(JOURNAL)
        return journal if journal.exists() else self.data


def save_report(record: Run, store: Store, unsaved: str = "") -> SavedReport:
    """Save a run's page and its chart beside its data; ``unsaved`` says why there is none."""
    summary = summarize(record)  # once: the page and the chart share what it takes to compute
    pages = {} if unsaved else _of_run(summary, store.data)
    try:
        for file, text in pages.items():
            replace(file, text.encode())
    except ResultsError as error:
        pages, unsaved = {}, str(error)  # the tables are shown all the same
    plot = next((file for file in pages if file.suffix == CHART), None)
    return SavedReport(summary, store.data, store.tables, plot, unsaved)


def _of_run(summary: Summary, data: Path) -> dict[Path, str]:
    shown, file, tables = page.whole(summary), data.with_suffix(CHART), data.with_suffix(TABLES)
    chart = {file: svg.file(shown.chart)} if shown.chart else {}
    text = markdown.rendered(shown, quote(file.name) if chart else "", data.name)
    return chart | {tables: f"{text}\n{MADE}\n"}


def default_places(folder: Path) -> list[Path]:
    """Return what ``report`` works on by default: results/, and the pages of the project that quote from it."""
    pages = [folder / "README.md", *sorted((folder / "docs").glob("*.md"))]
    files = {file.resolve() for file in pages if not file.is_symlink()}
    candidates = [file for file in pages if not (file.is_symlink() and file.resolve() in files)]  # each page once
    return [folder / "results", *(file for file in candidates if MARKER.search(_text(file) or ""))]


def among(places: Sequence[Path], tell: Tell = refuse_damaged) -> Iterator[tuple[Path, Run]]:
    for place in places:
        if place.suffix != ".md":
            yield from records(place, tell)


def made_from(places: Sequence[Path], tell: Tell = refuse_damaged, inspect: Inspect | None = None) -> dict[Path, str]:
    """Return every page that these places should have: those of runs, a folder's index, and pages that quote."""
    pages: dict[Path, str] = {}
    for place in places:
        if place.suffix != ".md":
            pages |= _of_data(place, tell, inspect)
    of_machine = cache(summary_of)  # a folder is read once for all pages
    return pages | {place: quoted(place, of_machine) for place in places if place.suffix == ".md"}


def _of_data(place: Path, tell: Tell, inspect: Inspect | None) -> dict[Path, str]:
    pages: dict[Path, str] = {}
    machines: dict[object, _MachineIndex] = {}
    parts = ["# Runs by machine", EXPLANATION]

    # One run at a time, and one machine: a hundred long runs at once would not fit into memory.
    def drawn(of_machine: Iterable[tuple[Path, Run]]) -> Iterator[Run]:
        for data, record in of_machine:
            if inspect is not None:
                inspect(data, record)
            summary = summarize(record)
            pages.update(_of_run(summary, data))
            machines.setdefault(record.machine.identity, _MachineIndex(record.machine)).add(summary, data)
            yield from plain(record)

    for identity, of_machine in groupby(records(place, tell, by_machine=True), lambda read: read[1].machine.identity):
        merged = merge_by_machine(drawn(of_machine))
        if place.is_dir():
            parts += machines[identity].drawn(summarize(merged[0]) if merged else None, place, pages)
    return pages | ({place / INDEX: "\n\n".join([*parts, MADE]) + "\n"} if place.is_dir() else {})


def plain(record: Run) -> Iterator[Run]:
    """Yield a run that says which backend is fastest, with its default configurations alone."""
    if record.config.general:
        trials = [trial for trial in record.trials if trial.options == DEFAULT]
        if trials:
            yield dataclasses.replace(record, trials=trials)


@dataclass
class _MachineIndex:
    """One machine's workloads: each with its answer, and a link to the run that it is taken from."""

    machine: Machine
    lines: dict[str, tuple[Rank, list[str]]] = field(default_factory=dict)
    runs: list[str] = field(default_factory=list)

    def add(self, summary: Summary, data: Path) -> None:
        """Take the workloads of a run that no run of a higher rank has measured."""
        link = f"[{markdown.escape(data.stem)}]({quote(data.with_suffix(TABLES).name)})"
        self.runs.append(link)
        for row, kind, answer in (
            brief for report in registry.mode_reports(summary) for brief in report.briefs(summary)
        ):
            key = row.name + (f" ({kind})" if kind else "")
            level = rank(summary.record, Group(row.scenario.name, row.workload.name, row.size is not None))
            if key not in self.lines or level > self.lines[key][0]:
                self.lines[key] = (level, [*map(markdown.escape, [key, *answer]), link])

    def drawn(self, merged: Summary | None, folder: Path, pages: dict[Path, str]) -> list[str]:
        unknown = "" if self.machine.identifier else " (perhaps several)"
        parts = [f"## {markdown.escape(self.machine.title + unknown)}"]
        if merged and (chart := charts.ratios(merged, title(merged))) is not None:
            name, alternative = slug(self.machine), markdown.escape(chart.title)
            pages[folder / f"{name}{CHART}"] = svg.file(chart)
            parts += [f"{alternative}.", f"![{alternative}]({name}{CHART})"]
            by_kind = kinds(merged)
            if by_kind is not None and by_kind.chart is not None:
                pages[folder / f"{name}-kinds{CHART}"] = svg.file(by_kind.chart)
                parts.append(markdown.section(by_kind._replace(title="")))
        headers = ["workload", "fastest", "how many times as long the others take", "run"]
        lines = [line for _, line in self.lines.values()]
        parts += [markdown.draw_table(headers, lines)] if lines else []
        return [*parts, f"All runs: {', '.join(self.runs)}"]


def stale(pages: dict[Path, str]) -> list[Path]:
    return [file for file, text in pages.items() if _text(file) != text]


def write(pages: dict[Path, str]) -> list[Path]:
    """Write the pages that differ, and return them; then raise ResultsError for those that could not be written."""
    changed = stale(pages)
    refused = []
    for file in changed:
        try:
            if MARKER.search(pages[file]):  # somebody's own page, who wants it written by the markers
                replace(file, pages[file].encode())
            else:
                replace_page(file, pages[file])
        except ResultsError as error:
            refused.append(str(error))
    if refused:
        raise ResultsError("\n".join(refused))
    return changed


def summary_of(folder: Path, name: str) -> Summary:
    """Return what the plain runs of a folder say of the machine whose charts have this name, as its index does."""
    of_name = (record for _, record in among([folder]) if slug(record.machine) == name)
    merged = merge_by_machine(run for record in of_name for run in plain(record))
    if not merged:
        raise UsageError(f"{folder}: there is no plain run of the machine {name}")
    return summarize(merged[0])


def quoted(file: Path, of_machine: Callable[[Path, str], Summary] = summary_of) -> str:
    """Return a markdown page with its quotations updated. Paths in markers count from the page's project."""
    try:
        text = _read(file)
    except OSError as error:
        raise ResultsError(f"{file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ResultsError(f"{file}: not a page in UTF-8") from None

    @cache
    def summary(data: str) -> Summary:
        if not data.endswith(".json"):
            folder, _, name = data.rpartition("/")
            near, above = file.parent / folder, file.parent.parent / folder
            return of_machine(above if above.is_dir() and not near.is_dir() else near, name)
        places = ((file.parent / name, file.parent.parent / name) for name in data.split())
        chosen = [above if above.is_file() and not near.is_file() else near for near, above in places]
        return summarize(merge(list(map(load, chosen))))

    def quotation(marker: re.Match[str]) -> str:
        sections, builders = [], page.quotable()
        for name in map(str.strip, marker[3].split(",")):
            if name not in builders:
                raise UsageError(f"{file}: a marker asks for the section {name!r}; there are: {', '.join(builders)}")
            if section := builders[name](summary(marker[2])):  # without its heading
                sections.append(markdown.section(section._replace(title="", folded=False)))
        return "".join([marker[1], "\n\n".join(filter(None, sections)), "\n", marker[5]])

    return MARKER.sub(quotation, text)


def _read(file: Path) -> str:
    return read_plain(file, MAX_PAGE_BYTES).decode("utf-8").replace("\r\n", "\n")


def _text(file: Path) -> str | None:
    try:
        return _read(file)
    except (OSError, UnicodeDecodeError, ResultsError):
        return None


def slug(machine: Machine) -> str:
    """Return a name for a machine's plots that is fit for a file, and differs between machines."""
    words = re.sub(r"[^a-z0-9]+", "-", machine.chip.lower()).strip("-")[:40] or "machine"
    return f"{words}-{hashlib.sha256(repr(machine.identity).encode()).hexdigest()[:6]}"


def machines(places: Sequence[Path], tell: Tell = refuse_damaged) -> list[tuple[str, Summary]]:
    return named(merge_by_machine(record for _, record in among(places, tell)))


def named(records: Sequence[Run]) -> list[tuple[str, Summary]]:
    """Return each machine's summary by its chip, with the end of its page's name if two have the same chip."""
    chips = [record.machine.chip for record in records]
    return [
        (chip if chips.count(chip) == 1 else f"{chip} {slug(record.machine).rpartition('-')[2]}", summarize(record))
        for chip, record in zip(chips, records, strict=True)
    ]


def together(places: Sequence[Path]) -> Page | None:
    """Return one page of several machines, the answer first; None for one. What cannot be read is passed over."""
    briefs = [MachineSummary.of(name, summary) for name, summary in machines(places, lambda file, why: None)]
    return of_machines(briefs, {}) if len(briefs) > 1 else None


def as_csv(summaries: Sequence[Summary]) -> str:
    return csv_of([NAMES, *map(dataclasses.astuple, observations(summaries))])


def csv_of(lines: Iterable[Iterable[str | float | None]]) -> str:
    """Return lines of cells as CSV; no text of them is a formula to a spreadsheet or has control characters."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_csv_cell, line) for line in lines)
    return text.getvalue()


def _csv_cell(value: str | float | None) -> str:
    if not isinstance(value, str):
        return "" if value is None else repr(value)
    printable = blanked(value)
    return f"'{printable}" if printable[:1] in ("=", "+", "-", "@") else printable
