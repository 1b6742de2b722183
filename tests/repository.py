import os
import subprocess
from pathlib import Path

from kerasbench.git import environment

ROOT = Path(__file__).parents[1]


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", *settings, *words]
    asked = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=True)
    return asked.stdout.strip()


def printed(*command: object, folder: Path = ROOT, **variables: str) -> str:
    """Run a program that finds this checkout; return what it prints. Where it fails, the test shows its stderr."""
    known = os.environ | {"PYTHONPATH": str(ROOT)} | variables
    words = list(map(str, command))
    ended = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
