"""What ``new`` writes: a scenario to begin with, and workflows that measure pull requests."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kerasbench.errors import UsageError
from kerasbench.scenario import ScenarioError, require_scenario_name

FOLDER = Path(__file__).parents[1] / "data"
NAME_OF_WORKFLOW = re.compile(r"[A-Za-z0-9_-]+")


def begin_file(file: Path) -> None:
    if file.suffix != ".py":
        example = file.with_suffix(".py") if file.name else "my_model.py"
        raise UsageError(f"a scenario is a Python file: {example}, not {file}")
    try:
        require_scenario_name(file)
    except ScenarioError as error:
        raise UsageError(str(error)) from None
    _write({file: (FOLDER / "scenario.txt").read_text("utf-8")})


def begin_workflows(file: Path) -> list[Path]:
    if not NAME_OF_WORKFLOW.fullmatch(file.stem):
        allowed = "letters, digits, dashes and underscores only, such as speed.yml"
        raise UsageError(f"{file}: a workflow's name has {allowed}")
    templates = {file: "versus.yml", file.with_name(f"{file.stem}-comment{file.suffix}"): "comment.yml"}
    texts = {path: (FOLDER / name).read_text("utf-8").replace("NAME", file.stem) for path, name in templates.items()}
    _write(texts, parents=True)
    return [*texts]


def _write(texts: Mapping[Path, str], parents: bool = False) -> None:
    """Write all of these files, or none where one is there already."""
    for file in texts:
        if os.path.lexists(file):  # also a link to nothing, through which it would be written
            raise UsageError(f"{file} already exists, and was left as it is: choose another name")
    for file, text in texts.items():
        try:
            if parents:
                file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}") from None
