"""What is taken out of a run before others see it, and that its numbers stay."""

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.analysis.table import observations
from kerasbench.contributing.public import STAYS, pseudonym, public, require_public
from kerasbench.errors import ResultsError
from kerasbench.modes import versus
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Batch, Compiler, Parity, Published
from kerasbench.protocol.messages import Code, Failure
from kerasbench.protocol.requests import Input, ModelConfig
from kerasbench.results.run import RemoteOrigin, Run
from kerasbench.results.store import as_line, read
from tests import hostile, made
from tests.catalogue import RUNS

ERIKA, HOME = "erika", "/home/erika/"
NUMBERS = ("value", "low", "high", "ratio", "ratio_low", "ratio_high", "trials")
UUID = "GPU-b13e5ece-bbd0-86b0-9274-50566234d477"


def numbers(run: Run) -> list[list[float]]:
    rows = ([getattr(row, name) or 0.0 for name in NUMBERS] for row in observations([summarize(run)]))
    return sorted(rows)


@pytest.mark.parametrize("name", RUNS)
def test_the_numbers_stay_and_what_is_public_is_left_as_it_is(name: str) -> None:
    for run in RUNS[name]():
        cleaned = public(run)
        content = as_line(cleaned.record)
        again = read(content, Path("run.json"))
        assert again == cleaned.record
        assert public(again).taken == public(again, with_scenarios=True).taken == []
        assert as_line(public(again, with_scenarios=True).record) == content
        for after, before in zip(numbers(again), numbers(run), strict=True):
            assert after == pytest.approx(before, rel=1e-9)


def at_home(part: Any) -> Any:
    """Return the same with a folder's name in every text that is not said to stay, and in what is made up of texts."""
    if isinstance(part, list):
        return [at_home(member) for member in part]
    if not dataclasses.is_dataclass(part) or isinstance(part, type):
        return part
    changed: dict[str, Any] = {}
    for declared in dataclasses.fields(part):
        value, is_text = getattr(part, declared.name), "str" in str(declared.type)
        if not is_text or isinstance(value, StrEnum) or f"{type(part).__name__}.{declared.name}" in STAYS.split():
            changed[declared.name] = at_home(value)
        elif isinstance(value, dict) and any(map(dataclasses.is_dataclass, value.values())):
            changed[declared.name] = {stage: at_home(member) for stage, member in value.items()}
        elif isinstance(value, dict):
            changed[declared.name] = {HOME: HOME}
        else:
            changed[declared.name] = [HOME] if isinstance(value, list) else HOME
    return dataclasses.replace(part, **changed)


def personal() -> Run:
    """A run in which all that its user can name says who that is."""
    first, *others = hostile.record().trials
    measured = made.changed(
        made.known(first.measurement),
        batch=Batch("['erika'] float32[32, 4]", "int32[32]"),
        parity=Parity([2.0], ["erika_dropout"], sensitive=["Erika", "Embedding"]),
        published=Published(9, [4, 5], {"loss": [1.0], "erika_loss": [1.0]}, [7]),
        resolved={"versions": {"keras": "3.15.0+erika.1", "torch": "2.13.0+cu130"}},
        fallbacks={"erika::op": 2, "aten::x": 1},
        compiler=Compiler(breaks={f"{HOME}net.py": 2, "print": 1}, eager=f"{HOME}net.py"),
    )
    names = {"scenario": "erika_net", "workload": "erikas"}
    options = Options(environment="erika-fork", env=f"XLA_FLAGS={HOME} OMP_NUM_THREADS=1")
    failed = Failure(Code.ERROR, f"FileNotFoundError: {HOME}", HOME, "build", HOME)
    mine = [
        made.changed(first, **names, options=options, measurement=measured),
        made.changed(others[-1], **names, options=options, failure=failed),
    ]
    run = made.record(*mine, *others)
    described = run.scenarios[0].description
    workload = dataclasses.replace(described.workloads[0], name="erikas", data="Erika's pictures")
    described = made.changed(described, title="Erika", text="Erika", source="Erika", kind="erika", workloads=[workload])
    asked = versus.MODE.configured(run.config, versus.VersusConfig("erika-fork", ["keras-3.15.0"], 0.03))
    config = made.changed(
        asked,
        scenarios=[f"{HOME}erika_net.py/erikas", "iris_*", "erika*"],
        environments=["torch@erika-fork", "torch@keras-3.15.0"],
        options=[options],
        backends=["torch", ERIKA],
        devices=["cpu", ERIKA],
        suite=ERIKA,
        own=asked.own | {ERIKA: ERIKA},
        model_config=ModelConfig([Input(ERIKA, [4])], custom=HOME, rows=HOME),
    )
    home: Run = at_home(run)
    return made.changed(
        home,
        config=at_home(config),
        scenarios=[
            made.changed(at_home(run.scenarios[0]), description=described, suite=""),
            made.changed(run.scenarios[1], suite="published"),
        ],
        machine={"identifier": "erikas-laptop", "system": "Linux 6.1.0-17-erika", "cards": [UUID]},
        carried=RemoteOrigin("erika@m1", HOME),
        trials=[at_home(trial) for trial in run.trials],
    )


def test_nothing_is_left_of_who_and_where_but_what_names_scenarios_if_it_is_asked_for() -> None:
    run = personal()
    assert as_line(run).lower().count(b"erika") > 40
    cleaned = public(run)
    assert b"erika" not in as_line(cleaned.record).lower() and UUID[4:].encode() not in as_line(cleaned.record)
    ((name, alias),) = cleaned.renamed.items()
    assert name == "erika_net" and cleaned.record.config.scenarios == ["iris_*", alias]
    own = cleaned.record.config.own
    assert own == {"base": "env-1", "heads": ["keras-3.15.0"], "threshold": 0.03}
    (options,) = cleaned.record.config.options
    assert (options.environment, options["env"]) == ("env-1", "VARIABLE=1")
    trial = cleaned.record.trials[0]
    assert made.known(trial.measurement).resolved.versions == {"keras": "3.15.0", "torch": "2.13.0+cu130"}
    assert made.known(made.known(trial.measurement).compiler).breaks == {"left out of public results": 3}
    assert {"config.keep_env", "machine.cards", "trials.failure.detail", "commit"} <= set(cleaned.taken)

    kept = public(run, with_scenarios=True)
    text = as_line(kept.record).decode()
    assert kept.renamed == {} and "erika_net" in text and "Erika's pictures" in text
    assert not any(word in text for word in (HOME, "erikas-laptop", "erika@m1", "-erika", "erika-fork"))


@pytest.mark.parametrize(
    ("identifier", "cards", "is_known"),
    [("5bce98f73f3e", [], True), ("", [UUID], True), ("erikas-laptop", [], False), ("", [], False)],
)
def test_a_machine_is_known_again_by_what_nobody_can_guess(identifier: str, cards: list[str], is_known: bool) -> None:
    machine = dataclasses.replace(made.MACHINE, identifier=identifier, cards=cards)
    name = pseudonym(machine)
    assert bool(name) is is_known
    assert not any(private and private in name for private in (identifier, *cards))
    assert pseudonym(dataclasses.replace(made.MACHINE, identifier=name)) == name
    other = dataclasses.replace(
        machine, identifier=machine.identifier and "0" * 12, cards=[f"{card}0" for card in cards]
    )
    assert not is_known or pseudonym(other) not in ("", name)


@pytest.mark.parametrize(
    ("env", "shown"),
    [
        ("OMP_WAIT_POLICY=active", "OMP_WAIT_POLICY=active"),
        ("XLA_FLAGS=--xla_cpu_use_onednn=false TF_ENABLE=1", "XLA_FLAGS=--xla_cpu_use_onednn=false TF_ENABLE=1"),
        ("XLA_FLAGS=--xla_dump_to=/home/erika", "VARIABLE=1"),
        ("ERIKA=1", "VARIABLE=1"),
    ],
)
def test_a_variable_stays_if_it_is_a_framework_s_and_names_no_folder(env: str, shown: str) -> None:
    (trial,) = public(made.record(made.trial(options=Options(env=env)))).record.trials
    assert trial.options["env"] == shown


def test_names_that_replace_others_are_those_of_nothing_else() -> None:
    labels = ("env-1", "mine", "ours")
    run = public(made.record(*(made.trial(options=Options(environment=label)) for label in labels))).record
    assert [trial.options.environment for trial in run.trials] == ["env-1", "env-2", "env-3"]


def test_a_scenario_is_public_by_its_suite_and_its_name() -> None:
    def named(name: str, suite: str | None, file_hash: str = "1" * 64, typed: str = "") -> Mapping[str, str]:
        run = made.record(made.trial(name=name))
        facts = dataclasses.replace(run.scenarios[0], suite=suite, file_hash=file_hash)
        return public(made.changed(run, scenarios=[facts], config={"scenarios": [typed]})).renamed

    assert named("resnet8", "tiny") == {}
    assert all(named(name, suite) for name, suite in (("resnet8", ""), ("resnet8", None), ("erika", "tiny")))
    assert named("ResNet50", "", "1" * 64, "keras.applications.ResNet50")  # a hash of something else


def test_a_model_of_keras_applications_is_proved_by_its_hash() -> None:
    run = made.record(made.trial(name="ResNet50"))
    word = "keras.applications.ResNet50"
    facts = dataclasses.replace(run.scenarios[0], suite="", file_hash=sha256(word.encode()).hexdigest())
    cleaned = public(made.changed(run, scenarios=[facts], config={"scenarios": [word]}))
    assert (cleaned.renamed, cleaned.record.config.scenarios) == ({}, [word])


def test_data_that_were_changed_by_hand_are_refused_by_what_they_have() -> None:
    content = as_line(public(hostile.record()).record)
    require_public(content, "run.json")
    for before, after, said in (
        (b'"machine":{', b'"machine":{"cards":["GPU-1"],', "machine.cards"),
        (b'"machine":{', b'"machine":{"note":"import os",', "holds more than a result"),
        (b'"config":{', b'"config":{"keep_env":{"HOME":"/home/erika"},', "config.keep_env"),
        (b'"stopped_because":"the test is over"', b'"stopped_because":"interrupted"', "was interrupted"),
    ):
        edited = content.replace(before, after, 1)
        assert edited != content
        with pytest.raises(ResultsError, match=f"run.json: .*{said}"):
            require_public(edited, "run.json")
