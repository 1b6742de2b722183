"""A hook of the site's builder: for each machine a page that sorts and filters, and one of all machines.

They are made of results/ while the site is built, so no pull request has to bring them. Default settings alone are in
them, of runs that are no race, no soak and no comparison of versions.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from kerasbench.pages import files as pages
from kerasbench.pages import html, page
from kerasbench.report import markdown
from kerasbench.report.answer import title
from kerasbench.results.merge import merge_by_machine

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "machines"
INTRODUCTION = """# Results by machine

What has been measured so far. Each page sorts by a click on a column, and filters; the filter is in its
address. Yours is welcome: [how to send it](../python-and-files.md#send-a-result).
[All runs](../results/README.md) have pages of their own.
"""


@cache
def made(results: Path = ROOT / "results") -> dict[str, str]:
    """Return the files of this part of the site, by their path in it."""
    plain = (run for _, record in pages.among([results], lambda file, why: None) for run in pages.plain(record))
    files, lines, machines = {}, [], pages.named(merge_by_machine(plain))
    for chip, of_machine in machines:
        name = pages.slug(of_machine.record.machine)
        files[f"{FOLDER}/{name}.html"] = _on_site(html.document([(chip, of_machine)]))
        machine = markdown.escape(of_machine.record.machine.title)
        lines.append(f"- [{machine}]({name}.html): {markdown.escape(title(of_machine))}")
        kinds = page.quotable()["kinds"](of_machine)
        lines += ["", markdown.table(kinds.table), ""] if kinds and kinds.table else []
    if len(machines) > 1:
        files[f"{FOLDER}/all.html"] = _on_site(html.document(machines))
        lines.append("- [All machines side by side](all.html)")
    files[f"{FOLDER}/index.md"] = "\n".join([INTRODUCTION, *lines]) + "\n"
    return files


def _on_site(page: str) -> str:
    """Make a link of each page of the manual that a page of results names by its command."""
    return re.sub(r"<code>kerasbench docs ([a-z-]+)</code>", r'<a href="../\1/">\g<0></a>', page)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    from properdocs.structure.files import File

    for name, text in made().items():
        files.append(File.generated(config, name, content=text))
    return files
