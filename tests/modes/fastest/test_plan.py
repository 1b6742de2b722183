"""What a race measures, and who leaves it."""


def test_a_race_tries_what_changes_no_result_unless_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    asked = configure.fastest(Settings(["dense"], budget="10m"))
    tries = ["backend", "device", "jit", "threads", "malloc", "steps-per-execution"]
    assert (asked.race, asked.backends) == (RaceConfig(tries=tries, baseline="jax"), [])
    assert asked.effort == made.changed(RACE, budget_s=600, protocol={"predicts": False})
    named = configure.fastest(Settings(["dense"], tries=["jit"], margin="10%", purpose="predict", rounds=6))
    assert named.race == RaceConfig("predict", 0.1, ["jit"], "jax")
    assert (named.backends, named.effort.max_rounds) == (["jax"], 6)
    assert (named.effort.protocol.epochs, named.effort.protocol.predicts) == (False, True)


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
    assert configure.default_backend({"KERAS_HOME": str(tmp_path)} | variables) == backend


EIGHT, THIRTY_TWO = "cpu steps-per-execution=8", "cpu steps-per-execution=32"
EXECUTIONS = RaceConfig(tries=["steps-per-execution"])
BATCHES = RaceConfig(tries=["batch-size"])
THREADS_TOO = RaceConfig(tries=["threads", "steps-per-execution", "jit"])
BATCHES_TOO = RaceConfig(tries=["steps-per-execution", "batch-size"])
DEVICES_TOO = RaceConfig(tries=["device", "dtype"])


@pytest.mark.parametrize(
    ("race", "steps", "devices", "backend", "candidates"),
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
    race: RaceConfig, steps: int, devices: list[str], backend: str, candidates: list[str]
) -> None:
    planned = make(chosen=[of_steps(steps)], devices=devices, race=race)
    raced = [f"{case.device.label} {case.options.label}".strip() for case in planned.cases if case.backend == backend]
    assert (raced, planned.absent) == (candidates, [])


def test_a_race_of_a_model_that_is_not_trained_says_so_beside_those_that_are() -> None:
    planned = make(JAX_ALONE, [made.selected("conv"), UNTRAINED], race=RaceConfig(tries=["jit"]))
    assert [case.row_label for case in planned.cases] == ["conv"]
    ((_, failure),) = planned.absent
    assert failure.code is Code.UNSUPPORTED and "cannot be trained" in failure.cause
    assert failure.remedy.startswith("add --for predict")
    predicting = make(JAX_ALONE, [UNTRAINED], race=RaceConfig("predict", tries=["jit"]))
    assert predicting.cases and not predicting.absent


def sliced(*steps_ms: float) -> list[Measurement]:
    """A measurement by turns for each of these steps."""
    return [made.sliced([ms * (1 + 0.01 * cycle) for cycle in range(6)]) for ms in steps_ms]


def test_a_race_measures_those_alone_that_may_win_and_keras_without_settings(store: Store) -> None:
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(1.0), tensorflow=sliced(4.0))
    cases = [*THREE, made.case(backend="jax", options=Options(threads=1))]
    run(store, worker, *cases, effort=Effort(1, 2), config={"race": RaceConfig(baseline="tensorflow")})
    assert worker.blocks == [["torch", "jax", "tensorflow", "jax"], ["jax", "tensorflow", "jax"]]


@pytest.mark.parametrize(
    ("jax_ms", "tensorflow_ms", "blocks", "reason"),
    [
        ([1.0], [4.0], 1, "no other setting can beat the leader by more than the margin"),
        ([1.0, 1.02], [1.02, 1.0], 3, "all 3 rounds are done"),
    ],
)
def test_a_race_is_won(store: Store, jax_ms: list[float], tensorflow_ms: list[float], blocks: int, reason: str) -> None:
    worker = FakeWorker(torch=sliced(9.0), jax=sliced(*jax_ms), tensorflow=sliced(*tensorflow_ms))
    record = run(store, worker, *THREE, effort=Effort(1, 3), config={"race": RaceConfig(baseline="torch")})
    assert (worker.blocks, record.stopped_because) == ([["torch", "jax", "tensorflow"]] * blocks, reason)


def test_a_race_for_predictions_measures_them_in_each_round(store: Store) -> None:
    batches = [[Latency(1, [1]), Latency(32, [int(ms * made.MS)] * 200)] for ms in (1.9, 2.1, 1.9, 2.1, 1.9)]
    scattered = [made.changed(made.sliced([1.0] * 6), prediction=prediction) for prediction in batches]
    worker, config = FakeWorker(torch=scattered, jax=sliced(1.0)), {"race": RaceConfig("predict", baseline="jax")}
    run(store, worker, effort=Effort(1, 5), config=config)
    assert len(worker.blocks) > 3  # only later rounds could leave them out
    assert {request.protocol.predicts for request in worker.requests} == {True}
