"""Every backend's module, without its framework: what all have in common, and what one alone does with a stand-in."""

import inspect
import sys
import warnings
from collections import defaultdict
from contextlib import nullcontext
from fnmatch import fnmatchcase
from importlib import metadata
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kerasbench import backends, private
from kerasbench.backends import Backend, jax, tensorflow, torch
from kerasbench.private import LostNameError
from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Compiler
from tests import made
from tests.backends.mlx import put_mlx

FUNCTIONS = {name for name, value in vars(Backend).items() if inspect.isfunction(value) and not name.startswith("_")}
CPU, CUDA, MPS, METAL = Device("cpu"), Device("cuda", 1), Device("mps"), Device("metal")


@pytest.mark.parametrize("name", backends.names())
def test_a_backend_defines_exactly_what_the_interface_says(name: str) -> None:
    module = backends.get(name)
    assert all(hasattr(module, constant) for constant in Backend.__annotations__)
    assert all(any(fnmatchcase(variable, pattern) for pattern in module.VARIABLES) for variable in module.HEEDED)
    for function in FUNCTIONS:
        expected = list(inspect.signature(getattr(Backend, function)).parameters)[1:]
        assert list(inspect.signature(getattr(module, function)).parameters) == expected, function
    functions = [function for function in vars(module).values() if inspect.isfunction(function)]
    defined = {function.__name__ for function in functions if function.__module__ == f"{backends.__name__}.{name}"}
    public = {function for function in defined if not function.startswith("_")}
    assert public - Backend.__annotations__.keys() == FUNCTIONS


@pytest.mark.parametrize(
    ("name", "device", "expected"),
    [
        ("torch", CPU, {"KERAS_TORCH_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": "-1"}),
        ("torch", CPU, dict.fromkeys(("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"), "/caches")),
        ("torch", CUDA, {"PYTORCH_KERNEL_CACHE_PATH": "/caches"}),
        ("torch", CUDA, {"KERAS_TORCH_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": "1"}),
        ("torch", Device("rocm"), {"KERAS_TORCH_DEVICE": "cuda", "CUDA_VISIBLE_DEVICES": "0"}),
        ("torch", MPS, {"KERAS_TORCH_DEVICE": "mps"}),
        ("jax", CPU, {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "-1", "JAX_ENABLE_COMPILATION_CACHE": "false"}),
        ("jax", CUDA, {"JAX_PLATFORMS": "cuda,cpu", "CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}),
        ("jax", Device("rocm"), {"JAX_PLATFORMS": "rocm,cpu", "HIP_VISIBLE_DEVICES": "0"}),
        ("jax", MPS, {"JAX_PLATFORMS": "mps,cpu"}),
        ("tensorflow", CPU, {"CUDA_VISIBLE_DEVICES": "-1"}),
        ("tensorflow", CUDA, {"CUDA_VISIBLE_DEVICES": "1", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}),
    ],
)
def test_the_environment_shows_one_device(name: str, device: Device, expected: dict[str, str]) -> None:
    assert expected.items() <= backends.get(name).environment(device, "/caches").items()


class CaseInRow(NamedTuple):
    platform: str
    id: int = 0


JAX_GPU, JAX_CPU = CaseInRow("gpu"), CaseInRow("cpu")


def fake_jax(monkeypatch: pytest.MonkeyPatch, default: list[CaseInRow], new_array: CaseInRow) -> Any:
    """Put a jax with these devices on its default platform, which puts a new array on that one, before the real one."""
    module: Any = SimpleNamespace(
        devices=lambda: default,
        default_backend=lambda: default[0].platform,
        config=SimpleNamespace(update=lambda name, value: None),
        monitoring=SimpleNamespace(register_event_duration_secs_listener=lambda listener: None),
        numpy=SimpleNamespace(zeros=lambda shape: SimpleNamespace(devices=lambda: {new_array})),
    )
    monkeypatch.setitem(sys.modules, "jax", module)
    return module


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "mps"])
def test_a_gpu_that_jax_passed_over_is_not_replaced_by_the_cpu(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_jax(monkeypatch, [JAX_CPU], JAX_CPU)
    complaint = f"JAX finds no {platform} device here, and would use the CPU"
    with pytest.raises(RuntimeError, match=complaint) if platform != "cpu" else nullcontext():
        jax.configure(Device(platform))
    fake_jax(monkeypatch, [JAX_GPU], JAX_GPU)
    jax.configure(Device(platform))


@pytest.mark.parametrize(
    ("default", "new_array", "seen"),
    [
        ([JAX_CPU], JAX_CPU, ["cpu:0"]),
        ([JAX_GPU], JAX_GPU, ["gpu:0"]),
        ([JAX_GPU, CaseInRow("gpu", 1)], JAX_GPU, ["gpu:0", "gpu:1"]),
        ([JAX_GPU], JAX_CPU, ["cpu:0", "gpu:0"]),  # jax_default_device was set to the CPU
    ],
)
def test_the_runtime_s_view_is_of_the_default_platform_and_of_where_a_new_array_lies(
    default: list[CaseInRow], new_array: CaseInRow, seen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_jax(monkeypatch, default, new_array)
    assert jax.runtime_view() == seen


def test_what_jax_tells_of_its_cache_is_no_time_that_it_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    listeners: list[Any] = []
    module = fake_jax(monkeypatch, [JAX_CPU], JAX_CPU)
    module.monitoring.register_event_duration_secs_listener = listeners.append
    monkeypatch.setattr(jax, "_spent_s", defaultdict(list))
    jax.configure(CPU)
    (listener,) = listeners
    events = {  # jax 0.10.2: dispatch.py, compiler.py
        "/jax/core/compile/jaxpr_trace_duration": 1.0,
        "/jax/core/compile/jaxpr_to_mlir_module_duration": 2.0,
        "/jax/core/compile/backend_compile_duration": 4.0,
        "/jax/compilation_cache/compile_time_saved_sec": 8.0,
        "/jax/compilation_cache/cache_retrieval_time_sec": 16.0,
    }
    for event, seconds in events.items():
        listener(event, seconds, fun_name="step")
    assert jax.compiler(None) == Compiler(traces=1, programs=1, seconds=7.0)


@pytest.mark.parametrize(("plugins", "wheel"), [({}, "CPU"), ({"jax-cuda13-plugin": "0.10.1"}, "jax-cuda13-plugin")])
def test_its_versions_are_those_of_its_compiler_and_plug_in_too(
    plugins: dict[str, str], wheel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"jaxlib": "0.10.1"} | plugins

    def version(package: str) -> str:
        if package not in known:
            raise metadata.PackageNotFoundError(package)
        return known[package]

    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(__version__="0.10.2"))
    monkeypatch.setattr(metadata, "version", version)
    assert jax.versions() == known | {"jax": "0.10.2", "jax-wheel": wheel}


# pytorch issues 77764 and 106594, and a warning of torch's that is about something else (roboflow/rf-detr issue 29).
FALLS_BACK = (
    "The operator 'aten::{}' is not currently supported on the MPS backend and will fall back to run on the CPU. This "
    "may have performance implications. (Triggered internally at /Users/runner/pytorch/aten/src/ATen/mps/"
    "MPSFallback.mm:11.)"
)
CHOLESKY, SGN = FALLS_BACK.format("linalg_cholesky_ex.L"), FALLS_BACK.format("sgn.out")
MESHGRID = "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."


@pytest.fixture
def mps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A torch on the Apple GPU, with fallbacks allowed, which keeps the devices from which a number was copied."""
    stand_in: Any = SimpleNamespace(always=False, copied=[])
    stand_in.set_warn_always = lambda on: setattr(stand_in, "always", on)
    stand_in.zeros = lambda shape, device: SimpleNamespace(cpu=lambda: stand_in.copied.append(device))
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    monkeypatch.setattr(torch, "_default_device", lambda: "mps")
    monkeypatch.setenv(torch.FALLBACK, "1")
    return stand_in


def test_the_apple_gpu_is_waited_for_by_an_operation_behind_all_others(mps: Any) -> None:
    torch.synchronize(None)  # torch.mps.synchronize(), which may abort beside Keras' pool thread, is not there
    assert mps.copied == ["mps"]


def test_what_falls_back_is_counted_by_its_name_and_torch_warns_as_before_then(mps: Any) -> None:
    def step() -> None:
        """Torch has given its warning before, and warns again where it is told to warn always."""
        for text in (CHOLESKY, SGN, MESHGRID, SGN) if mps.always else ():
            warnings.warn(text, UserWarning, stacklevel=1)

    assert torch.fallbacks(step) == {"aten::linalg_cholesky_ex.L": 1, "aten::sgn.out": 2}
    assert not mps.always
    with pytest.raises(ZeroDivisionError):
        torch.fallbacks(lambda: 1 // 0)
    assert not mps.always


@pytest.mark.parametrize(("device", "value"), [("mps", None), ("mps", "0"), ("cpu", "1"), ("cuda:0", "1")])
@pytest.mark.usefixtures("mps")
def test_no_step_is_run_if_nothing_falls_back(device: str, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_default_device", lambda: device)
    monkeypatch.delenv(torch.FALLBACK)
    if value is not None:
        monkeypatch.setenv(torch.FALLBACK, value)
    assert torch.fallbacks(lambda: pytest.fail("the step was run")) == {}


@pytest.mark.parametrize(("platform", "reaches"), [("mps", True), ("cpu", False), ("cuda", False)])
def test_the_switch_reaches_the_apple_gpu_alone(platform: str, reaches: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(torch.FALLBACK, "1")
    assert (torch.FALLBACK in torch.environment(Device(platform), "")) is reaches
    monkeypatch.delenv(torch.FALLBACK)
    assert torch.FALLBACK not in torch.environment(Device(platform), "")


@pytest.mark.parametrize(
    ("graphs", "reason", "eager"),
    [
        (3, "Attempt to trace generator", ""),
        (3, "Dynamo recompile limit exceeded\n  Explanation: ...", torch.AT_LIMIT),
        (3, "cache_size_limit reached", torch.AT_LIMIT),  # torch 2.6
        (0, "Attempt to trace generator", torch.NO_GRAPH),
    ],
)
def test_torch_tells_its_graphs_the_most_frequent_breaks_and_when_it_gives_up(
    graphs: int, reason: str, eager: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = {"total": 9, "ok": 7}
    counters = {"stats": {"unique_graphs": graphs}, "frames": frames, "unimplemented": {reason: 1}}
    counters["graph_break"] = {f"reason {times}\n  and where": times for times in (1, 5, 3, 2)}
    dynamo = SimpleNamespace(counters=counters, calculate_time_spent=lambda: {"total_wall_time": 21.5})
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", dynamo)
    compiler = made.known(torch.compiler(None))
    assert (compiler.programs, compiler.seconds, compiler.given_up) == (graphs, 21.5, 2)
    assert compiler.breaks == {"reason 5": 5, "reason 3": 3, "reason 2": 2}
    assert (compiler.eager, compiler.made) == (eager, graphs + 2)
    frames["total"] = 0
    assert torch.compiler(None) is None


def test_tensorflow_tells_how_often_keras_functions_were_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    def trains(traces: int) -> Any:
        multi_step_on_iterator = SimpleNamespace(experimental_get_tracing_count=lambda: traces)
        return lambda iterator: multi_step_on_iterator

    monkeypatch.setattr(tensorflow, "_graphs", {})
    assert tensorflow.compiler(SimpleNamespace()) is None
    predicts = SimpleNamespace(experimental_get_tracing_count=lambda: 1)
    model = SimpleNamespace(train_function=trains(2), test_function=None, predict_function=predicts)
    assert tensorflow.compiler(model) == tensorflow.compiler(model) == Compiler(traces=3)
    model.train_function = trains(1)  # made anew
    assert tensorflow.compiler(model) == Compiler(traces=4)


@pytest.mark.parametrize(("of_several", "of_one", "told"), [(2, 2, 2), (0, 3, 3), (0, 0, 0)])
def test_tensorflow_tells_the_traces_of_a_single_step_where_keras_calls_it_by_itself(
    monkeypatch: pytest.MonkeyPatch, of_several: int, of_one: int, told: int
) -> None:
    multi_step_on_iterator = SimpleNamespace(experimental_get_tracing_count=lambda: of_several)
    one_step_on_data = SimpleNamespace(__wrapped__=SimpleNamespace(experimental_get_tracing_count=lambda: of_one))
    monkeypatch.setattr(tensorflow, "_graphs", {})
    model = SimpleNamespace(train_function=lambda iterator: (multi_step_on_iterator, one_step_on_data))
    assert tensorflow.compiler(model) == Compiler(traces=told)


def test_jax_does_not_take_weights_that_are_elsewhere_for_ready_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[object] = []
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(block_until_ready=waited.append))
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace(__version__="3.99.0"))
    monkeypatch.setattr(private, "_lost", {})
    taken, there = SimpleNamespace(_value=None), SimpleNamespace(_value="array")
    jax.synchronize(SimpleNamespace(variables=[taken, there]))
    state, donated = (SimpleNamespace(is_deleted=lambda gone=gone: gone) for gone in (False, True))
    jax.synchronize(SimpleNamespace(variables=[taken], _jax_state={"weights": [state]}))
    jax.synchronize(SimpleNamespace(variables=[there], _jax_state={"weights": [state, donated]}))
    jax.synchronize(SimpleNamespace(variables=[]))
    assert waited == [["array"], [state], ["array"], []]
    with pytest.raises(LostNameError, match="has no _jax_state where kerasbench looks for it: it is unknown when JAX"):
        jax.synchronize(SimpleNamespace(variables=[taken]))


def test_each_backend_s_counter_of_a_card_s_memory_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    card = SimpleNamespace(memory_stats=lambda: {"peak_bytes_in_use": 7, "bytes_in_use": 4})
    memory = SimpleNamespace(get_memory_info=lambda name: {"peak": 8, "current": 5})
    cuda = SimpleNamespace(max_memory_allocated=lambda: 9, memory_allocated=lambda: 6)
    mps = SimpleNamespace(driver_allocated_memory=lambda: 11, current_allocated_memory=lambda: 10)
    config = SimpleNamespace(experimental=memory)
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(devices=lambda: [card]))
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, mps=mps))
    put_mlx(monkeypatch, get_peak_memory=lambda: 13, get_active_memory=lambda: 12)

    def counted(device: Device, *names: str) -> list[tuple[int | None, int | None]]:
        modules = list(map(backends.get, names or backends.names()))
        return [(module.device_bytes(device, True), module.device_bytes(device, False)) for module in modules]

    assert counted(CUDA, "jax", "tensorflow", "torch") == [(7, 4), (8, 5), (9, 6)]
    assert counted(MPS, "torch") == [(11, 10)]
    assert counted(METAL, "mlx") == [(13, 12)]
    assert counted(CPU) == [(None, None)] * 4
    memory.get_memory_info = card.memory_stats = lambda *_: {}  # a plug-in that does not count
    assert counted(METAL, "jax", "tensorflow") == [(None, None)] * 2


def test_a_card_s_peak_begins_anew_where_a_backend_can(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    config = SimpleNamespace(experimental=SimpleNamespace(reset_memory_stats=asked.append))
    cuda = SimpleNamespace(reset_peak_memory_stats=lambda: asked.append("torch"))
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    put_mlx(monkeypatch, reset_peak_memory=lambda: asked.append("mlx"))
    assert backends.get("jax").reset_peak is None
    resets = {name: made.known(backends.get(name).reset_peak) for name in ("mlx", "tensorflow", "torch")}
    assert [resets["torch"](CUDA), resets["tensorflow"](CUDA), resets["mlx"](METAL)] == [True] * 3
    assert asked == ["torch", "GPU:0", "mlx"]
    assert [reset(CPU) for reset in resets.values()] == [False] * 3
    assert not resets["torch"](MPS)  # which counts no peak
    del config.experimental.reset_memory_stats  # a plug-in that does not count
    assert not resets["tensorflow"](METAL)


def test_jax_carries_a_model_s_state_from_call_to_call_and_back_where_no_clock_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    class Variable:
        kept = 0

        @property
        def value(self) -> int:
            done.append("read")
            return self.kept

        def assign(self, value: int) -> None:
            done.append("assign")
            self.kept = value

    def step(state: tuple[list[int], ...], batches: Any) -> tuple[dict[str, float], tuple[list[int], ...]]:
        assert next(batches) == "a batch"
        done.append("step")
        return {}, tuple([value + 1 for value in group] for group in state)

    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(block_until_ready=lambda state: done.append("wait")))
    trained, slot = Variable(), Variable()
    model = SimpleNamespace(trainable_variables=[trained], optimizer=SimpleNamespace(variables=[slot]))
    model.non_trainable_variables = model.metrics_variables = []
    model.make_train_function, model.train_function, model.steps_per_execution = (lambda: None), step, 1
    running = made.known(jax.bare_steps(model, "a batch"))
    for called in (1, 2):
        with running() as run:
            run(2)
            run(1)
            assert done == ["read", "read", "step", "step", "wait", "step", "wait"]
        assert done[7:] == ["assign"] * 2 and (trained.kept, slot.kept) == (3 * called, 3 * called)
        done.clear()
