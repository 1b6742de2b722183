"""The child's first lines, started by path: an interpreter that has keras and a backend need not have kerasbench."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

STARTED_NS = time.monotonic_ns()
OLDEST_PYTHON = (3, 11)


def refuse_old_python(descriptor: int) -> None:
    """Say that this interpreter is too old, in words that it understands, and leave."""
    if sys.version_info < OLDEST_PYTHON:
        failure = {
            "code": "unavailable",
            "cause": "%s is Python %d.%d" % (sys.executable, *sys.version_info[:2]),  # noqa: UP031
            "remedy": "kerasbench needs an environment of Python %d.%d or newer" % OLDEST_PYTHON,  # noqa: UP031
            "phase": "import",
        }
        token = sys.stdin.buffer.readline().split(b" ")[0]  # what the parent knows its child's messages by
        os.write(descriptor, token + b" " + json.dumps({"failure": failure}).encode() + b"\n")
        sys.exit(1)


def adopt_package() -> None:
    """Make ``import kerasbench`` mean the package around this file."""
    package = Path(__file__).resolve().parent.parent
    spec = importlib.util.spec_from_file_location(
        "kerasbench", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kerasbench"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    refuse_old_python(int(sys.argv[1]))
    adopt_package()
    from kerasbench.worker.serve import serve

    serve(int(sys.argv[1]), STARTED_NS)
