"""A model that Keras has saved whole. The parent looks at its first bytes alone."""

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from kerasbench.protocol.requests import ModelConfig
from kerasbench.scenario import ModelError
from kerasbench.sources.source import OF_MODEL, ResolvedScenario, Source

LIVE_FOLDER = "kerasbench-scratch-model-"  # the beginning of its name; remove_abandoned of files.py knows it
LFS = b"version https://git-lfs.github.com/spec/"
HDF5, ZIP = b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"
METADATA, MAX_METADATA_BYTES = "metadata.json", 1 << 16
ARCHIVE_END, ARCHIVE_END_BYTES = b"PK\x05\x06", 22  # of a zip file, before its comment
MAX_COMMENT_BYTES = 1 << 16
MAX_DIRECTORY_BYTES = 1 << 20  # of a zip file; Keras writes three or four members
OLD_KERAS = "2."


@dataclass(frozen=True)
class SavedModel(Source):
    kind, noun, suffixes = "saved", "a saved model", (".keras", ".h5", ".hdf5")
    takes, limits_memory = OF_MODEL, True

    def require_usable(self) -> None:
        require_model(self.file)

    def resolve(self, config: ModelConfig) -> ResolvedScenario:
        from kerasbench.sources import loading  # late: the parent does not load it

        return loading.resolve(self.file, config)


@dataclass(frozen=True)
class LiveModel(SavedModel):
    """A model object, which is saved for as long as its run lasts."""

    kind = "live"

    @classmethod
    def recognises(cls, file: Path) -> bool:
        return file.parent.name.startswith(LIVE_FOLDER)


def require_model(file: Path) -> None:
    """Raise ModelError for what is no saved model of Keras 3 by its first bytes, or by the version in it."""
    try:
        with file.open("rb") as stream:
            start = stream.read(len(LFS))
        version = _keras_version(file) if start.startswith(ZIP) else ""
    except OSError:
        return  # who reads it for its hash says why it cannot be read
    if not start:
        raise ModelError(f"{file}: an empty file: save the model again, model.save('{file.name}')")
    is_hdf5_name = file.suffix != ".keras"
    if start == LFS:
        raise ModelError(f"{file}: a pointer of Git LFS, not the model itself: git lfs pull fetches it")
    if start.startswith(HDF5) and not is_hdf5_name:
        raise ModelError(f"{file}: an HDF5 file under another name: rename it to {file.with_suffix('.h5').name}")
    if start.startswith(ZIP) and is_hdf5_name:
        new = file.with_suffix(".keras").name
        raise ModelError(f"{file}: a .keras file under another name: rename it to {new}")
    if version.startswith(OLD_KERAS):
        old = file.with_suffix(".h5").name
        raise ModelError(
            f"{file}: saved by Keras {version}, and Keras 3 reads no .keras file of Keras 2. "
            f"Load it by Keras {version}, save it there as an HDF5 file, model.save('{old}'), and measure that file"
        )


def _keras_version(file: Path) -> str:
    """Return the version that a .keras file says it was saved by; empty where it does not say, or looks hostile."""
    import zipfile  # late: only saved models need it

    if _directory_bytes(file) > MAX_DIRECTORY_BYTES:
        return ""
    try:
        with zipfile.ZipFile(file) as archive, archive.open(METADATA) as member:
            fields = json.loads(member.read(MAX_METADATA_BYTES))
    except Exception:  # whatever a damaged or encrypted archive raises: the child says what is wrong
        return ""
    version = fields.get("keras_version") if isinstance(fields, dict) else None
    return version if isinstance(version, str) and version.isprintable() and len(version) <= 32 else ""


def _directory_bytes(file: Path) -> int:
    """Return how large a zip file's list of members is, which would be read whole."""
    with file.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - MAX_COMMENT_BYTES - ARCHIVE_END_BYTES))
        tail = stream.read()
    place = tail.rfind(ARCHIVE_END)
    if place < 0 or len(tail) < place + ARCHIVE_END_BYTES:
        return 0  # no zip file
    (length,) = struct.unpack_from("<I", tail, place + 12)
    return int(length)
