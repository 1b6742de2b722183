"""Commands that read what there is: list, report and compare."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kerasbench.commands import EXIT_OK, EXIT_REGRESSION, EXIT_USAGE
from kerasbench.commands.help import Argument, Option, command
from kerasbench.commands.options import FAIL_ON, as_json, offering, require_regression
from kerasbench.errors import UsageError
from kerasbench.settings import FILES, SHOW, SUITES
from kerasbench.text import print_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kerasbench.results.record import Record
    from kerasbench.results.shelf import Tell

FORMATS = ("markdown", "csv", "json", "html")


@command(
    "list",
    Option(
        ["--suite"],
        metavar="NAME",
        default="",
        help="published, tiny or modern. Default: all.",
        group=SHOW,
        shell_complete=offering(SUITES),
    ),
    as_json(),
)
def list_(suite: str, as_json: bool) -> int:
    """List the scenarios of each suite: their sizes, and how long a step took here."""
    import json

    from kerasbench.plan import catalog, steps
    from kerasbench.report import listing

    files = catalog.suite_files(suite) if suite else catalog.builtin_files()
    entries, taken = catalog.describe_all(files, sys.executable), steps.recalled()
    if as_json:
        print_document(json.dumps(listing.as_data(entries, taken), indent=2, ensure_ascii=False) + "\n")
    else:
        print(listing.as_table(entries, taken))
    return EXIT_OK


@command(
    "report",
    Argument(
        ["places"],
        metavar="[DIR|FILE]...",
        nargs=-1,
        type=Path,
        text="Folders, result files or pages. Default: results, README.md and docs.",
    ),
    Option(["--check"], is_flag=True, help="Write nothing. Exit with 1 if a page differs from its data.", group=SHOW),
    Option(
        ["--format", "form"],
        metavar="KIND",
        default="markdown",
        help="markdown (files next to the data), or csv, json or html (printed).",
        group=SHOW,
        shell_complete=offering(FORMATS),
    ),
    Option(
        ["--plot", "plots"],
        metavar="DIR",
        type=Path,
        help="Draw each machine's plots as PNG in this folder.",
        group=FILES,
    ),
)
def report(places: "Sequence[Path]", check: bool, form: str, plots: Path | None) -> int:
    """Update every page from its data: pages of runs and machines, and the tables quoted in README.md and docs/."""
    from kerasbench.report import pages
    from kerasbench.report.printed import print_page
    from kerasbench.results.shelf import Unread, say_passed_over

    chosen = places or pages.default_places(Path())
    if form not in FORMATS:
        raise UsageError(f"--format takes {', '.join(FORMATS)}, not {form!r}")
    if check and (form != "markdown" or plots is not None):
        raise UsageError("--check compares pages with their data: give it neither --plot nor another --format")
    if plots is not None and form != "markdown":
        raise UsageError(f"--plot draws pictures and --format {form} prints: ask for one after the other")
    damaged: list[Path] = []

    def tell(unread: Unread) -> None:
        damaged.extend([unread.file] if unread.is_damaged else [])
        say_passed_over(unread)

    if plots is not None:
        code = _written(pages.draw(chosen, plots, tell))
    elif form == "markdown":
        made = pages.made_from(chosen, tell)
        code = _check(pages.stale(made)) if check else _written(pages.write(made))
        several = not check and len([place for place in chosen if place.suffix != ".md"]) > 1
        if several and (abreast := pages.together(chosen, lambda unread: None)) is not None:  # it was told above
            print_page(abreast)
    else:
        print_document(_document(chosen, form, tell))
        code = EXIT_OK
    return EXIT_USAGE if damaged else code


def _document(places: "Sequence[Path]", form: str, tell: "Tell") -> str:
    """Return what goes to stdout in one piece: csv, json or html."""
    from kerasbench.analysis.summary import summarize
    from kerasbench.report import csv, html, pages
    from kerasbench.results import store

    if form == "html":
        return html.document(pages.named(pages.machines(places, tell)))
    records = [record for _, record in pages.among(places, tell)]
    return csv.document([summarize(record) for record in records]) if form == "csv" else store.as_json(records) + "\n"


def _written(made: list[Path]) -> int:
    print("\n".join(map(str, made)) or "all pages are up to date")
    return EXIT_OK


def _check(differing: list[Path]) -> int:
    for tables in differing:
        print(f"kerasbench: {tables}: differs from its data; python -m kerasbench report updates it", file=sys.stderr)
    return EXIT_USAGE if differing else EXIT_OK


@command(
    "compare",
    Argument(
        ["places"], metavar="OLD NEW [MORE]...", nargs=-1, type=Path, required=True, text="Result files or folders."
    ),
    FAIL_ON,
)
def compare(places: "Sequence[Path]", fail_on: str | None) -> int:
    """Compare two sets of results: what became faster or slower? More than two are shown in columns."""
    from kerasbench.analysis import changes
    from kerasbench.analysis.summary import summarize
    from kerasbench.report import comparison
    from kerasbench.report.printed import print_page
    from kerasbench.report.sections import Page
    from kerasbench.results.merge import merge

    require_regression(fail_on)
    if len(places) < 2:
        raise UsageError("compare takes two or more result files or folders: OLD NEW")
    sides = [_side(place) for place in places]
    if len(places) > 2:
        if fail_on:
            raise UsageError("--fail-on needs two sets of results, OLD and NEW")
        summaries = [(name, summarize(merge(side))) for name, side in zip(_names(places), sides, strict=True)]
        print_page(Page("", [comparison.side_by_side(summaries)]))
        return EXIT_OK
    found = changes.compare(*sides)
    print_page(comparison.changes(found, *(str(place) for place in places)))
    if fail_on:
        found.require_decided()
    return EXIT_REGRESSION if fail_on and found.regressions else EXIT_OK


def _side(place: Path) -> "list[Record]":
    """Return the runs of a folder or a file; raise UsageError where they are of several machines."""
    from kerasbench.results import shelf

    found = [record for _, record in shelf.records(place)]
    machines = list({record.machine.identity: record.machine.title for record in found}.values())
    if len(machines) > 1:
        raise UsageError(f"{place} has runs of {len(machines)} machines ({'; '.join(machines)}): name files of one")
    return found


def _names(places: "Sequence[Path]") -> list[str]:
    """Return what each place is called in a table; the same place twice is numbered."""
    words = [str(place) for place in places]
    return [
        word if words.count(word) == 1 else f"{word} ({1 + words[:index].count(word)})"
        for index, word in enumerate(words)
    ]
