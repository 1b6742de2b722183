"""Import one backend and say what it is and which devices it sees."""

import importlib
import sys
from contextlib import suppress
from importlib import metadata, util

from kerasbench import backends
from kerasbench.exchange.messages import FIND, Code, Failure, ProbeReport
from kerasbench.exchange.requests import ProbeRequest
from kerasbench.worker.failure import TrialFailure
from kerasbench.worker.isolation import refuse_other_frameworks


def probe(request: ProbeRequest) -> ProbeReport:
    """Return the backend's versions and devices.

    Raises:
        TrialFailure: the backend or keras is not installed. Whatever the backend's import raises passes through.
    """
    refuse_other_frameworks(request.backend)
    backend = backends.get(request.backend)
    for package in (backend.PACKAGE, "keras"):
        if util.find_spec(package) is None:
            cause = f"{package} is not installed in {sys.prefix}"
            remedy = f"pip install 'kerasbench[{request.backend}]'"
            raise TrialFailure(Failure(Code.UNAVAILABLE, cause, remedy, FIND))
    importlib.import_module(backend.PACKAGE)
    return ProbeReport(
        backend=request.backend,
        python=sys.version.split()[0],
        versions={"keras": _keras_version(), "numpy": metadata.version("numpy")} | backend.versions(),
        devices=backend.devices(),
    )


def _keras_version() -> str:
    """Return the version of the package that brought keras, without importing it."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version("keras")
    return metadata.version("keras-nightly")
