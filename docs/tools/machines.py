"""A hook of mkdocs: from results/, a page for each machine with its answers as bars, and one of all machines.

They are made while the site is built, so no pull request has to bring them. Default columns alone are in them, of runs
that are no race and no comparison of versions.
"""

import dataclasses
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kerasbench.analysis.findings import Findings, findings
from kerasbench.protocol.columns import DEFAULT
from kerasbench.report import charts, markdown, page, pages, svg
from kerasbench.report.comparisons import side_by_side
from kerasbench.results.record import Record
from kerasbench.results.store import merge_by_machine

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "machines"
SECTIONS = ("answer", "training", "devices", "heading")
INTRODUCTION = """# Results by machine

What this project and others have measured. Yours is welcome:
[how to send it](../results.md#send-yours). [All runs](../results/README.md) have pages of their own.
"""


@cache
def made(results: Path = ROOT / "results") -> dict[str, str]:
    """Return the files of this part of the site, by their path in it."""
    found = {pages.slug(record.machine): findings(record) for record in merge_by_machine(_plain(results))}
    files = {f"{FOLDER}/{name}.svg": _bars(one) for name, one in found.items()}
    files |= {f"{FOLDER}/{name}.md": _page(name, one, files[f"{FOLDER}/{name}.svg"]) for name, one in found.items()}
    named = pages.named(found)
    links = [f"- [{markdown.escape(one.record.machine.title)}]({name}.md)" for name, one in found.items()]
    together = markdown.section(side_by_side([(name, one.summary) for name, one in named]))
    files[f"{FOLDER}/index.md"] = "\n\n".join([INTRODUCTION.strip(), "\n".join(links), together]) + "\n"
    return files


def _bars(found: Findings) -> str:
    chart = charts.ratios(found)
    return svg.file(chart) if chart is not None else ""


def _plain(results: Path) -> Iterator[Record]:
    """Yield the runs that a page is made of, each with its default columns alone."""
    for _, record in pages.among([results], lambda unread: None):
        config = record.config
        if not (config.versus or config.race or config.soak):
            trials = [trial for trial in record.trials if trial.options == DEFAULT]
            yield dataclasses.replace(record, trials=trials)


def _page(name: str, found: Findings, picture: str) -> str:
    title = f"# {markdown.escape(found.record.machine.title)}"
    bars = f"![How many times as long each column takes as the fastest of its row]({name}.svg)" if picture else ""
    sections = [page.BY_NAME[section].build(found) for section in SECTIONS]
    return "\n\n".join(filter(None, [title, bars, *(markdown.section(one) for one in sections if one)])) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and pictures."""
    from mkdocs.structure.files import File

    for name, text in made().items():
        if text:
            files.append(File.generated(config, name, content=text))
    return files
