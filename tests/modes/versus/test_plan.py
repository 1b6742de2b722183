import dataclasses

import pytest

from kerasbench import events
from kerasbench.environments import sides
from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import MachineBusy, UsageError
from kerasbench.host.lock import machine_lock
from kerasbench.modes import registry, versus
from kerasbench.modes.versus import VersusConfig, VersusSettings
from kerasbench.modes.versus.plan import VersusPlanner, config_of
from kerasbench.protocol.columns import Environment, Options
from kerasbench.results.run import RunConfig, exactly
from kerasbench.results.store import Store
from tests import made
from tests.scripted import Events, FakeWorker, noisy, run


def sides_of(asked: VersusSettings) -> tuple[RunConfig, Interpreters]:
    return registry.planner(config_of(asked)).with_interpreters(asked, Interpreters(), Events())


def test_all_backends_are_compared_unless_the_words_name_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "overlay", lambda *_: "/bin/sh")

    def compared(settings: VersusSettings) -> list[str]:
        config, chosen = sides_of(settings)
        assert all(chosen.of(Environment.parse(environment)) == "/bin/sh" for environment in config.environments)
        base, head = (Environment.parse(environment).label for environment in config.environments[:2])
        assert (config.control, versus.MODE.settings_of(config)) == (True, VersusConfig(base, [head], 0.05))
        return config.environments

    keras = VersusSettings(base="keras==3.14.*", head=["keras==3.15.*"], threshold="5%")
    assert [name.partition("@")[0] for name in compared(keras)[::2]] == ["jax", "tensorflow", "torch"]
    assert compared(made.changed(keras, backends=["torch"])) == ["torch@keras-3.14", "torch@keras-3.15"]
    jax = VersusSettings(base="jax==0.9", head=["jax==0.10"], threshold="5")
    assert compared(jax) == ["jax@jax-0.9", "jax@jax-0.10"]


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"head": ["keras==3.15", "gone"]}, "'gone' is neither a label"),
        ({"scenarios": ["no_such"]}, "no_such"),
        ({"scenarios": ["mnist_dense"], "batch_size": 8}, "a scenario file contains all"),
        ({"threshold": "1%"}, "--threshold takes 3 % or more, not 1.00 %"),
    ],
)
def test_what_versus_refuses(said: dict[str, object], complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "overlay", lambda *_: pytest.fail("it was made"))
    settings = VersusSettings(base="keras==3.14", head=["keras==3.15"])
    with machine_lock():
        with pytest.raises(UsageError, match=complaint):
            sides_of(made.changed(settings, **said))
        with pytest.raises(MachineBusy, match="another kerasbench run is measuring"):
            sides_of(settings)


@pytest.mark.parametrize(("failing", "had"), [(0, 1), (1, 3), (2, 3)])
def test_the_heads_that_are_left_are_measured_on_beside_the_base(store: Store, failing: int, had: int) -> None:
    versions = [Options(environment=label) for label in ("old", "new", "newest")]
    worker = FakeWorker(torch=noisy(1, 3, 2))
    worker.fails = lambda request: made.FAILURE if request.options == versions[failing] else None
    cases = [dataclasses.replace(made.case(options=options), paired=True) for options in versions]
    planner = VersusPlanner(RunConfig(), VersusConfig("old", ["new", "newest"], 0.03))
    assert run(store, worker, *cases, effort=exactly(3), planner=planner).rounds_completed == had


@pytest.mark.parametrize(("failing", "had"), [(0, 1), (1, 1), (2, 3)])
def test_versions_are_not_measured_on_when_one_of_them_has_failed(store: Store, failing: int, had: int) -> None:
    versions = [Options(environment="old"), Options(environment="new"), Options(environment="old", control=True)]
    worker, heard = FakeWorker(torch=noisy(1, 3, 2)), Events()
    worker.fails = lambda request: made.FAILURE if request.options == versions[failing] else None
    cases = [dataclasses.replace(made.case(options=options), paired=True) for options in versions]
    planner = VersusPlanner(RunConfig(), VersusConfig("old", ["new"], 0.03))
    record = run(store, worker, *cases, effort=exactly(3), events=heard, planner=planner)
    assert len(worker.blocks) == record.rounds_completed == had
    if had == 1:
        assert record.stopped_because == "base or head failed, so nothing is left to compare"
        (ended,) = heard.of(events.RowEnded)
        assert (ended.cases[0].row_label, ended.reason) == ("dense torch cpu", record.stopped_because)
