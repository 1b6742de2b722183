"""The child's first lines: stamp the clock, find the package that this file belongs to, serve one request.

Started by path, so that it runs under any interpreter that has keras, numpy and a backend, whether or not
kerasbench is installed there.
"""

import time

STARTED_NS = time.monotonic_ns()

import importlib.util  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402


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
    adopt_package()
    from kerasbench.worker.session import serve

    serve(int(sys.argv[1]), STARTED_NS)
