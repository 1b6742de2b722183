"""The commands that read results: pages made again, two sets compared, ratios over time."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerasbench.cli.options import FAIL_ON, Argument, Option, as_json, command
from kerasbench.cli.printing import print_json, show
from kerasbench.errors import EXIT_FAILED, EXIT_OK, EXIT_REGRESSION, UsageError
from kerasbench.names import FILES, SHOW
from kerasbench.text import blanked, complain, print_document

if TYPE_CHECKING:
    from kerasbench.results.store import Tell, UnreadableFile

FORMATS = ("markdown", "csv", "json", "html")


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
        type=click.Choice(FORMATS),
        default="markdown",
        help="markdown (files next to the data), or csv, json or html: printed.",
        group=SHOW,
    ),
)
def report(places: Sequence[Path], check: bool, form: str) -> int:
    """Update every page from its data: pages of runs and machines, and the tables quoted in README.md and docs/."""
    from kerasbench.analysis.summary import summarize
    from kerasbench.pages import files as pages
    from kerasbench.pages import html
    from kerasbench.results import store

    chosen = places or pages.default_places(Path())
    if check and form != "markdown":
        raise UsageError("--check compares pages with their data: give it no other --format")
    damaged: list[Path] = []

    def tell(unread: "UnreadableFile") -> None:
        damaged.extend([unread.file] if unread.is_damaged else [])
        store.say_passed_over(unread)

    code = EXIT_OK
    if form == "markdown":
        code = _update(chosen, tell, check)
    elif form == "html":
        print_document(html.document(pages.machines(chosen, tell)))
    else:
        records = [record for _, record in pages.among(chosen, tell)]
        is_csv = form == "csv"
        print_document(pages.as_csv(list(map(summarize, records))) if is_csv else store.as_json(records) + "\n")
    return EXIT_FAILED if damaged else code


def _update(places: Sequence[Path], tell: "Tell", check: bool) -> int:
    from kerasbench.pages import files as pages
    from kerasbench.report.console import print_page

    made = pages.made_from(places, tell)
    if check:
        differing = pages.stale(made)
        for tables in differing:
            complain(f"{blanked(str(tables))}: differs from its data; python -m kerasbench report updates it")
        return EXIT_FAILED if differing else EXIT_OK
    print("\n".join(blanked(str(file)) for file in pages.write(made)) or "all pages are up to date")
    several = len([place for place in places if place.suffix != ".md"]) > 1
    if several and (abreast := pages.together(places)) is not None:
        print_page(abreast)
    return EXIT_OK


@command(
    "compare",
    Argument(
        ["places"], metavar="OLD NEW [MORE]...", nargs=-1, type=Path, required=True, text="Result files or folders."
    ),
    FAIL_ON,
    as_json(),
)
def compare(places: Sequence[Path], fail_on: str | None, as_json: bool) -> int:
    """Compare two sets of results: what became faster or slower? More than two are shown side by side."""
    from kerasbench import api
    from kerasbench.pages import data, several
    from kerasbench.report.console import print_page
    from kerasbench.report.sections import Page

    if len(places) < 2:
        raise UsageError("compare takes two or more result files or folders: OLD NEW")
    if len(places) == 2:
        changes = api.compare(*places)
        show(changes, as_json)
        return EXIT_REGRESSION if fail_on and changes.regressions else EXIT_OK
    if fail_on:
        raise UsageError("--fail-on needs two sets of results, OLD and NEW")
    had = Counter[Path]()
    summaries = []
    for place in places:
        had[place] += 1
        name = str(place) if places.count(place) == 1 else f"{place} ({had[place]})"  # the same place twice
        summaries.append((name, api.load(place).summary))
    if as_json:
        print_json(data.of_sides(summaries).to_data())
    else:
        print_page(Page("", [several.side_by_side(summaries)]))
    return EXIT_OK


@command(
    "history",
    Argument(["folder"], metavar="DIR", type=Path, text="A folder of result files."),
    Option(
        ["--over"],
        metavar="WHAT",
        type=click.Choice(("date", "keras", "backend", "commit")),
        help="Horizontal axis of --plot: date (default), keras or backend (their versions), or commit.",
        group=SHOW,
    ),
    Option(
        ["--csv", "as_csv"], is_flag=True, help="Print CSV: a line for each run, a column for each ratio.", group=SHOW
    ),
    Option(["--plot"], metavar="FILE.svg", type=Path, help="Draw the ratios into this file.", group=FILES),
    as_json(),
)
def history(folder: Path, over: str | None, as_csv: bool, plot: Path | None, as_json: bool) -> int:
    """Follow ratios over many runs: by date, by version or by commit.

    The time of a step depends on the machine's speed at that moment. Its ratio to another configuration changes much
    less.
    """
    from kerasbench import api
    from kerasbench.files import replace_page
    from kerasbench.pages import data
    from kerasbench.pages import history as drawn
    from kerasbench.report import svg
    from kerasbench.report.console import print_page

    if over is not None and plot is None:
        raise UsageError("--over is the horizontal axis of a chart: add the chart's file, --plot FILE.svg")
    if plot is not None and plot.suffix != ".svg":
        raise UsageError(f"--plot takes a file that ends in .svg, such as ratios.svg, not {plot}")
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other: give one of them")
    series = api.history(folder)
    if as_json:
        print_json(data.of_history(series).to_data())
    elif as_csv:
        print_document(drawn.as_csv(series))
    else:
        print_page(drawn.page(series))
    if plot is not None:
        replace_page(plot, svg.file(drawn.chart(series, over or "date")))
        print(f"plot: {plot}", file=sys.stderr)
    return EXIT_OK
