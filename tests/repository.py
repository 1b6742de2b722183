import subprocess
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    asked = subprocess.run(["git", *settings, *words], cwd=folder, capture_output=True, text=True, check=True)
    return asked.stdout.strip()
