import dataclasses
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kerasbench.errors import MissingBackend, UsageError
from kerasbench.modes import registry
from kerasbench.plan import cases as plan_cases
from kerasbench.plan.cases import Case, Plan, Probes
from kerasbench.plan.catalog import Selected
from kerasbench.protocol.columns import Device, Environment, Options
from kerasbench.protocol.messages import FIND, Code, Failure, ProbeReport
from kerasbench.protocol.requests import TrialPlan
from kerasbench.results.run import DEFAULT, MAX_COLUMNS, SWEEP, Effort, RunConfig, exactly
from kerasbench.variants import malloc
from tests import made

CUDA = Device("cuda", 0, "NVIDIA H200")
TORCH = ProbeReport("torch", "3.11.7", {"torch": "2.13.0", "keras": "3.14.1"}, [made.CPU, CUDA])
JAX = ProbeReport("jax", "3.11.7", {"jax": "0.10.2", "keras": "3.14.1"}, [made.CPU])
NEWER = dataclasses.replace(TORCH, versions={"torch": "2.13.0", "keras": "3.15.1"})
BLIND = dataclasses.replace(TORCH, devices=[made.CPU])
GONE = Failure(Code.UNAVAILABLE, "jax is not installed", "pip install 'kerasbench[jax]'", FIND)
BROKEN = Failure(Code.UNAVAILABLE, "ImportError: jaxlib is missing", "reinstall the backend", "import")


def probes(**reports: ProbeReport | Failure) -> Probes:
    """What each environment has said; ``torch_old`` is torch's with the label ``old``."""
    return made.by_environment({name.replace("_", "@"): report for name, report in reports.items()})


JAX_ALONE, TORCH_ALONE = probes(jax=JAX), probes(torch=TORCH)
BOTH, WITHOUT_JAX = probes(torch=TORCH, jax=JAX), probes(torch=TORCH, jax=GONE)
CARDS = [dataclasses.replace(CUDA, index=index) for index in range(3)]
BOX = probes(torch=dataclasses.replace(TORCH, devices=[made.CPU, *CARDS, Device("cuda", 3, "NVIDIA L4")]))
WARM = {"devices": ["cpu"], "options": [Options(), Options(warm_cache=True)]}
EXPORTED: dict[str, Any] = {
    "devices": ["cpu"],
    "options": [Options(runtime=runtime) for runtime in (None, "pt2", "jax_export", "saved_model")],
    "effort": exactly(1, TrialPlan().of_kind("predictions")),
}
VERSIONS = probes(torch_old=TORCH, torch_new=NEWER, jax=JAX)
HALF_GONE = probes(torch_old=TORCH, torch_new=GONE, jax_old=GONE, jax_new=GONE)
OLD_BLIND, NEW_BLIND = probes(torch_old=BLIND, torch_new=TORCH, jax_old=JAX), probes(torch_old=TORCH, torch_new=BLIND)
NO_GPU = "torch 2.13.0 sees cpu, not gpu"
PAIRED: dict[str, Any] = {"paired": True}
ALL = {"backends": ["torch", "jax"]}
ON_CPU = PAIRED | {"devices": ["cpu"]}


def make(
    probes: Probes = BOTH, chosen: Sequence[Selected] = (), interpreters: Sequence[Environment] = (), **asked: Any
) -> Plan:
    """Plan what is asked for; of one scenario, unless others are chosen."""
    return plan_cases.make(
        registry.planner(RunConfig(**asked)), chosen or [made.selected()], probes, made.MACHINE, interpreters
    )


def labels(cases: Sequence[Case]) -> list[str]:
    return [case.label for case in cases]


def of_workload(**different: Any) -> Selected:
    """Dense, which has a baseline for torch, with another workload."""
    entry = dataclasses.replace(made.entry(), baselines={"torch": "hash"})
    return Selected(entry, dataclasses.replace(made.workload(), **different))


TWINNED, UNTRAINED, LARGE = of_workload(), of_workload(predicts_only=True), of_workload(large=True)


def test_more_columns_than_a_file_may_have_are_refused_before_they_are_measured() -> None:
    threads = [Options(threads=number) for number in range(1, MAX_COLUMNS // 2 + 2)]
    with pytest.raises(UsageError, match=rf"^these are {MAX_COLUMNS + 2} configurations, and .* {MAX_COLUMNS} at"):
        make(devices=["cpu"], options=threads)
    assert make(devices=["cpu"], options=threads[:-1])


@pytest.mark.parametrize(
    ("probes", "asked", "measured", "absent", "cause"),
    [
        (BOTH, {}, "torch cpu, torch gpu, jax cpu", "", ""),
        (BOTH, {"devices": ["gpu"]}, "torch gpu", "jax gpu", "jax 0.10.2 sees cpu, not gpu"),
        (BOTH, WARM, "torch cpu, jax cpu, jax cpu warm-cache=on", "", ""),
        (BOX, {}, "torch cpu, torch gpu, torch gpu:3", "", ""),  # a card of each model
        (BOX, {"devices": ["gpu:1", "gpu:2"]}, "torch gpu:1, torch gpu:2", "", ""),
        (WITHOUT_JAX, {}, "torch cpu, torch gpu", "", ""),
        (WITHOUT_JAX, {"backends": ["torch", "jax"]}, "torch cpu, torch gpu", "jax cpu", GONE.cause),
        (WITHOUT_JAX, {"interpreters": [Environment("jax")]}, "torch cpu, torch gpu", "jax cpu", GONE.cause),
        (probes(torch=TORCH, jax=BROKEN), {}, "torch cpu, torch gpu", "jax cpu", BROKEN.cause),
        (VERSIONS, {"devices": ["cpu"]}, "torch cpu @old, torch cpu @new, jax cpu", "", ""),
        (OLD_BLIND, {}, "torch cpu @old, torch cpu @new, torch gpu @new, jax cpu @old", "", ""),
        # Of two versions that are compared neither is left out where the other is there, nor a device.
        (OLD_BLIND, PAIRED, "torch cpu @old, torch cpu @new, torch gpu @new, jax cpu @old", "torch gpu @old", NO_GPU),
        (NEW_BLIND, PAIRED, "torch cpu @old, torch gpu @old, torch cpu @new", "torch gpu @new", NO_GPU),
        (HALF_GONE, ON_CPU | {"interpreters": list(HALF_GONE)}, "torch cpu @old", "torch cpu @new", GONE.cause),
        (HALF_GONE, PAIRED, "torch cpu @old, torch gpu @old", "torch cpu @new, torch gpu @new", GONE.cause),
        (HALF_GONE, ON_CPU | ALL, "torch cpu @old", "torch cpu @new, jax cpu @old, jax cpu @new", GONE.cause),
        # An exported model has a case of the backends that export it alone.
        (BOTH, EXPORTED, "torch cpu, torch cpu runtime=pt2, jax cpu, jax cpu runtime=jax_export", "", ""),
        (TORCH_ALONE, {"chosen": [LARGE]}, "torch gpu", "", ""),
        (TORCH_ALONE, {"chosen": [dataclasses.replace(LARGE, named=True)]}, "torch cpu, torch gpu", "", ""),
    ],
)
def test_what_a_plan_measures(probes: Probes, asked: dict[str, Any], measured: str, absent: str, cause: str) -> None:
    planned = make(probes, **asked)
    assert labels(planned.cases) == [f"dense {label}" for label in measured.split(", ")]
    assert labels([case for case, _ in planned.absent]) == [f"dense {label}" for label in absent.split(", ") if label]
    assert {(failure.code, failure.cause) for _, failure in planned.absent} <= {(Code.UNAVAILABLE, cause)}


@pytest.mark.parametrize(
    ("probes", "asked", "said"),
    [
        (BOTH, {}, ""),
        (VERSIONS, {}, ""),  # labelled ones are meant to differ
        (probes(torch=NEWER, jax=BROKEN), {}, ""),
        (probes(torch=NEWER, jax=JAX), {}, "versions of Keras differ: torch has 3.15.1, jax has 3.14.1; ratios"),
        (BOX, {"devices": ["gpu:1"]}, ""),
        (BOX, {}, "left out: gpu:1 (NVIDIA H200), gpu:2 (NVIDIA H200); all: --device cpu,gpu,gpu:1,gpu:2,gpu:3"),
        (BOTH, WARM, "PyTorch (warm cache) is not measured: torch compiles nothing without --jit on"),
    ],
)
def test_what_a_reader_has_to_know_is_said_before_the_run(probes: Probes, asked: dict[str, Any], said: str) -> None:
    warnings = make(probes, **asked).warnings
    assert len(warnings) == bool(said) and said in "".join(warnings)


@pytest.mark.parametrize(("named", "is_missed"), [([], False), (["dense"], True)])
def test_a_baseline_that_there_is_not_is_missed_where_its_scenario_was_named(named: list[str], is_missed: bool) -> None:
    planned = make(chosen=[TWINNED], scenarios=named, devices=["cpu"], options=[Options(), Options(native=True)])
    assert labels(planned.cases) == ["dense torch cpu", "dense torch cpu native=on", "dense jax cpu"]
    missed = [(case.label, failure.cause) for case, failure in planned.absent]
    assert missed == [("dense jax cpu native=on", "dense has no native baseline for jax")] * is_missed


SEVERAL = ["NVIDIA H200", "NVIDIA L4"]


@pytest.mark.parametrize(
    ("shown", "order", "cards", "is_refused"),
    [
        ("1", "", SEVERAL, True),
        ("GPU-8f2a, 0", "FASTEST_FIRST", SEVERAL, True),
        ("1", "PCI_BUS_ID", SEVERAL, False),
        ("1", "", ["NVIDIA H200"] * 2, False),
        ("1", "", [], False),  # the driver does not tell
        ("GPU-8f2a,MIG-0a1b", "", SEVERAL, False),
        ("-1", "", SEVERAL, False),
        ("", "", SEVERAL, False),
    ],
)
def test_numbers_of_cards_that_mean_others_to_the_user_are_refused(
    shown: str, order: str, cards: list[str], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", order)
    here = dataclasses.replace(made.MACHINE, gpus=cards)
    words = r"CUDA_VISIBLE_DEVICES=.* is ambiguous, .*\(NVIDIA H200, NVIDIA L4\).* UUIDs, which nvidia-smi -L prints"
    with pytest.raises(UsageError, match=words) if is_refused else nullcontext():
        plan_cases.make(registry.planner(RunConfig()), [made.selected()], TORCH_ALONE, here)
    plan_cases.make(registry.planner(RunConfig(devices=["cpu"])), [made.selected()], TORCH_ALONE, here)


def test_what_is_missing_is_said_with_what_was_seen_and_with_a_remedy() -> None:
    ((_, failure),) = make(devices=["gpu"]).absent
    assert failure.remedy == plan_cases.DOCTOR
    with pytest.raises(MissingBackend, match=r"no device gpu(.|\n)*jax 0.10.2 sees cpu\n(.|\n)*kerasbench doctor"):
        make(JAX_ALONE, devices=["gpu"])
    with pytest.raises(MissingBackend, match=r"no backend(.|\n)*kerasbench\[jax\]"):
        make(probes(jax=GONE))


def test_a_plan_s_threads_are_limited_by_the_machine_that_it_is_for() -> None:
    asked = registry.planner(RunConfig(options=[Options(threads=3)]))
    for cores, measured in ((2, 0), (3, 1)):
        here = dataclasses.replace(made.MACHINE, cores=cores)
        assert len(plan_cases.make(asked, [made.selected()], JAX_ALONE, here).cases) == measured


def test_a_control_is_a_second_one_of_the_first_case_of_each_row() -> None:
    cases = make(options=[Options(), Options(jit=False), Options(batch=8)], control=True, devices=["cpu"]).cases
    controls = [case for case in cases if case.options.control]
    assert labels(controls) == ["dense torch cpu control=on", "dense torch cpu control=on batch=8"]
    assert (len(cases), dataclasses.replace(controls[0], options=Options())) == (8, cases[0])


def test_versions_that_are_compared_have_a_row_for_each_backend_and_device_and_a_control_of_the_base() -> None:
    versions = probes(torch_old=TORCH, torch_new=NEWER, jax_old=JAX, jax_new=JAX)
    rows: dict[str, list[str]] = {}
    for case in make(versions, **PAIRED, control=True).cases:
        rows.setdefault(case.row_label, []).append(case.options.label)
    alike = ["@old", "@new", "@old control=on"]
    assert rows == {"dense torch cpu": alike, "dense torch gpu": alike, "dense jax cpu": alike}
    assert len({case.row for case in make(VERSIONS).cases}) == 1  # which are not compared alone


@pytest.mark.parametrize(("plan", "measured"), [(SWEEP, 0), (TrialPlan(fixed_time=True), 0), (TrialPlan(), 1)])
def test_steps_of_what_is_not_trained_are_refused(plan: TrialPlan, measured: int) -> None:
    planned = make(JAX_ALONE, [UNTRAINED], effort=dataclasses.replace(DEFAULT, plan=plan))
    assert (len(planned.cases), len(planned.absent)) == (measured, 1 - measured)


def test_a_built_in_scenario_is_named_by_its_label_and_another_by_its_file() -> None:
    selected = made.selected(workload_name="a")
    words = [made.changed(selected, entry=said).word for said in ({"suite": "tiny"}, {"file": Path("my models/d.py")})]
    assert words == ["dense/a", "'my models/d.py'/a"]


@pytest.mark.parametrize(
    ("selected", "device", "options", "reason"),
    [
        (TWINNED, made.CPU, Options(fp32="tf32"), "TF32 is a mode of NVIDIA GPUs, not of cpu"),
        (TWINNED, Device("mps"), Options(fp32="tf32"), "not of mps"),
        (TWINNED, CUDA, Options(fp32="tf32"), ""),
        (TWINNED, Device("mps"), Options(dtype="float64"), "no float64"),
        (TWINNED, made.CPU, Options(jit=True, dtype="float64", fp32="framework-default", threads=1), ""),
        (TWINNED, made.CPU, Options(threads=10_000), "10000 threads were asked for"),
        (TWINNED, CUDA, Options(malloc="keep"), "on Linux with glibc"),
        (TWINNED, made.CPU, Options(native=True, dtype="float32", fp32="framework-default", threads=1), ""),
        (TWINNED, made.CPU, Options(native=True, jit=False), "is compiled as its framework does"),
        (TWINNED, made.CPU, Options(native=True, dtype="mixed_bfloat16"), "computes in float32"),
        (of_workload(keras_only="a feed"), made.CPU, Options(native=True), "dense has a feed, which a native baseline"),
    ],
)
def test_what_a_column_does_not_support(selected: Selected, device: Device, options: Options, reason: str) -> None:
    failure = plan_cases.unsupported(Case(selected, "torch", device, options), registry.planner(RunConfig()), 2)
    assert bool(failure) is bool(reason)
    assert failure is None or reason in failure.cause


def test_memory_is_kept_where_there_is_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = made.case(options=Options(malloc="keep"))
    for has_glibc in (True, False):
        monkeypatch.setattr(malloc, "has_glibc", lambda answer=has_glibc: answer)
        assert (plan_cases.unsupported(keep, registry.planner(RunConfig()), 2) is None) is has_glibc


def test_a_script_s_own_loop_has_steps_alone() -> None:
    loop = made.changed(made.selected(), workload={"loops": True})
    planned = make(TORCH_ALONE, [loop], devices=["cpu"], effort=Effort(plan=TrialPlan().of_kind("calls")))
    ((_, failure),) = planned.absent
    assert failure.cause == "of a script's own loop, steps are measured alone"
    several = Options(steps_per_execution=8)
    planned = make(TORCH_ALONE, [loop], devices=["cpu"], options=[Options(), several])
    assert [case.options for case in planned.cases] == [Options()]
    assert planned.absent[0][1].cause == "a script's own loop makes single steps"


def test_calls_train_nothing_and_are_of_baselines_in_either_mode() -> None:
    entry = dataclasses.replace(made.entry("dense", ("default", "large")), baselines={"torch": "hash"})
    chosen = [Selected(entry, workload) for workload in entry.description.workloads]
    modes = [Options(jit=jit, native=native) for jit in (None, True) for native in (None, True)]
    planned = make(
        TORCH_ALONE, chosen, devices=["cpu"], options=modes, effort=Effort(plan=TrialPlan().of_kind("calls"))
    )
    assert ([case.options for case in planned.cases], planned.absent) == (2 * modes, [])
    assert all(case.selected.workload.predicts_only for case in planned.cases)
    assert len({id(case.selected.entry) for case in planned.cases}) == 1
    assert all(workload.predicts_only for workload in planned.cases[0].selected.entry.description.workloads)
