"""Check the results that a pull request brings, and print the pages that they make: ``results.py BASE HEAD``.

The files are anybody's. They are read from git as data, by the code of BASE, and nothing of them is run. What is
refused: other files beside results, results that were there before and differ now, what is no plain file or too large,
what cannot be read, data that ``kerasbench contribute`` would not write so, and pages that are not what their data
say; and a link anywhere. A pull request that brings or changes no data is no such one, but for links: pages that a
change of the code draws anew are checked by the tests.
"""

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from kerasbench.contributing.branch import FOLDER, KINDS, PLAIN, copied, is_redrawn, listed
from kerasbench.contributing.public import MOST_BYTES, require_public
from kerasbench.errors import ResultsError
from kerasbench.pages.files import made_from
from kerasbench.results.store import STAMP
from kerasbench.text import printable

HERE = Path()
FILES = (PLAIN, "100755")  # other modes are a link's and a submodule's, which lead out of the repository


def changed(base: str, head: str) -> list[tuple[str, str]]:
    """Return the files that HEAD changes: how (A: added), and their names."""
    found = listed(HERE, "diff", "--no-renames", "--name-status", "-z", f"{base}...{head}")
    return list(zip(found[::2], found[1::2], strict=True))


def brings_data(files: list[tuple[str, str]]) -> bool:
    paths = [PurePosixPath(name) for _, name in files]
    return any(path.parent == PurePosixPath(FOLDER) and path.suffix == ".json" for path in paths)


def links(files: list[tuple[str, str]], head: str) -> list[str]:
    """Return what is no file of what HEAD brings: commands would write and read elsewhere."""
    lines = listed(HERE, "ls-tree", "-r", "-z", head)
    modes = {name: line.split()[0] for line, _, name in (line.partition("\t") for line in lines)}
    return [f"{name!r}: is a link" for _, name in files if name in modes and modes[name] not in FILES]


def complaints(files: list[tuple[str, str]], head: str) -> list[str]:
    """Return what is wrong with the names, kinds and sizes of the files that HEAD changes."""
    found = []
    for status, name in files:
        path = PurePosixPath(name)
        is_of_run = path.suffix in KINDS and STAMP.fullmatch(path.stem)
        if path.parent != PurePosixPath(FOLDER) or not (is_of_run or is_redrawn(path.name)):
            found.append(f"{name!r}: a pull request with results brings files results/<start>{'|'.join(KINDS)} alone")
        elif status != "A" and not is_redrawn(path.name):
            found.append(f"{name!r}: is there already, and stays as it is: results are added")
    for line in listed(HERE, "ls-tree", "-z", "--long", head, f"{FOLDER}/"):
        description, _, name = line.partition("\t")
        mode, kind, _, size = description.split()
        if kind == "blob" and (mode != PLAIN or int(size) > MOST_BYTES):
            found.append(f"{name!r}: is no plain file, or larger than {MOST_BYTES // 1_000_000} MB")
    return found


def private(added: list[Path]) -> Iterator[str]:
    """Yield which data are not as ``kerasbench contribute`` writes them."""
    for file in added:
        if file.suffix == ".json":
            try:
                require_public(file.read_bytes(), file.name)
            except ResultsError as error:
                yield str(error)


def unmade(added: list[Path], results: Path) -> list[str]:
    pages = {file for file in added if file.suffix != ".json"}
    return [f"{file.name}: no data make this page" for file in sorted(pages - made_from([results]).keys())]


def main(base: str, head: str) -> int:
    # A line of a page, or of a name, may be a command of GitHub's log: none is heeded from here on.
    print(f"::stop-commands::{secrets.token_hex(16)}", file=sys.stderr, flush=True)
    files = changed(base, head)
    if wrong := links(files, head):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if not brings_data(files):
        print("no data of results are brought or changed", file=sys.stderr)
        return 0
    if wrong := complaints(files, head):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        results = copied(HERE, head, Path(folder))
        check = [sys.executable, "-P", "-m", "kerasbench", "report", str(results)]
        if ended := subprocess.run([*check, "--check"], check=False).returncode:
            return ended
        added = [results / Path(name).name for status, name in files if status == "A"]
        if wrong := list(private(added)) or unmade(added, results):
            print(printable("\n".join(wrong)), file=sys.stderr)
            return 1
        pages = [file for file in added if file.suffix == ".md"]
        print("\n".join(page.read_text("utf-8") for page in pages))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
