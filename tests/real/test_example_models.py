"""Models of users are measured on every backend, or refused in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import whole_command
from tests.repository import printed

pytestmark = [pytest.mark.real, pytest.mark.weekly, pytest.mark.timeout(900)]
SOURCES = Path(__file__).with_name("example_models.py")
CUSTOM = ("--custom", str(SOURCES))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    printed(sys.executable, SOURCES, folder, KERAS_BACKEND="jax")
    return folder


@pytest.mark.parametrize(
    ("file", "options", "said", "code"),
    [
        ("pointnet.keras", (), "", 0),
        ("seq2seq.keras", ("--input", "encoder=12", "--input", "decoder=12"), "", 0),
        ("grn.keras", CUSTOM, "", 0),
        ("two_outputs.keras", CUSTOM, "", 0),
        ("recommender.keras", (*CUSTOM, "--batch-size", "64"), "", 0),
        ("vit.keras", CUSTOM, "", 0),
        ("vit.keras", (), "does not know its Patches", 2),
        ("strict.keras", CUSTOM, "got an unexpected keyword argument", 1),
        ("experts.py", (), "not supported", 1),
    ],
)
def test_a_model_has_an_answer_or_is_refused(
    models: Path, tmp_path: Path, file: str, options: tuple[str, ...], said: str, code: int
) -> None:
    command = whole_command.command(tmp_path, str(models / file), *options, "--quick", "--results", str(tmp_path / "r"))
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr  # 0: measured on each backend
    assert said in ended.stdout + ended.stderr
