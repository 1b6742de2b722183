"""The manual: the pages of docs/ for users, which a wheel has inside."""

from pathlib import Path

from kerasbench.errors import unknown

PACKAGE_FOLDER = Path(__file__).parents[1]
NOT_FOR_USERS = ("architecture.md", "index.md")  # the code, and the home of the site, whose links are this list


def pages() -> dict[str, Path]:
    """Return the file of each page by its name, as in ``docs/limitations.md``."""
    inside = PACKAGE_FOLDER / "docs"  # in a wheel; in a checkout beside the package
    folder = inside if inside.is_dir() else PACKAGE_FOLDER.parent / "docs"
    return {file.stem: file for file in sorted(folder.glob("*.md")) if file.name not in NOT_FOR_USERS}


def read(name: str) -> str:
    """Return a page by its name, or by its place in the repository; raise UsageError if there is none."""
    files, wanted = pages(), name.removeprefix("docs/").removesuffix(".md")
    if wanted not in files:
        raise unknown("page of the manual", name, files)
    return files[wanted].read_text("utf-8")


def titles() -> dict[str, str]:
    return {name: file.read_text("utf-8").partition("\n")[0].removeprefix("# ") for name, file in pages().items()}
