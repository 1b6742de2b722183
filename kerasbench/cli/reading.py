"""The commands that read results: pages made again, two sets compared, ratios over time, and a branch to send."""

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kerasbench.cli.measuring import runs_other_code
from kerasbench.cli.options import FAIL_ON, REGRESSION, Argument, Option, as_json, command
from kerasbench.cli.printing import print_json, show
from kerasbench.errors import EXIT_FAILED, EXIT_OK, EXIT_REGRESSION, ResultsError, UsageError
from kerasbench.settings import FILES, SHOW
from kerasbench.text import blanked, complain, count, label, print_document

if TYPE_CHECKING:
    from kerasbench.contributing.branch import Branch
    from kerasbench.contributing.public import Public
    from kerasbench.results.run import Run

FORMATS = ("markdown", "csv", "json", "html")
FORMAT = "markdown (files next to the data), or csv, json or html: printed."
AXES = ("date", "keras", "backend", "commit")
AXIS = "Horizontal axis of --plot: date (default), keras or backend (their versions), or commit."
PLACES = "Folders, result files or pages. Default: results, README.md and docs."


def _start_no_threads() -> None:
    """Let NumPy and SciPy start none for each processor: that is a third of their import, and nothing here needs one.

    Commands that measure do not do so: what they start inherits from here.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@command(
    "report",
    Argument("places", "[DIR|FILE]...", PLACES, type=Path),
    Option("--check", SHOW, "Write nothing. Exit with 1 if a page differs from its data."),
    Option("--format KIND", SHOW, FORMAT, "form", type=click.Choice(FORMATS), default="markdown"),
)
def report(places: Sequence[Path], check: bool, form: str) -> int:
    """Update every page from its data: pages of runs and machines, and the tables quoted in README.md and docs/."""
    _start_no_threads()
    from kerasbench.pages import files as pages
    from kerasbench.results import store
    from kerasbench.results.checks import require_possible_times

    chosen = places or pages.default_places(Path())
    if check and form != "markdown":
        raise UsageError("--check compares pages with their data: give it no other --format")
    bad: list[Path] = []  # damaged files, those with impossible times, and pages that differ from their data

    def tell(file: Path, why: ResultsError) -> None:
        bad.extend([file] if store.is_named_by_a_run(file) else [])
        complain(f"{why}; skipped")

    def inspect(file: Path, record: "Run") -> None:
        try:
            require_possible_times(record, str(file))
        except ResultsError as error:
            bad.append(file)
            complain(str(error))

    if form == "html":
        from kerasbench.pages import html

        print_document(html.document(pages.machines(chosen, tell)))
    elif form != "markdown":
        from kerasbench.analysis.summary import summarize

        records = [record for _, record in pages.among(chosen, tell)]
        is_csv = form == "csv"
        print_document(pages.as_csv(list(map(summarize, records))) if is_csv else store.as_json(records) + "\n")
    elif check:
        differing = pages.stale(pages.made_from(chosen, tell, inspect))
        for tables in differing:
            complain(f"{blanked(str(tables))}: differs from its data; python -m kerasbench report updates it")
        bad.extend(differing)
    else:
        changed = pages.write(pages.made_from(chosen, tell))
        print("\n".join(blanked(str(file)) for file in changed) or "all pages are up to date")
        several = len([place for place in chosen if place.suffix != ".md"]) > 1
        if several and (abreast := pages.together(chosen)) is not None:
            from kerasbench.report.console import print_page

            print_page(abreast)
    return EXIT_FAILED if bad else EXIT_OK


@command("compare", Argument("places", "OLD NEW [MORE]...", "Result files or folders.", type=Path), FAIL_ON, as_json())
def compare(places: Sequence[Path], fail_on: Sequence[str], as_json: bool) -> int:
    """Compare two sets of results: what became faster or slower? More than two are shown side by side."""
    _start_no_threads()
    from kerasbench import api
    from kerasbench.pages import data, several
    from kerasbench.report.console import print_page
    from kerasbench.report.sections import Page

    if len(places) < 2:
        raise UsageError("compare takes two or more result files or folders: OLD NEW")
    if len(places) == 2:
        changes = api.compare(*places)
        show(changes, as_json)
        is_worse = REGRESSION in fail_on and changes.regressions
        fails = is_worse or runs_other_code(changes.comparison.differences, fail_on)
        return EXIT_REGRESSION if fails else EXIT_OK
    if fail_on:
        raise UsageError("--fail-on needs two sets of results, OLD and NEW")
    summaries = []
    for number, place in enumerate(places, 1):
        again = f" ({places[:number].count(place)})" if places.count(place) > 1 else ""
        summaries.append((f"{place}{again}", api.load(place).summary))
    if as_json:
        print_json(data.of_sides(summaries).to_data())
    else:
        print_page(Page("", [several.side_by_side(summaries)]))
    return EXIT_OK


@command(
    "history",
    Argument("folder", "DIR", "A folder of result files.", type=Path),
    Option("--over WHAT", SHOW, AXIS, type=click.Choice(AXES)),
    Option("--csv", SHOW, "Print CSV: a line for each run, a column for each ratio.", "as_csv"),
    Option("--plot FILE.svg", FILES, "Draw the ratios into this file.", type=Path),
    as_json(),
)
def history(folder: Path, over: str | None, as_csv: bool, plot: Path | None, as_json: bool) -> int:
    """Follow ratios over many runs: by date, by version or by commit.

    The time of a step depends on the machine's speed at that moment. Its ratio to another configuration changes much
    less.
    """
    _start_no_threads()
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


@command("docs", Argument("page", "[PAGE]", "The name of a page. Default: list all pages.", default=""))
def docs(page: str) -> int:
    """Show a page of the manual, such as limitations, or list its pages."""
    from kerasbench.cli.printing import show_markdown
    from kerasbench.pages import manual

    if page:
        show_markdown(manual.read(page))
        return EXIT_OK
    titles = manual.titles()
    for name, title in titles.items():
        print(f"{name:{max(map(len, titles))}}  {title}")
    print("\nkerasbench docs limitations  # shows one of them")
    return EXIT_OK


CLONE = "A clone of the repository of kerasbench. Default: the current folder."
WITH_SCENARIOS = "Keep names and descriptions of your own scenarios. Without it they are called own-3fa2c1."


@command(
    "contribute",
    Argument("file", "FILE", "A result file, results/<start>.json.", type=Path),
    Option("--clone DIR", FILES, CLONE, type=Path, default=Path()),
    Option("--with-scenarios", SHOW, WITH_SCENARIOS),
    Option("--yes", SHOW, "Do not ask, for scripts."),
)
def contribute(file: Path, clone: Path, with_scenarios: bool, yes: bool) -> int:
    """Write a branch that brings a result to the project. You send it; nothing is sent by itself.

    What names people, folders and machines is left out, and what becomes public is shown before. It needs git.
    """
    from kerasbench.contributing import branch as branches
    from kerasbench.contributing import public

    cleaned = public.public(public.load(file), with_scenarios)
    branch = branches.plan(clone, cleaned.record)
    if not yes and not sys.stdin.isatty():
        raise UsageError("contribute asks before it writes, which needs a terminal: add --yes")
    print(_becomes_public(cleaned, branch))
    if not yes and not click.confirm(f"Write it to a branch of {branch.clone}?"):
        print("nothing was written")
        return EXIT_OK
    names = branches.write(branch, cleaned.record)
    there = shlex.quote(str(branch.clone))
    print(f"The branch {branch.name} brings {count(len(names), 'file')}. Look at it, then send it:")
    print(f"    git -C {there} show --stat {branch.name}")
    print(f"    git -C {there} push FORK {branch.name}")
    print(f"    cd {there} && gh pr create --fill --head YOU:{branch.name}")
    print("YOU is your name on GitHub, FORK your fork: its remote's name, or its address. gh repo fork makes one.")
    return EXIT_OK


def _becomes_public(cleaned: "Public", branch: "Branch") -> str:
    from kerasbench.analysis.summary import summarize
    from kerasbench.pages.page import head
    from kerasbench.report.sections import inlines

    heads = map(inlines, head(summarize(cleaned.record)))
    lines = ["".join(part if isinstance(part, str) else part.text for part in parts) for parts in heads]
    lines.append(cleaned.record.machine.title)
    rows = dict.fromkeys(label(trial.scenario, trial.workload) for trial in cleaned.record.trials)
    lines += [f"{count(len(rows), 'workload')}: {', '.join(rows)}"]
    lines += [
        f"your scenario {name} is called {alias}; --with-scenarios keeps its name"
        for name, alias in cleaned.renamed.items()
    ]
    lines += [f"left out or changed: {', '.join(cleaned.taken) or 'nothing'}"]
    lines += [f"{branch.data} and its pages, on {branch.base}", f"author: {branch.author}"]
    return "\n".join(["This becomes public:", *(f"    {blanked(line)}" for line in lines)])
