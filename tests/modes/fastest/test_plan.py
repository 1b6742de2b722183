import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench.environments.interpreters import Interpreters
from kerasbench.errors import UsageError
from kerasbench.modes import fastest, registry
from kerasbench.modes.fastest import FastestSettings, RaceConfig, plan
from kerasbench.modes.fastest.plan import EFFORT, FastestPlanner, candidates, config_of, default_backend
from kerasbench.plan import cases
from kerasbench.plan.cases import Case, Plan
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.columns import Device, Options
from kerasbench.protocol.measurement import Measurement, Slice
from kerasbench.protocol.messages import Code, ProbeReport
from kerasbench.protocol.stages import BATCH, EPOCH, PREDICTIONS, TRAIN
from kerasbench.results.run import Effort, Run, RunConfig
from kerasbench.results.store import Store
from kerasbench.runners.feeders import FEEDERS
from kerasbench.runs.rows import Decision, RowProgress
from kerasbench.runs.schedule import NextBlock
from kerasbench.variants import malloc
from kerasbench.variants.feed import CACHED
from tests import made
from tests.scripted import CASES, THREE, Events, FakeWorker, run

CUDA = Device("cuda", 0, "NVIDIA H200")
TORCH = ProbeReport("torch", "3.11.7", {"torch": "2.13.0"}, [made.CPU, CUDA])
JAX = ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [made.CPU])
SEES = {"torch": TORCH, "jax": JAX}


def test_a_race_tries_what_changes_no_result_unless_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    asked = config_of(FastestSettings(["dense"], budget="10m"))
    tries = ["backend", "device", "jit", "layout", "malloc", "steps-per-execution"]
    tries += ["threads", "unrolled-steps", "feed", "workers"]
    assert (fastest.MODE.settings_of(asked), asked.backends) == (RaceConfig(tries=tries, baseline="jax"), [])
    assert asked.effort == dataclasses.replace(EFFORT, budget_s=600, plan=EFFORT.plan.leaving_out(*PREDICTIONS))
    named = config_of(FastestSettings(["dense"], tries=["jit"], margin="10%", purpose="predict", rounds=6))
    assert fastest.MODE.settings_of(named) == RaceConfig("predict", 0.1, ["jit"], "jax")
    assert (named.backends, named.effort.max_rounds) == (["jax"], 6)
    assert named.effort.plan.stages == ("train", *PREDICTIONS)


@pytest.mark.parametrize(
    ("variables", "configured", "backend"),
    [
        ({"KERAS_BACKEND": "torch"}, '{"backend": "jax"}', "torch"),
        ({}, '{"backend": "jax"}', "jax"),
        ({}, "[]", "tensorflow"),
        ({}, "{", "tensorflow"),
        ({"KERAS_BACKEND": "openvino"}, "{}", "tensorflow"),
    ],
)
def test_the_backend_of_keras_itself(tmp_path: Path, variables: dict[str, str], configured: str, backend: str) -> None:
    (tmp_path / "keras.json").write_text(configured)
    assert default_backend({"KERAS_HOME": str(tmp_path)} | variables) == backend


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (FastestSettings(tries=["batch-size"], purpose="predict"), "--try batch-size is for training"),
        (FastestSettings(tries=["steps-per-execution"], purpose="predict"), "steps-per-execution is for training"),
        (FastestSettings(purpose="build"), "purpose 'build'"),
        (FastestSettings(tries=["batch"]), "setting to --try 'batch'"),
        (FastestSettings(margin="0%"), "--within must be above 0%, for example 5%; you gave 0%."),
        (FastestSettings(rounds=13), "at most 12 rounds"),
        (
            FastestSettings(tries=["runtime"]),
            "--runtime: exported models only predict; add --for predict or predict-one",
        ),
        (
            FastestSettings(purpose="predict", choices={"runtime": ["pt2"]}, backends=["jax"]),
            "pt2 is exported from torch, which",
        ),
    ],
)
def test_what_a_race_refuses(said: FastestSettings, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        config_of(said)


@pytest.mark.parametrize(
    ("said", "raced"),
    [
        (FastestSettings(purpose="predict", tries=["runtime"]), ["jax cpu", "jax cpu runtime=jax_export"]),
        (
            FastestSettings(purpose="predict-one", tries=["backend"], choices={"runtime": ["keras", "pt2"]}),
            ["torch cpu", "torch cpu runtime=pt2", "jax cpu"],
        ),
        (FastestSettings(purpose="predict", tries=["backend"]), ["torch cpu", "jax cpu"]),
    ],
)
def test_exported_models_race_where_they_are_asked_for(
    said: FastestSettings, raced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    config = config_of(dataclasses.replace(said, devices=["cpu"]))
    probes = made.by_environment(
        {name: report for name, report in SEES.items() if not config.backends or name in config.backends}
    )
    planned = cases.make(registry.planner(config), [made.selected()], probes, made.MACHINE)
    assert [case.column.label for case in planned.cases] == raced
    planned = registry.planner(config).prepare(planned, Interpreters(), Events())
    says = " ".join(planned.announcements or ())
    assert ("1 exported model among" in says and " longer" in says) is ("runtime" in "".join(raced))


def make(asked: RaceConfig, *chosen: Selected, devices: Sequence[str] = ()) -> Plan:
    probes = made.by_environment({"torch": TORCH, "jax": JAX} if len(chosen) == 1 else {"jax": JAX})
    config = fastest.MODE.configured(RunConfig(devices=[*devices]), asked)
    return cases.make(registry.planner(config), chosen, probes, made.MACHINE)


EIGHT, THIRTY_TWO = "cpu steps-per-execution=8", "cpu steps-per-execution=32"
EXECUTIONS = RaceConfig(tries=["steps-per-execution"])
BATCHES = RaceConfig(tries=["batch-size"])
THREADS_TOO = RaceConfig(tries=["threads", "steps-per-execution", "jit"])
BATCHES_TOO = RaceConfig(tries=["steps-per-execution", "batch-size"])
DEVICES_TOO = RaceConfig(tries=["device", "dtype"])


def test_who_is_far_behind_leaves_the_block_but_keras_without_settings_stays() -> None:
    asked = RaceConfig(tries=["backend", "jit"], baseline="torch")
    chosen = Selected(made.entry(), made.workload(steps=1000))
    settings = [("torch", Options()), ("jax", Options()), ("jax", Options(jit=True))]
    racing = [Case(chosen, backend, made.CPU, options) for backend, options in settings]

    def leaving(stage: str, asked: RaceConfig = asked, disturbed: bool = False) -> list[int]:
        took_ns = {0: 900_000_000, 1: 901_000_000, 2: 100_000_000}
        slices = {
            index: [Slice(1, ns, cycle, disturbed=disturbed) for cycle in range(3)] for index, ns in took_ns.items()
        }
        return [*FastestPlanner(RunConfig(), asked).leaves(RowProgress(racing), racing, stage, slices)]

    assert (leaving(TRAIN), leaving(EPOCH), leaving(TRAIN, disturbed=True)) == ([1], [], [])
    assert leaving(TRAIN, dataclasses.replace(asked, tries=["batch-size"])) == []  # slices of other samples


@pytest.mark.parametrize(
    ("asked", "steps", "devices", "backend", "raced"),
    [
        (THREADS_TOO, 1000, ["cpu"], "torch", ["cpu", "cpu threads=1"]),  # it has no other jit, and no larger execution
        (THREADS_TOO, 1000, ["cpu"], "jax", ["cpu", EIGHT, THIRTY_TWO, "cpu threads=1"]),
        (EXECUTIONS, 100, ["cpu"], "jax", ["cpu", EIGHT]),
        (EXECUTIONS, 4, ["cpu"], "jax", ["cpu", EIGHT]),  # all in one
        (EXECUTIONS, 1, ["cpu"], "jax", ["cpu"]),
        (RaceConfig("predict", tries=["steps-per-execution"]), 1000, ["cpu"], "jax", ["cpu"]),
        (BATCHES_TOO, 300, ["cpu"], "jax", ["cpu", EIGHT, THIRTY_TWO, "cpu batch-size=128", "cpu batch-size=512"]),
        (BATCHES, 10, ["cpu"], "torch", ["cpu", "cpu batch-size=128"]),  # none is larger than an epoch
        (BATCHES, 4, ["cpu"], "torch", ["cpu"]),  # its epochs are counted as a whole
        (RaceConfig(tries=[]), 1000, [], "torch", ["gpu"]),  # which Keras takes
        (RaceConfig(tries=[]), 1000, [], "jax", ["cpu"]),
        (DEVICES_TOO, 1000, [], "torch", ["cpu", "cpu dtype=mixed_bfloat16", "gpu", "gpu dtype=mixed_float16"]),
    ],
)
def test_a_race_has_every_setting_with_every_other_but_for_threads_and_batches(
    asked: RaceConfig, steps: int, devices: list[str], backend: str, raced: list[str]
) -> None:
    planned = make(asked, Selected(made.entry(), made.workload(steps=steps)), devices=devices)
    tried = [f"{case.device.label} {case.options.label}".strip() for case in planned.cases if case.backend == backend]
    assert (tried, planned.absent) == (raced, [])


def test_of_samples_on_disk_every_feed_is_tried_alone_and_with_workers_and_nothing_else_is() -> None:
    workload = dataclasses.replace(made.workload(steps=1000), on_disk=True)
    asked = RaceConfig(tries=["steps-per-execution", "threads", "feed", "workers"])
    planned = make(asked, Selected(made.entry(), workload), devices=["cpu"])
    tried = [case.options.label for case in planned.cases if case.backend == "jax"]
    with_workers = [f"feed={name} workers=2" for name in ("dataloader", "pydataset", "grain")]
    assert sorted(tried) == sorted([*(f"feed={name}" for name in FEEDERS if name != CACHED), *with_workers])
    predicting = make(dataclasses.replace(asked, purpose="predict"), Selected(made.entry(), workload), devices=["cpu"])
    assert {case.options.label for case in predicting.cases if case.backend == "jax"} == {"", "threads=1"}


def test_kept_memory_is_tried_on_a_cpu_with_glibc_where_steps_give_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    for has_glibc in (True, False):
        monkeypatch.setattr(malloc, "has_glibc", lambda answer=has_glibc: answer)
        for backend, device in (("torch", made.CPU), ("torch", CUDA), ("jax", made.CPU), ("tensorflow", made.CPU)):
            known = cases.facts(Case(made.selected(), backend, device), 2)
            if Options(malloc="keep") in candidates(RaceConfig(tries=["malloc"]), known):
                tried.append((has_glibc, backend, device.kind))
    assert tried == [(True, "torch", "cpu"), (True, "jax", "cpu")]


@pytest.mark.parametrize(
    ("backend", "kind", "options"),
    [
        ("torch", "cnn", [{}, {"layout": "channels_first"}]),
        ("torch", "cnn1d", [{}, {"layout": "channels_first"}]),
        ("torch", "dense", [{}]),
        ("jax", "cnn", [{}]),  # Keras copies nothing there
    ],
)
def test_the_layout_is_tried_where_keras_copies_images(backend: str, kind: str, options: list[dict[str, str]]) -> None:
    selected = made.changed(made.selected(), entry={"description": {"kind": kind}})
    known = cases.facts(Case(selected, backend, made.CPU), 2)
    assert candidates(RaceConfig(tries=["layout"]), known) == [Options(**chosen) for chosen in options]


@pytest.mark.parametrize(
    ("backend", "known", "tried"),
    [
        ("tensorflow", {"operations": 1_000_000}, 1),
        ("tensorflow", {"operations": 10**9}, 0),
        ("tensorflow", {"parameters": 10_000}, 1),  # of a saved model
        ("tensorflow", {"parameters": 10**6}, 0),
        ("tensorflow", {}, 0),
        ("jax", {"operations": 1_000_000}, 0),
    ],
)
def test_steps_are_unrolled_and_batches_made_once_where_a_small_model_has_many_steps_in_an_execution(
    backend: str, known: dict[str, int], tried: int
) -> None:
    unknown: dict[str, int | None] = {"operations": None, "parameters": None}
    selected = made.changed(made.selected(), workload=unknown | {"steps": 1000} | known)
    facts = cases.facts(Case(selected, backend, made.CPU), 2)
    asked = RaceConfig(tries=["jit", "steps-per-execution", "unrolled-steps"])
    unrolled = [options for options in candidates(asked, facts) if "unrolled_steps" in options]
    assert [options["steps_per_execution"] for options in unrolled] == [32] * tried
    asked = RaceConfig(tries=["jit", "steps-per-execution", "feed"])
    fed = [options for options in candidates(asked, facts) if "feed" in options]
    assert [options["steps_per_execution"] for options in fed] == [32] * tried  # without XLA, like the unrolled ones


def test_a_race_of_a_model_that_is_not_trained_says_so_beside_those_that_are() -> None:
    untrained = made.changed(made.selected(), workload={"predicts_only": True})
    planned = make(RaceConfig(tries=["jit"]), made.selected("conv"), untrained)
    assert [case.row_label for case in planned.cases] == ["conv"]
    ((_, failure),) = planned.absent
    assert failure.code is Code.UNSUPPORTED and "cannot be trained" in failure.cause
    assert failure.remedy.startswith("add --for predict")
    predicting = make(RaceConfig("predict", tries=["jit"]), untrained)
    assert predicting.cases and not predicting.absent


def sliced(*steps_ms: float) -> list[Measurement]:
    """A measurement by turns for each of these steps."""
    return [made.sliced([ms * (1 + 0.01 * cycle) for cycle in range(6)]) for ms in steps_ms]


def race(store: Store, worker: FakeWorker, *among: Case, effort: Effort, asked: RaceConfig) -> Run:
    return run(
        store,
        worker,
        *among,
        effort=effort,
        config={"own": dataclasses.asdict(asked)},
        planner=FastestPlanner(RunConfig(), asked),
    )


@pytest.mark.parametrize(
    ("default_ms", "later"), [(1.5, ["jax", "tensorflow", "jax"]), (4.0, ["jax", "jax"])], ids=["below 2×", "beyond"]
)
def test_a_race_measures_those_alone_that_may_win_and_keras_without_settings(
    default_ms: float, later: list[str], store: Store
) -> None:
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(1.0), tensorflow=sliced(default_ms))
    among = [*THREE, made.case(backend="jax", options=Options(threads=1))]
    race(store, worker, *among, effort=Effort(1, 3), asked=RaceConfig(baseline="tensorflow"))
    assert worker.blocks == [["torch", "jax", "tensorflow", "jax"], later, later]
    first = FastestPlanner(RunConfig(), RaceConfig()).decide(RowProgress(CASES[:1]), Decision())
    assert first.next_block == NextBlock({TRAIN: plan.FIRST_CYCLES})  # short, also of one column or round


@pytest.mark.parametrize(
    ("jax_ms", "tensorflow_ms", "blocks", "reason"),
    [
        ([1.0], [4.0], 1, "no other setting can beat the leader by more than the margin"),
        ([1.0, 1.02], [1.02, 1.0], 3, "all 3 rounds are done"),
    ],
)
def test_a_race_is_won(store: Store, jax_ms: list[float], tensorflow_ms: list[float], blocks: int, reason: str) -> None:
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(*jax_ms), tensorflow=sliced(*tensorflow_ms))
    record = race(store, worker, *THREE, effort=Effort(1, 3), asked=RaceConfig(baseline="torch"))
    later = [["jax", "tensorflow"]] * (blocks - 1)
    assert (worker.blocks, record.stopped_because) == ([["torch", "jax", "tensorflow"], *later], reason)


def test_a_race_for_predictions_measures_them_in_each_round(store: Store) -> None:
    batches = [
        [made.predicted(1, [1]), made.predicted(32, [int(ms * made.MS)] * 200)] for ms in (1.9, 2.1, 1.9, 2.1, 1.9)
    ]
    scattered = [made.with_predictions(made.sliced([1.0] * 6), *predictions) for predictions in batches]
    worker = FakeWorker(torch=scattered, jax=sliced(1.0))
    race(store, worker, *CASES, effort=Effort(1, 5), asked=RaceConfig("predict", baseline="jax"))
    assert len(worker.blocks) > 3  # only later rounds could leave them out
    assert all(BATCH in request.plan.stages for request in worker.requests)
