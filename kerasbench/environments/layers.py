"""Environments for one comparison: a few packages on top of an interpreter's own, whose other packages they share.

What differs between two of them is what was asked for, and what that needs in another version than is shared. It takes
seconds to make one. They are kept in the user's cache folder, and made again where what they share is no longer the
same. One from a path or an address is made again each time, because that may have changed.
"""

import hashlib
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import platformdirs
from filelock import FileLock

from kerasbench.environments import interpreters, requirements, venvs
from kerasbench.errors import EnvironmentFailed

SHARED = "kerasbench-shared.pth"  # names the folders of packages that are seen behind the environment's own
STATE = "kerasbench-shared.txt"  # what was shared when the environment was made
LOCK = ".lock"
UNFINISHED = ".unfinished-"  # begins the name of a folder in which an environment is being made
BELOW = (
    "import site, sys; print('\\n'.join([' '.join(sys.version.split()), *site.getsitepackages(), "
    "*([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]))"
)


def folder() -> Path:
    """Return where they are kept."""
    return Path(platformdirs.user_cache_dir("kerasbench")) / "environments"


def built(python: str, wanted: Sequence[str], say: Callable[[str], None]) -> str:
    """Return the interpreter of an environment with these requirements on top of what another interpreter has.

    It is made where there is none yet, where the other interpreter or its packages are no longer those that it was made
    on, and where a requirement is a path or an address; ``say`` hears so.

    Raises:
        EnvironmentFailed: it could not be made.
    """
    place = folder() / _name(python, wanted)
    interpreter = interpreters.inside(place)
    words = " ".join(wanted)
    version, *folders = _below(python)
    state = "\n".join([version, *folders, *_distributions(folders)])
    if _state(place) == state and interpreters.runs(str(interpreter)) and not any(_may_change(one) for one in wanted):
        say(f"{words}: made earlier, in {place}")
        return str(interpreter)
    say(f"{words}: making an environment on top of {python}, in {place}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # The machine is this run's, and the home may be that of other machines too.
        with FileLock(place.parent / LOCK), tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=place.parent) as scratch:
            for left in place.parent.glob(f"{UNFINISHED}*"):  # by a run that was killed
                if str(left) != scratch:
                    shutil.rmtree(left, ignore_errors=True)
            _make(Path(scratch) / place.name, python, folders, wanted)
            (Path(scratch) / place.name / STATE).write_text(state, "utf-8")
            shutil.rmtree(place, ignore_errors=True)
            (Path(scratch) / place.name).rename(place)
    except OSError as error:
        raise EnvironmentFailed(f"{place}: cannot be made: {error.strerror}") from None
    return str(interpreter)


def _may_change(requirement: str) -> bool:
    """Tell whether the same words may be other code tomorrow: a path, or an address such as a branch's."""
    return requirements.is_path(requirement) or "://" in requirement


def _below(python: str) -> list[str]:
    """Return an interpreter's version, and then the folders of its packages."""
    said = venvs.run([python, "-c", BELOW], f"{python} did not tell where its packages are", quiet=True)
    return [line for line in said.splitlines() if line]


def _distributions(folders: Sequence[str]) -> list[str]:
    """Return the packages in these folders, each with its version."""
    return sorted(one.name for folder in folders for one in Path(folder).glob("*.*-info"))


def _state(place: Path) -> str | None:
    """Return what was shared when an environment was made; None where it does not tell, or is not there."""
    try:
        return (place / STATE).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _make(place: Path, python: str, folders: Sequence[str], wanted: Sequence[str]) -> None:
    venvs.run([python, "-m", "venv", str(place)], f"{place}: no virtual environment could be made")
    own = str(interpreters.inside(place))
    (packages,) = place.glob("lib/python3*/site-packages")
    # By addsitedir, because a folder that is only named would not have its own .pth files read.
    lines = [f"import site; site.addsitedir({one!r})" for one in folders]
    (packages / SHARED).write_text("\n".join(lines) + "\n", "utf-8")
    failure = f"{' '.join(wanted)}: pip did not install it"
    # First what was asked for, though the same version may be shared: that may be another one tomorrow. Then what it
    # needs and is not shared; a path by its package's name, or it would be installed again.
    venvs.run([own, "-m", "pip", "install", "--ignore-installed", "--no-deps", *wanted], failure)
    named = [requirements.package(one) if requirements.is_path(one) else one for one in wanted]
    if needing := [one for one in named if one]:
        venvs.run([own, "-m", "pip", "install", *needing], failure)


def _name(python: str, wanted: Sequence[str]) -> str:
    """Return the name of an environment's folder: readable, and another for each interpreter and set of packages.

    And for each machine: several may share a home, and one replaces none that another measures with.
    """
    told = [str(Path(python).absolute()), platform.machine(), platform.node(), *wanted]
    digest = hashlib.sha256("\n".join(told).encode()).hexdigest()[:10]
    return f"{requirements.label(wanted)[:60]}-{digest}"
