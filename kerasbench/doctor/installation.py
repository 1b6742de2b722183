"""Rules about what is installed: interpreters, backends, keras, wheels."""

from collections.abc import Iterator

from kerasbench import backends
from kerasbench.doctor.facts import BackendFacts, Facts
from kerasbench.doctor.finding import Finding, Severity, create, pip
from kerasbench.environments.wheels import KERAS, NEWEST_PYTHON, release
from kerasbench.exchange.messages import FIND, Failure, Inventory

OLDEST_KERAS = (3, 12)  # what KERAS asks for


def interpreter(facts: Facts) -> Iterator[Finding]:
    """Check that each interpreter answers, and is neither too old nor too new."""
    for one in facts.backends:
        if isinstance(one.inventory, Failure):
            yield Finding(Severity.ERROR, one.name, one.inventory.cause, one.inventory.remedy)
        elif _too_new(one) and not one.installed:
            cause = f"Python {one.inventory.python} is newer than the frameworks' wheels"
            newest = ".".join(map(str, NEWEST_PYTHON))
            yield Finding(Severity.ERROR, one.name, cause, create(one.name, "--interpreter", f"python{newest}"), True)


def missing(facts: Facts) -> Iterator[Finding]:
    """Name the backends that are not installed, an error where an interpreter was named for one.

    Not where there are no wheels for that interpreter: other rules say so.
    """
    for one in facts.backends:
        intel_mac = facts.machine.system == "darwin" and not facts.machine.apple_silicon
        wheels = not (intel_mac or facts.translated(one) or _too_new(one))
        if isinstance(one.inventory, Inventory) and not one.installed and wheels:
            wanted = Severity.ERROR if one.source else Severity.NOTE
            cause = f"{one.name} is not installed in {one.inventory.prefix}"
            yield Finding(wanted, one.name, cause, pip(one.interpreter, "install", *_needed(facts, one)), True)


def keras(facts: Facts) -> Iterator[Finding]:
    """Check that keras is there where a backend is, and is Keras 3 of a version that kerasbench knows."""
    for one in facts.backends:
        version = one.packages.get("keras")
        if one.installed and (version is None or release(version) < OLDEST_KERAS):
            cause = f"keras {version} is too old" if version else f"keras is not installed beside {one.name}"
            yield Finding(Severity.ERROR, one.name, cause, pip(one.interpreter, "install", *KERAS), True)


def keras_differs(facts: Facts) -> Iterator[Finding]:
    """Check that all backends have one keras: its versions differ in what a step costs."""
    versions = {one.name: one.packages["keras"] for one in facts.backends if one.installed and "keras" in one.packages}
    newest = max(versions.values(), key=release, default="")
    for one in facts.backends:
        if versions.get(one.name, newest) != newest:
            cause = (
                f"keras {versions[one.name]} here and {newest} elsewhere: columns would differ by more than backends"
            )
            yield Finding(Severity.WARNING, one.name, cause, pip(one.interpreter, "install", f"keras=={newest}"), True)


def wheel_of_another_python(facts: Facts) -> Iterator[Finding]:
    """Check that the backend's wheel was built for this Python: an environment may have been moved to a newer one."""
    for one in facts.backends:
        if not isinstance(one.inventory, Inventory) or not one.inventory.tags:
            continue
        own = f"cp{one.python[0]}{one.python[1]}"
        if not any(_fits(tag, own) for tag in one.inventory.tags):
            package = backends.get(one.name).PACKAGE
            cause = f"{package} was built for {one.inventory.tags[0]}, this Python is {one.inventory.python}"
            yield Finding(Severity.ERROR, one.name, cause, _again(facts, one), True)


def _fits(tag: str, own: str) -> bool:
    interpreter, abi, _ = [*tag.split("-"), "", ""][:3]
    return any(name == own or name.startswith("py3") for name in interpreter.split(".")) or abi == "abi3"


def does_not_load(facts: Facts, one: BackendFacts) -> Iterator[Finding]:
    """Say that an installed backend does not load, where no other rule knows why."""
    if one.installed and isinstance(one.probe, Failure) and one.probe.phase != FIND:
        last = one.probe.detail.strip().splitlines()[-1:]
        cause = f"{one.name} does not load: {one.probe.cause}" + "".join(
            f" ({line})" for line in last if line not in one.probe.cause
        )
        yield Finding(Severity.ERROR, one.name, cause, _again(facts, one), True)


def _too_new(one: BackendFacts) -> bool:
    return one.python[:2] > NEWEST_PYTHON


def _needed(facts: Facts, one: BackendFacts) -> list[str]:
    return [*KERAS, *backends.get(one.name).requirements(facts.target(one))]


def _again(facts: Facts, one: BackendFacts) -> str:
    """Return the command that installs it again, within bounds: the newest TensorFlow would break tensorflow-metal."""
    return pip(one.interpreter, "install", "--force-reinstall", *_needed(facts, one))


RULES = (interpreter, missing, keras, keras_differs, wheel_of_another_python)
