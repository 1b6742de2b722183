"""Which cases a run has, and why others cannot be measured or explained."""

import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kerasbench.errors import MissingBackend, UsageError
from kerasbench.plan import cases as plan_cases
from kerasbench.plan.cases import Probes
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.columns import Device, Environment, Options
from kerasbench.protocol.messages import FIND, Code, Failure, ProbeReport
from kerasbench.protocol.requests import MIN_STEPS_FOR_SLICES, Protocol
from kerasbench.results.run import DEFAULT, MAX_COLUMNS, PUBLISHED, SWEEP, Effort, RaceConfig, RacePurpose, RunConfig
from tests import made

CUDA = Device("cuda", 0, "NVIDIA H200")
TORCH = ProbeReport("torch", "3.11.7", {"torch": "2.13.0"}, [made.CPU, CUDA])
JAX = ProbeReport("jax", "3.11.7", {"jax": "0.10.2"}, [made.CPU])
GONE = Failure(Code.UNAVAILABLE, "jax is not installed", "pip install 'kerasbench[jax]'", FIND)
BROKEN = Failure(Code.UNAVAILABLE, "ImportError: jaxlib is missing", "reinstall the backend", "import")
JAX_ALONE = {Environment("jax"): JAX}
TORCH_ALONE = {Environment("torch"): TORCH}
BOTH = TORCH_ALONE | JAX_ALONE
TWINNED = dataclasses.replace(made.entry(), baselines={"torch": "hash"})


def make(
    probes: Probes = BOTH,
    chosen: Sequence[Selected] = (),
    interpreters: Sequence[Environment] = (),
    **asked: Any,
) -> plan_cases.Plan:
    """Plan what is asked for; of one scenario, unless others are chosen."""
    return plan_cases.make(RunConfig(**asked), chosen or [made.selected()], probes, made.MACHINE, interpreters)


def labels(cases: list[plan_cases.Case]) -> list[str]:
    return [case.label for case in cases]


def absent(plan: plan_cases.Plan) -> list[tuple[str, str]]:
    """Return what cannot be measured, and why."""
    return [(case.label, failure.cause) for case, failure in plan.absent]


def test_more_columns_than_a_file_may_have_are_refused_before_they_are_measured() -> None:
    threads = [Options(threads=number) for number in range(1, MAX_COLUMNS // 2 + 2)]
    with pytest.raises(UsageError, match=rf"^these are {MAX_COLUMNS + 2} configurations, and .* {MAX_COLUMNS} at"):
        make(devices=["cpu"], options=threads)
    assert make(devices=["cpu"], options=threads[:-1])


@pytest.mark.parametrize(
    ("named", "missed"), [([], []), (["dense"], [("dense jax cpu native=on", "dense has no native baseline for jax")])]
)
def test_a_baseline_that_there_is_not_is_missed_where_its_scenario_was_named(
    named: list[str], missed: list[tuple[str, str]]
) -> None:
    with_baselines = Selected(TWINNED, made.workload())
    found = make(chosen=[with_baselines], scenarios=named, devices=["cpu"], options=[Options(), Options(native=True)])
    assert labels(found.cases) == ["dense torch cpu", "dense torch cpu native=on", "dense jax cpu"]
    assert absent(found) == missed


def test_a_warm_cache_that_a_backend_does_not_have_is_a_column_less_and_said() -> None:
    found = make(devices=["cpu"], options=[Options(), Options(warm_cache=True)])
    assert labels(found.cases) == ["dense torch cpu", "dense jax cpu", "dense jax cpu warm-cache=on"]
    assert found.absent == []
    assert found.warnings == [
        "torch cpu warm-cache=on is not measured: torch compiles nothing without --jit on, so it leaves no cache; "
        "--jit on --warm-cache"
    ]


def test_without_devices_every_backend_gets_what_it_sees() -> None:
    found = make()
    assert labels(found.cases) == ["dense torch cpu", "dense torch gpu", "dense jax cpu"]
    assert found.cases[1].device.name == "NVIDIA H200"
    assert found.absent == []


CARDS = [dataclasses.replace(CUDA, index=index) for index in range(3)]
OTHER_CARD = Device("cuda", 3, "NVIDIA L4")


def test_one_card_of_each_model_is_measured_and_the_others_are_named_with_how_to_have_them() -> None:
    box = {Environment("torch"): dataclasses.replace(TORCH, devices=[made.CPU, *CARDS, OTHER_CARD])} | JAX_ALONE
    planned = make(box)
    assert labels(planned.cases) == ["dense torch cpu", "dense torch gpu", "dense torch gpu:3", "dense jax cpu"]
    assert planned.warnings == [
        "one GPU of each model is measured, so these are left out: gpu:1 (NVIDIA H200), gpu:2 (NVIDIA H200); "
        "all: --device cpu,gpu,gpu:1,gpu:2,gpu:3"
    ]
    asked = make(box, backends=["torch"], devices=["gpu:1", "gpu:2"])
    assert (labels(asked.cases), asked.warnings) == (["dense torch gpu:1", "dense torch gpu:2"], [])


SEVERAL = ["NVIDIA H200", "NVIDIA L4"]


@pytest.mark.parametrize(
    ("shown", "order", "cards", "is_refused"),
    [
        ("1", None, SEVERAL, True),
        ("GPU-8f2a, 0", "FASTEST_FIRST", SEVERAL, True),
        ("1", "PCI_BUS_ID", SEVERAL, False),
        ("1", None, ["NVIDIA H200"] * 2, False),
        ("1", None, [], False),  # the driver does not tell
        ("GPU-8f2a,MIG-0a1b", None, SEVERAL, False),
        ("-1", None, SEVERAL, False),
        ("", None, SEVERAL, False),
        (None, None, SEVERAL, False),
    ],
)
def test_numbers_of_cards_that_mean_others_to_the_user_are_refused(
    shown: str | None, order: str | None, cards: list[str], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CUDA_VISIBLE_DEVICES", shown), ("CUDA_DEVICE_ORDER", order)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    here = dataclasses.replace(made.MACHINE, gpus=cards)
    words = r"CUDA_VISIBLE_DEVICES=.* is ambiguous, .*\(NVIDIA H200, NVIDIA L4\).* UUIDs, which nvidia-smi -L prints"
    with pytest.raises(UsageError, match=words) if is_refused else nullcontext():
        plan_cases.make(RunConfig(), [made.selected()], TORCH_ALONE, here)
    plan_cases.make(RunConfig(devices=["cpu"]), [made.selected()], TORCH_ALONE, here)


def test_a_device_that_one_backend_lacks_is_a_failure_of_that_backend_alone() -> None:
    found = make(devices=["gpu"])
    assert labels(found.cases) == ["dense torch gpu"]
    assert absent(found) == [("dense jax gpu", "jax 0.10.2 sees cpu, not gpu")]
    assert (found.absent[0][1].code, found.absent[0][1].remedy) == (Code.UNAVAILABLE, plan_cases.DOCTOR)


def test_a_device_that_nobody_has_is_an_error_that_says_what_was_seen() -> None:
    with pytest.raises(MissingBackend, match=r"no device gpu(.|\n)*jax 0.10.2 sees cpu\n(.|\n)*kerasbench doctor"):
        make(JAX_ALONE, devices=["gpu"])


def test_a_missing_backend_is_left_out_unless_it_was_named() -> None:
    gone = TORCH_ALONE | {Environment("jax"): GONE}
    assert make(gone).absent == []
    assert absent(make(gone, backends=["torch", "jax"])) == [("dense jax cpu", GONE.cause)]
    assert absent(make(gone, interpreters=[Environment("jax")])) == [("dense jax cpu", GONE.cause)]
    broken = TORCH_ALONE | {Environment("jax"): BROKEN}  # it is installed and does not load
    assert absent(make(broken)) == [("dense jax cpu", BROKEN.cause)]


def test_no_backend_at_all_says_what_to_install() -> None:
    with pytest.raises(MissingBackend, match=r"no backend(.|\n)*kerasbench\[jax\]"):
        make({Environment("jax"): GONE})


def of_steps(steps: int, name: str = "default") -> Selected:
    return Selected(made.entry(), made.workload(name, steps))


def test_a_plan_says_what_each_case_s_trials_measure() -> None:
    assert [case.protocol for case in make(JAX_ALONE, effort=PUBLISHED).cases] == [PUBLISHED.protocol]
    short = of_steps(MIN_STEPS_FOR_SLICES - 1, "short")
    found = make(JAX_ALONE, [of_steps(MIN_STEPS_FOR_SLICES, "long"), short], explain=True)
    assert [(case.options.label, case.protocol.kind, case.protocol.parts) for case in found.cases] == [
        ("", "steady", True),
        ("jit=off", "steady", False),
        ("batch=128", "sweep", False),
    ]
    assert labels([case for case, _ in found.absent]) == ["dense/short jax cpu"]  # without rivals that might help


def test_a_plan_s_threads_are_limited_by_the_machine_that_it_is_for() -> None:
    asked = RunConfig(options=[Options(threads=3)])
    for cores, measured in ((2, 0), (3, 1)):
        here = dataclasses.replace(made.MACHINE, cores=cores)
        assert len(plan_cases.make(asked, [made.selected()], JAX_ALONE, here).cases) == measured


def test_backends_with_different_versions_of_keras_are_warned_of_before_the_run() -> None:
    older = {Environment("jax"): ProbeReport("jax", "3.11.7", {"keras": "3.15.1"}, [made.CPU])}
    newer = ProbeReport("torch", "3.11.7", {"keras": "3.16.0"}, [made.CPU])
    assert make(older | {Environment("torch"): newer}).warnings == [
        "versions of Keras differ: jax has 3.15.1, torch has 3.16.0; ratios compare these too, not the backends alone"
    ]
    assert make({**older, Environment("torch"): BROKEN}).warnings == []


def test_a_control_is_a_second_one_of_the_first_case_of_each_row() -> None:
    found = make(options=[Options(), Options(jit=False), Options(batch=8)], control=True, devices=["cpu"]).cases
    assert [case.label for case in found if case.options.control] == [
        "dense torch cpu control=on",
        "dense torch cpu control=on batch=8",
    ]
    assert len(found) == 8
    (first, control) = (case for case in found if case.label in ("dense torch cpu", "dense torch cpu control=on"))
    assert dataclasses.replace(control, options=first.options) == first


OLD = dataclasses.replace(TORCH, versions={"torch": "2.13.0", "keras": "3.14.1"})
NEW = dataclasses.replace(TORCH, versions={"torch": "2.13.0", "keras": "3.15.1"})


def test_each_labelled_interpreter_is_a_column_of_the_same_row_and_meant_to_differ() -> None:
    found = make(made.by_environment({"torch@old": OLD, "torch@new": NEW, "jax": JAX}), devices=["cpu"])
    assert labels(found.cases) == ["dense torch cpu @old", "dense torch cpu @new", "dense jax cpu"]
    assert [str(case.column.environment) for case in found.cases] == ["torch@old", "torch@new", "jax"]
    assert len({case.row for case in found.cases}) == 1
    assert found.warnings == []


def test_versions_that_are_compared_have_a_row_for_each_backend_and_device_and_a_control_of_the_base() -> None:
    probes = made.by_environment({"torch@old": OLD, "torch@new": NEW, "jax@old": JAX, "jax@new": JAX})
    rows: dict[str, list[str]] = {}
    for case in make(probes, versus=["old", "new"], control=True).cases:
        rows.setdefault(case.row_label, []).append(case.options.label)
    alike = ["@old", "@new", "@old control=on"]
    assert rows == {"dense torch cpu": alike, "dense torch gpu": alike, "dense jax cpu": alike}


def test_of_two_versions_neither_is_left_out_where_the_other_is_there() -> None:
    probes: Probes = made.by_environment({"torch@old": OLD, "torch@new": GONE, "jax@old": GONE, "jax@new": GONE})
    found = make(probes, interpreters=list(probes), versus=["old", "new"])
    assert labels(found.cases) == ["dense torch cpu @old", "dense torch gpu @old"]
    assert labels([case for case, _ in found.absent]) == ["dense torch cpu @new", "dense torch gpu @new"]
    named = make(probes, versus=["old", "new"], backends=["torch", "jax"])
    assert {str(case.column.environment) for case, _ in named.absent} == {"torch@new", "jax@old", "jax@new"}


@pytest.mark.parametrize("blind", ["old", "new"])
def test_of_two_versions_a_device_that_one_no_longer_sees_is_absent_and_not_forgotten(blind: str) -> None:
    probes = {Environment("torch", label): OLD for label in ("old", "new")}
    probes[Environment("torch", blind)] = dataclasses.replace(OLD, devices=[made.CPU])
    found = make({**probes, Environment("jax", "old"): JAX}, versus=["old", "new"])
    assert absent(found) == [(f"dense torch gpu @{blind}", "torch 2.13.0 sees cpu, not gpu")]
    assert found.absent[0][0].row in {case.row for case in found.cases}
    apart = make(probes)
    assert not apart.absent and len(apart.cases) == 3


@pytest.mark.parametrize(
    ("named", "expected"),
    [(False, ["dense torch gpu"]), (True, ["dense torch cpu", "dense torch gpu"])],
)
def test_a_large_workload_is_measured_on_a_cpu_only_if_it_was_named(named: bool, expected: list[str]) -> None:
    large = Selected(made.entry(), dataclasses.replace(made.workload(), large=True), named)
    assert labels(make(TORCH_ALONE, [large]).cases) == expected


def test_an_epoch_that_holds_slices_can_be_taken_apart_and_one_step_fewer_cannot() -> None:
    assert plan_cases.inexplicable(of_steps(MIN_STEPS_FOR_SLICES)) is None
    cause, remedy = plan_cases.inexplicable(of_steps(MIN_STEPS_FOR_SLICES - 1, "short")) or ("", "")
    assert f"has {MIN_STEPS_FOR_SLICES - 1} of the {MIN_STEPS_FOR_SLICES} steps" in cause
    assert remedy == "`kerasbench run --scenario dense.py/short` measures its epochs"
    untrained = Selected(made.entry(), dataclasses.replace(made.workload(), predicts_only=True))
    cause, _ = plan_cases.inexplicable(untrained) or ("", "")
    assert cause == "dense is not trained, so it has no training step to explain"


@pytest.mark.parametrize(("protocol", "measured"), [(SWEEP, 0), (Protocol(soaks=True), 0), (Protocol(), 1)])
def test_steps_of_what_is_not_trained_are_refused_before_a_process_is_started(
    protocol: Protocol, measured: int
) -> None:
    untrained = Selected(made.entry(), dataclasses.replace(made.workload(), predicts_only=True))
    planned = make(JAX_ALONE, [untrained], effort=dataclasses.replace(DEFAULT, protocol=protocol))
    assert (len(planned.cases), len(planned.absent)) == (measured, 1 - measured)


def test_a_built_in_scenario_is_named_by_its_label_and_another_by_its_file() -> None:
    one = made.selected(workload_name="a")
    built_in = dataclasses.replace(one, entry=dataclasses.replace(one.entry, suite="published"))
    spaced = dataclasses.replace(one, entry=dataclasses.replace(one.entry, file=Path("my models/dense.py")))
    assert (built_in.word, spaced.word) == ("dense/a", "'my models/dense.py'/a")


def test_where_none_can_be_explained_each_is_named_with_its_steps() -> None:
    with pytest.raises(
        UsageError, match=r"fewer: dense/one \(1\), dense/two \(2\); `kerasbench run --scenario dense\.py/one"
    ):
        make(JAX_ALONE, [of_steps(1, "one"), of_steps(2, "two")], explain=True)


TF32 = Options(fp32="tf32")
TWIN = Options(native=True)


@pytest.mark.parametrize(
    ("device", "options", "reason"),
    [
        (made.CPU, TF32, "TF32 is a mode of NVIDIA GPUs, not of cpu"),
        (Device("mps"), TF32, "not of mps"),
        (CUDA, TF32, None),
        (Device("mps"), Options(dtype="float64"), "no float64"),
        (made.CPU, Options(jit=True, dtype="float64", fp32="framework-default", threads=1), None),
        (made.CPU, Options(threads=10_000), "10000 threads were asked for"),
        (CUDA, Options(malloc="keep"), "on Linux with glibc"),
        (made.CPU, Options(native=True, dtype="float32", fp32="framework-default", threads=1), None),
        (made.CPU, Options(native=True, jit=False), "is compiled as its framework does"),
        (made.CPU, Options(native=True, dtype="mixed_bfloat16"), "computes in float32"),
    ],
)
def test_what_means_nothing_in_a_column_is_unsupported_before_it_is_tried(
    device: Device, options: Options, reason: str | None
) -> None:
    failure = plan_cases.unsupported(
        plan_cases.Case(Selected(TWINNED, made.workload()), "torch", device, options), RunConfig(), 2
    )
    assert (failure is None) if reason is None else (failure is not None and reason in failure.cause)


def test_memory_is_kept_on_a_cpu_by_glibc_alone_and_tried_where_steps_give_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = plan_cases.Case(Selected(made.entry(), made.workload()), "torch", made.CPU, Options(malloc="keep"))
    tried = []
    for has_glibc in (True, False):
        monkeypatch.setattr(plan_cases, "has_glibc", lambda found=has_glibc: found)
        assert (plan_cases.unsupported(case, RunConfig(), 2) is None) is has_glibc
        for backend, device in (("torch", made.CPU), ("torch", CUDA), ("jax", made.CPU), ("tensorflow", made.CPU)):
            found = plan_cases.candidates(RaceConfig(tries=["malloc"]), backend, device, 0, 2)
            tried += [(has_glibc, backend, device.kind)] if case.options in found else []
    assert tried == [(True, "torch", "cpu"), (True, "jax", "cpu")]


def test_a_workload_that_only_keras_can_feed_has_no_baseline() -> None:
    workload = dataclasses.replace(made.workload(), keras_only="a pipeline of its own")
    failure = plan_cases.unsupported(
        plan_cases.Case(Selected(TWINNED, workload), "torch", made.CPU, TWIN), RunConfig(), 2
    )
    assert failure is not None and "dense has a pipeline of its own" in failure.cause


def raced(device: str, *tries: str, steps: int = 1000, purpose: RacePurpose = "train") -> dict[str, list[str]]:
    """Return the labels of a race's candidates by backend, and of what is missing."""
    race = RaceConfig(purpose, tries=list(tries))
    found = make(chosen=[of_steps(steps)], devices=[device] if device else [], race=race)
    assert found.absent == []
    return {
        backend: [
            f"{case.device.label} {case.options.label}".strip() for case in found.cases if case.backend == backend
        ]
        for backend in ("torch", "jax")
    }


def test_a_race_has_every_setting_with_every_other_but_for_the_threads() -> None:
    assert raced("cpu", "threads", "steps-per-execution", "jit") == {
        "torch": ["cpu", "cpu threads=1"],
        "jax": ["cpu", "cpu steps-per-execution=8", "cpu steps-per-execution=32", "cpu threads=1"],
    }


def test_what_a_backend_or_an_epoch_does_not_have_is_a_candidate_less() -> None:
    assert raced("cpu", "steps-per-execution", steps=100)["jax"] == ["cpu", "cpu steps-per-execution=8"]
    assert raced("cpu", "steps-per-execution", purpose="predict")["jax"] == ["cpu"]
    assert raced("cpu", "steps-per-execution", steps=4)["jax"] == ["cpu", "cpu steps-per-execution=8"]  # all in one
    assert raced("cpu", "steps-per-execution", steps=1)["jax"] == ["cpu"]


def test_larger_batches_are_tried_by_themselves_and_none_is_larger_than_an_epoch() -> None:
    assert raced("cpu", "steps-per-execution", "batch-size", steps=300)["jax"] == [
        "cpu",
        "cpu steps-per-execution=8",
        "cpu steps-per-execution=32",
        "cpu batch-size=128",
        "cpu batch-size=512",
    ]
    assert raced("cpu", "batch-size", steps=10)["torch"] == ["cpu", "cpu batch-size=128"]
    assert raced("cpu", "batch-size", steps=4)["torch"] == ["cpu"]  # its epochs are counted as a whole


def test_calls_train_nothing_and_are_of_baselines_in_either_mode() -> None:
    entry = made.entry("dense", ("default", "large"))
    entry = dataclasses.replace(entry, baselines={"torch": "hash"})
    chosen = [Selected(entry, workload) for workload in entry.description.workloads]
    modes = [Options(jit=jit, native=native) for jit in (None, True) for native in (False, True)]
    effort = Effort(protocol=Protocol("calls"))
    found = make(TORCH_ALONE, chosen, devices=["cpu"], options=modes, effort=effort)
    assert [case.options for case in found.cases] == 2 * modes
    assert found.absent == []
    assert all(case.selected.workload.predicts_only for case in found.cases)
    assert len({id(case.selected.entry) for case in found.cases}) == 1
    assert all(one.predicts_only for one in found.cases[0].selected.entry.description.workloads)


def test_a_race_of_a_model_that_is_not_trained_says_so_beside_those_that_are() -> None:
    entry = made.entry("saved")
    workload = dataclasses.replace(entry.description.workloads[0], predicts_only=True)
    saved = Selected(entry, workload)
    found = make(JAX_ALONE, [made.selected(), saved], race=RaceConfig(tries=["jit"]))
    assert [case.row_label for case in found.cases] == ["dense"]
    (said,) = found.absent
    assert said[1].code is Code.UNSUPPORTED and "cannot be trained" in said[1].cause
    assert said[1].remedy.startswith("add --for predict")
    predicting = make(JAX_ALONE, [saved], race=RaceConfig("predict", tries=["jit"]))
    assert predicting.cases and not predicting.absent


def test_a_race_without_devices_to_try_has_the_one_that_keras_takes() -> None:
    assert raced("") == {"torch": ["gpu"], "jax": ["cpu"]}
    assert raced("", "device", "dtype")["torch"] == [
        "cpu",
        "cpu dtype=mixed_bfloat16",
        "gpu",
        "gpu dtype=mixed_float16",
    ]
