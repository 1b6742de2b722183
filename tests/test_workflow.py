"""What GitHub runs."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parents[1] / ".github" / "workflows").glob("*.yml"))
WITH_PIPEFAIL = "defaults:\n  run:\n    shell: bash"  # GitHub's own default is bash without pipefail


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_step_that_pipes_fails_where_its_first_command_does(file: Path) -> None:
    text = file.read_text()
    pipes = re.findall(r"run: .* \| .*", text)
    assert not pipes or WITH_PIPEFAIL in text, pipes
