"""Run a benchmark's own code in a child that sees one backend on one device, as a trial does."""

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from typing import Any

from kerasbench import backends
from kerasbench.processes.variables import clean, for_scratch
from kerasbench.protocol.columns import Device

CPU = Device("cpu")


def installed() -> list[str]:
    """Return the backends of this interpreter: each is measured with it."""
    return [name for name in backends.names() if find_spec(backends.get(name).PACKAGE)]


def in_child(backend: str, script: str, *arguments: str, device: Device = CPU) -> Any:
    """Run ``script child BACKEND ARGUMENTS`` and return what its last line holds as JSON; raise if it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        variables = (
            clean()
            | for_scratch(scratch)
            | backends.get(backend).ALWAYS
            | backends.get(backend).environment(device, scratch)
        )
        command = [sys.executable, script, "child", backend, *arguments]
        ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{ended.stderr[-2000:]}")
    return json.loads(ended.stdout.splitlines()[-1])
