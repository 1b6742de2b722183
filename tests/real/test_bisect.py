"""The search for a slow version among six copies of Keras, some with a sleep in each training step on torch."""

import base64
import hashlib
import os
import subprocess
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests import whole_command

pytestmark = [pytest.mark.real, pytest.mark.weekly, pytest.mark.timeout(1800)]

TRAINER = "keras/src/backend/torch/trainer.py"
STEP = b"    def train_step(self, data):\n"
SLEEP = b"        __import__('time').sleep(0.02)\n"


def copied(folder: Path, number: int, is_slow: bool) -> str:
    """Make a wheel of the Keras that is installed here, under a version of its own; return its path."""
    keras = distribution("keras")
    version = f"{keras.version}+v{number}"
    wheel = folder / f"keras-{version}-py3-none-any.whl"
    lines = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in keras.files or []:
            name, content = str(file), Path(str(file.locate())).read_bytes()
            if file.name in ("METADATA", "WHEEL"):
                name = f"keras-{version}.dist-info/{file.name}"
                content = content.replace(f"Version: {keras.version}\n".encode(), f"Version: {version}\n".encode())
            elif not name.startswith("keras/") or name.endswith(".pyc"):
                continue
            elif name == TRAINER and is_slow:
                assert content.count(STEP) == 1
                content = content.replace(STEP, STEP + SLEEP)
            archive.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(content)}")
        record = f"keras-{version}.dist-info/RECORD"
        archive.writestr(record, "\n".join([*lines, f"{record},,", ""]))
    return str(wheel)


def test_it_finds_the_first_slow_copy_in_four_probes(tmp_path: Path) -> None:
    versions = [copied(tmp_path, number, is_slow=number >= 4) for number in range(6)]
    results = tmp_path / "results"
    # One thread: two processes of torch that are the same can differ by more than half in how their threads get on.
    torch = ["--backend", "torch", "--device", "cpu", "--threads", "1"]
    words = ["--scenario", "iris_mlp", *torch, "--quick", "--results", str(results)]
    command = whole_command.command(tmp_path / "held", "bisect", *versions, *words)
    variables = os.environ | {"UV_OFFLINE": "1"}
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    said, (before, slow, bad) = ended.stdout.replace("\\", ""), (Path(versions[number]).name for number in (3, 4, 5))
    print(said)
    if "disturbed" in said:  # others used the machine: then it stops, and has told no version that is wrong
        assert ended.returncode == 1 and "is the first slow version" not in said
        pytest.skip("other processes disturbed a probe, so nothing was found: run it on a quiet machine")
    assert ended.returncode == 0, ended.stderr
    assert f"{slow} is the first slow version" in said and before in said and bad in said
    assert len(list(results.glob("*.json"))) <= 4
