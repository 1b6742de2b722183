"""Which NVIDIA cards CUDA shows to this very process: asked of the driver itself, so the same for every framework."""

import ctypes
import uuid
from typing import Any

LIBRARY = "libcuda.so.1"  # of the driver; a framework that uses CUDA has loaded it
UUID_BYTES = 16
SUCCESS = 0


class _Refused(Exception):
    """The driver does not tell."""


def shown() -> list[str]:
    """Return the UUIDs in the order of CUDA's numbers, without the ``GPU-`` or ``MIG-`` that NVML puts before them.

    A slice of a card (MIG) has one of its own. Empty where the driver is not there, or does not tell.
    """
    try:
        driver = ctypes.CDLL(LIBRARY)
        _ask(driver.cuInit, 0)
        count = ctypes.c_int()
        _ask(driver.cuDeviceGetCount, ctypes.byref(count))
        found = [_uuid(driver, number) for number in range(count.value)]
    except (OSError, AttributeError, _Refused):  # AttributeError: the driver is older than the function
        return []
    return found if all(found) else []


def _uuid(driver: Any, number: int) -> str:
    """Return one card's; empty for nothing but zeros, which is no answer."""
    device, told = ctypes.c_int(), (ctypes.c_ubyte * UUID_BYTES)()
    _ask(driver.cuDeviceGet, ctypes.byref(device), number)
    _ask(driver.cuDeviceGetUuid_v2, ctypes.byref(told), device)  # the first version is blind to slices
    return str(uuid.UUID(bytes=bytes(told))) if any(told) else ""


def _ask(function: Any, *arguments: Any) -> None:
    if function(*arguments) != SUCCESS:
        raise _Refused
