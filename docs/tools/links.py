"""A hook of the site's builder: results/ and the change log become part of the site, and links to them hold.

In the repository a page links ../results/x.md and ../kerasbench/y.py. The site has no place above it, so here

- the pages, charts and data of ``../results/`` and ``../CHANGELOG.md`` are copied, and lose their ``../``. A search
  does not find them: runs have the words of all questions, and answer none;
- where a page of results names a page of the manual by its command, that is a link;
- any other file or folder of the repository is linked by ``repo_url`` of properdocs.yml, and without one is just named.

A link to something that does not exist is a warning, which fails ``properdocs build --strict``.
"""

import logging
import re
from pathlib import Path
from typing import Any

LOG = logging.getLogger("properdocs.plugins.links")
ROOT = Path(__file__).resolve().parents[2]
COPIED = ("CHANGELOG.md", "results/*.md", "results/*.svg", "results/*.json")
MANUAL = re.compile(r"`kerasbench docs ([a-z-]+)`")
# [text](../target) and ![text](../target), with an anchor or not
OUTWARD = re.compile(r"(!?)\[((?:[^\]\\]|\\.)*)\]\(\.\./([^)#\s]*)(#[^)\s]*)?\)")


def copied() -> list[str]:
    """Return the files outside docs/ that the site has, relative to the repository."""
    return [str(file.relative_to(ROOT)) for pattern in COPIED for file in sorted(ROOT.glob(pattern))]


def rewritten(text: str, repository: str | None, missing: list[str]) -> str:
    """Return a page of docs/ whose links fit the site; note in ``missing`` what they name and is not there."""
    inside = set(copied())

    def rewrite(link: re.Match[str]) -> str:
        mark, words, target, anchor = link[1], link[2], link[3].rstrip("/"), link[4] or ""
        if not (ROOT / target).exists():
            missing.append(target)
        if target in inside:
            return f"{mark}[{words}]({target}{anchor})"
        if repository:
            return f"{mark}[{words}]({repository.rstrip('/')}/blob/main/{target}{anchor})"
        return words if words.strip("`") == target else f"{words} (`{target}`)"

    return OUTWARD.sub(rewrite, text)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, charts and data from outside docs/."""
    from properdocs.structure.files import File

    for name in copied():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page that leave docs/. Only pages of the manual are searched."""
    if page.file.src_uri in copied() or page.file.src_uri.startswith("machines/"):
        page.meta["search"] = {"exclude": True}
    if page.file.src_uri.startswith("results/"):
        return MANUAL.sub(r"[\g<0>](../\1.md)", markdown)
    if page.file.src_uri.startswith("machines/"):
        return markdown
    missing: list[str] = []
    text = rewritten(markdown, config.get("repo_url"), missing)
    for name in missing:
        LOG.warning("%s links to %s, which is not in the repository", page.file.src_uri, name)
    return text
