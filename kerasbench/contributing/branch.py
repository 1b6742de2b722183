"""The branch of a clone that brings a result and its pages: made without working tree and index, and sent nowhere."""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kerasbench.errors import ResultsError, UsageError
from kerasbench.files import replace
from kerasbench.git import environment
from kerasbench.pages import files as pages
from kerasbench.results.run import Run
from kerasbench.results.store import as_line

FOLDER = "results"
CHART = re.compile(r"[a-z0-9-]+-[0-9a-f]{6}(-kinds)?\.svg")  # of a machine: drawn anew with its results
KINDS = (".json", ".md", ".svg")
PLAIN = "100644"  # the mode of a plain file
# What a pull request can be made against, the first that is there: the project's main branch before a fork's.
BASES = ("upstream/HEAD", "upstream/main", "origin/HEAD", "origin/main", "HEAD")


def git(folder: Path, *words: str, given: bytes = b"", **variables: str) -> bytes:
    """Return what git prints; raise UsageError without git, ResultsError with what it says if it fails."""
    command = ["git", "-c", "user.useConfigOnly=true", *words]  # else git makes an address of the machine's name
    try:  # a hook has variables that name its own repository
        ended = subprocess.run(
            command, cwd=folder, env=environment() | variables, input=given, capture_output=True, check=False
        )
    except OSError as error:
        if not folder.is_dir():
            raise ResultsError(f"{folder}: {error.strerror}") from None
        raise UsageError("this command needs git: install it (git-scm.com)") from None
    if ended.returncode:
        raise ResultsError(f"git {words[0]}: {ended.stderr.decode(errors='replace').strip()}")
    return ended.stdout


def listed(folder: Path, *words: str) -> list[str]:
    """Return what git lists, with a NUL behind each; a name need not be UTF-8."""
    return os.fsdecode(git(folder, *words)).split("\0")[:-1]


def copied(folder: Path, commit: str, into: Path) -> Path:
    """Copy the results of a commit out of git, and return their folder."""
    results = into / FOLDER
    results.mkdir()
    for name in listed(folder, "ls-tree", "-z", "--name-only", commit, f"{FOLDER}/"):
        path = PurePosixPath(name)
        if path.suffix in KINDS:
            (results / path.name).write_bytes(git(folder, "cat-file", "blob", f"{commit}:{name}"))
    return results


def is_redrawn(name: str) -> bool:
    """Tell whether a file of the folder is made from the results of several runs."""
    return name == pages.INDEX or CHART.fullmatch(name) is not None


@dataclass(frozen=True)
class Branch:
    """A branch that can be made: what it is called, on which commit, by whom, and what the result is called in it."""

    clone: Path
    name: str
    base: str  # as BASES has it
    commit: str
    author: str
    data: str  # results/<start>.json


def plan(clone: Path, record: Run) -> Branch:
    """Raise KerasbenchError where no branch can be made."""
    try:
        top = Path(os.fsdecode(git(clone, "rev-parse", "--show-toplevel")).rstrip("\n"))
        base, commit = _base(top)
        git(top, "cat-file", "-e", f"{commit}:kerasbench/__init__.py")
    except ResultsError:
        advice = "clone the repository of kerasbench, and name that folder: --clone DIR"
        raise UsageError(f"{clone}: no clone of kerasbench: {advice}") from None
    try:
        author = git(top, "var", "GIT_AUTHOR_IDENT").decode(errors="replace").rpartition(">")[0] + ">"
    except ResultsError:
        how = 'git config --global user.name "YOUR NAME" && git config --global user.email YOU@EXAMPLE.ORG'
        raise UsageError(
            f"git does not know who makes the commit; the name and the address are public: {how}"
        ) from None
    stamp = record.started.replace(":", "").replace("Z", "")
    data, name = f"{FOLDER}/{stamp}.json", f"{FOLDER}-{stamp}"
    if data in listed(top, "ls-tree", "-z", "--name-only", commit, f"{FOLDER}/"):
        raise ResultsError(f"{data}: already on {base}, so there is nothing to send")
    if listed(top, "for-each-ref", "--format=%(refname)%00", f"refs/heads/{name}"):
        raise UsageError(f"{top}: there is a branch {name} already: send it, or remove it with git branch -D {name}")
    return Branch(top, name, base, commit, author, data)


def _base(clone: Path) -> tuple[str, str]:
    for name in BASES:
        reference = name if name == "HEAD" else f"refs/remotes/{name}"
        if commit := git(clone, "for-each-ref", "--format=%(objectname)", reference).decode().strip():
            return name, commit
    return BASES[-1], git(clone, "rev-parse", "--verify", "HEAD^{commit}").decode().strip()


def write(branch: Branch, record: Run) -> list[str]:
    """Make the branch, of one commit, and return its new and changed files."""
    with tempfile.TemporaryDirectory() as folder:
        results = copied(branch.clone, branch.commit, Path(folder))
        data = results / PurePosixPath(branch.data).name
        replace(data, as_line(record))
        made = pages.made_from([results])
        changed = pages.stale(made)
        others = [file.name for file in changed if file.stem != data.stem and not is_redrawn(file.name)]
        if others:
            advice = "install the clone's own: pip install -e ."
            raise ResultsError(f"this kerasbench draws {others[0]} differently from {branch.base}: {advice}")
        contents = {data.name: data.read_bytes()} | {file.name: made[file].encode() for file in changed}
        tree = _tree(branch, contents, Path(folder, "index"))
    title = f"Add results of {record.machine.chip}, {record.started[:10]}\n"
    written = git(branch.clone, "commit-tree", tree, "-p", branch.commit, given=title.encode()).decode().strip()
    git(branch.clone, "update-ref", f"refs/heads/{branch.name}", written, "0" * len(written))  # unless it is there now
    return [f"{FOLDER}/{name}" for name in contents]


def _tree(branch: Branch, contents: dict[str, bytes], index: Path) -> str:
    git(branch.clone, "read-tree", branch.commit, GIT_INDEX_FILE=str(index))
    for name, content in contents.items():
        blob = git(branch.clone, "hash-object", "-w", "--stdin", given=content).decode().strip()
        entry = f"{PLAIN},{blob},{FOLDER}/{name}"
        git(branch.clone, "update-index", "--add", "--cacheinfo", entry, GIT_INDEX_FILE=str(index))
    return git(branch.clone, "write-tree", GIT_INDEX_FILE=str(index)).decode().strip()
