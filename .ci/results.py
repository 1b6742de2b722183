"""Check the results that a pull request brings, and print the pages that they make: ``results.py BASE HEAD``.

The files are anybody's. They are read from git as data, by the code of BASE, and nothing of them is run. What is
refused: other files beside results, results that were there before and differ now, what is no plain file or too large,
what cannot be read, and pages that are not what their data say.
"""

import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

FOLDER, INDEX = "results", "README.md"
KINDS = (".json", ".md", ".svg")
MOST_BYTES = 20_000_000  # of a file; a run of twelve rounds of all scenarios has five million
PLAIN = "100644"  # the mode of a file that is no link and no program


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], capture_output=True, check=True).stdout  # noqa: S607


def complaints(base: str, head: str) -> list[str]:
    """Return what is wrong with the names, kinds and sizes of the files that HEAD changes."""
    found = []
    changed = git("diff", "--no-renames", "--name-status", "-z", f"{base}...{head}").decode().split("\0")[:-1]
    for status, name in zip(changed[::2], changed[1::2], strict=True):
        path = PurePosixPath(name)
        if path.parent != PurePosixPath(FOLDER) or path.suffix not in KINDS:
            found.append(f"{name}: a pull request with results brings files results/<start>{'|'.join(KINDS)} alone")
        elif status != "A" and path.name != INDEX:
            found.append(f"{name}: is there already, and stays as it is: results are added")
    for line in git("ls-tree", "-z", "--long", head, f"{FOLDER}/").decode().split("\0")[:-1]:
        description, _, name = line.partition("\t")
        mode, kind, _, size = description.split()
        if kind == "blob" and (mode != PLAIN or int(size) > MOST_BYTES):
            found.append(f"{name}: is no plain file, or larger than {MOST_BYTES // 1_000_000} MB")
    return found


def copied(head: str, folder: Path) -> Path:
    """Copy the results of HEAD out of git, and return their folder."""
    results = folder / FOLDER
    results.mkdir()
    for name in git("ls-tree", "-z", "--name-only", head, f"{FOLDER}/").decode().split("\0")[:-1]:
        path = PurePosixPath(name)
        if path.suffix in KINDS:
            (results / path.name).write_bytes(git("cat-file", "blob", f"{head}:{name}"))
    return results


def main(base: str, head: str) -> int:
    if wrong := complaints(base, head):
        print("\n".join(wrong), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        results = copied(head, Path(folder))
        check = [sys.executable, "-m", "kerasbench", "report", str(results)]
        if ended := subprocess.run([*check, "--check"], check=False).returncode:
            return ended
        added = git("diff", "--no-renames", "--name-only", "-z", "--diff-filter=A", f"{base}...{head}").decode()
        pages = [results / Path(name).name for name in added.split("\0") if name.endswith(".md")]
        print("\n".join(page.read_text("utf-8") for page in pages))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
