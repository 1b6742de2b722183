"""Stand-ins for the programs that keep a machine awake."""

from pathlib import Path

INHIBITS = "systemd-inhibit", 'for last; do :; done; "$last"'  # as the real one, it waits for what it starts


def put(folder: Path, program: tuple[str, str]) -> Path:
    """Put a stand-in into a folder of PATH; return the file in which it will write its process and its words."""
    name, body = program
    said = folder / f"{name}.said"
    (folder / name).write_text(f'#!/bin/sh\necho $$ "$@" > {said}.part\nmv {said}.part {said}\n{body}\n')
    (folder / name).chmod(0o755)
    return said
