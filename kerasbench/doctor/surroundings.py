"""Rules about what surrounds a measurement: power, heat, quotas, variables of the shell, keras.json."""

from collections.abc import Iterator

from kerasbench import backends
from kerasbench.children.variables import KEEP, own_names
from kerasbench.doctor.facts import Facts
from kerasbench.doctor.finding import Finding, Severity
from kerasbench.doctor.nvidia import VISIBLE
from kerasbench.quiet import signals
from kerasbench.quiet.warnings import WORDS, Warned

DEFAULTS = {"floatx": "float32", "epsilon": 1e-07, "image_data_format": "channels_last", "nnx_enabled": False}


def restless(facts: Facts) -> Iterator[Finding]:
    """Pass on what speaks against measuring on this machine now: the signals that a run would record."""
    for signal in signals.of_machine(facts.machine.state, facts.machine.fingerprint.cores):
        words = WORDS[Warned(signal.name)]
        yield Finding(Severity.WARNING, "", signal.reason, words.remedy, words.is_command)
    level = facts.machine.state.thermal_level
    if level is not None and level >= signals.THERMAL_WARN:
        yield Finding(Severity.WARNING, "", f"macOS reports thermal pressure, level {level}", WORDS[Warned.HEAT].remedy)


def variables(facts: Facts) -> Iterator[Finding]:
    """Name the variables that are set here and do not reach a trial, because they change what is measured."""
    heeded = {VISIBLE, *(name for backend in backends.names() for name in backends.get(backend).HEEDED)}
    told = [name for name in facts.variables if name not in heeded]
    if told:
        own = own_names()
        keepable = ",".join(name for name in told if name not in own)
        cause = f"set in this shell, and kept from trials because they change figures: {', '.join(told)}"
        remedy = f"leave it so, or measure with {KEEP} {keepable}" if keepable else ""
        yield Finding(Severity.NOTE, "", cause, remedy)


def keras_json(facts: Facts) -> Iterator[Finding]:
    """Notice a keras.json that changes defaults: kerasbench's children do not read it, other programs do."""
    changed = [
        f"{name}={facts.keras_json[name]}"
        for name in DEFAULTS
        if facts.keras_json.get(name, DEFAULTS[name]) != DEFAULTS[name]
    ]
    if changed:
        cause = f"your keras.json sets {', '.join(changed)}: trials do not read it, your other programs do"
        yield Finding(Severity.NOTE, "", cause)


RULES = (restless, variables, keras_json)
