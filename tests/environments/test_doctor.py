"""The doctor: what it says of recorded machines, in good order and made sick; and that its commands can be pasted."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kerasbench.cli.preparing import create
from kerasbench.environments import doctor
from kerasbench.environments.doctor import BackendFacts, Facts, diagnose
from kerasbench.environments.interpreters import Interpreters
from kerasbench.host.nvidia import Card
from kerasbench.processes import questions
from kerasbench.protocol.columns import CPU, Device, Environment
from kerasbench.protocol.messages import Code, Failure, Inventory, ProbeReport
from tests.environments.cases import NOTHING_HEARD, backend, but, fails, gone, in_state, installed, load, on

Said = tuple[str, str, str, str]  # how grave, with which backends, the remedy ($ before a command), words of the cause
Case = tuple[Facts, *tuple[Said, ...]]
M1, BOX, QUIET = load("m1"), load("cuda"), load("linux_cpu")
CREATE = shlex.join([sys.executable, "-m", "kerasbench", "env", "create", "--backend"])
KERAS = "'keras>=3.12' 'numpy>=1.26'"


def line(gravity: str, backends: str, remedy: str, cause: str) -> Said:
    return gravity, backends, remedy, cause


error, warning, note = (partial(line, gravity) for gravity in ("error", "warning", "note"))


def env(*words: str) -> str:
    return f"$ {CREATE} {' '.join(words)} --force"


def pip(facts: Facts, name: str, *arguments: str) -> str:
    return " ".join(["$", shlex.quote(backend(facts, name).interpreter), "-m pip install", *arguments])


def of(facts: Facts, *names: str) -> Facts:
    return replace(facts, backends=[backend(facts, name) for name in names])


def sees(facts: Facts, name: str, devices: Sequence[Device] = (Device(CPU),), **versions: str) -> Facts:
    """Return the facts with a backend that sees other devices (the CPU alone), or tells other versions."""
    before = backend(facts, name).probe
    assert isinstance(before, ProbeReport)
    told = before.versions | {package.replace("_", "-"): version for package, version in versions.items()}
    return but(facts, name, probe=replace(before, devices=list(devices), versions=told))


# What is installed.

OLD_KERAS = {"keras": "2.15.0"}
OLD = Failure(Code.UNAVAILABLE, "/usr/bin/python3 is Python 3.9", "kerasbench needs Python 3.11 or newer", "import")
TOO_NEW = installed(gone(QUIET, "tensorflow"), "tensorflow", {}, python="3.14.1")
TORCH = pip(QUIET, "torch", KERAS, "'torch>=2.6'")
LAST_WORDS = 'Traceback (most recent call last):\n  File "x.py"\nImportError: libcusparse.so\n'
AGAIN = pip(QUIET, "torch", "--force-reinstall", KERAS, "'torch>=2.6'")
METAL = "'tensorflow>=2.18,<2.20' tensorflow-metal==1.2.0"
METAL_AGAIN = pip(M1, "tensorflow", "--force-reinstall", KERAS, METAL)
KERAS_OF_JAX = pip(QUIET, "jax", KERAS)


def with_keras(version: str | None, package: str = "keras") -> Facts:
    return installed(of(QUIET, "jax"), "jax", {"keras": None, package: version})


def with_mlx(keras: Mapping[str, str], *others: str) -> Facts:
    """MLX beside a Keras, and other backends with the one of the record."""
    packages = {"mlx": "0.31.2", "keras-mlx": "0.0.1", **keras}
    probe = ProbeReport("mlx", "3.12.1", {"keras": next(iter(keras.values()), "")}, [Device(CPU), Device("metal")])
    mlx = BackendFacts("mlx", "/venvs/mlx/bin/python", "", Inventory("3.12.1", "/venvs/mlx", "arm64", packages), probe)
    return replace(M1, backends=[mlx, *(backend(M1, name) for name in others)])


def silent(facts: Facts, name: str, failure: Failure) -> Facts:
    return but(facts, name, inventory=failure, probe=failure)


INSTALLED: list[Case] = [
    *((facts,) for facts in (M1, BOX, QUIET)),
    (silent(QUIET, "jax", NOTHING_HEARD), error("jax", NOTHING_HEARD.remedy, NOTHING_HEARD.cause)),
    # Once for all that it runs.
    (silent(silent(QUIET, "jax", OLD), "torch", OLD), error("jax, torch", OLD.remedy, OLD.cause)),
    (TOO_NEW, error("tensorflow", env("tensorflow", "--interpreter", "python3.13"), "wheels for 3.13 and older")),
    (gone(QUIET, "torch"), note("torch", TORCH, "torch is not installed in /home/user")),
    (but(gone(QUIET, "torch"), "torch", source="/x/k.toml"), error("torch", TORCH, "torch is not installed")),
    (with_keras(None), error("jax", KERAS_OF_JAX, "keras is not installed beside")),
    (with_keras("3.11.3"), error("jax", KERAS_OF_JAX, "keras 3.11.3 is too old")),
    (with_keras("3.15.2.dev1", "keras-nightly"),),
    (with_keras("3.9.0.dev1", "keras-nightly"), error("jax", KERAS_OF_JAX, "3.9.0.dev1 is too old")),
    (with_keras("3.17.0"), warning("jax", "nothing, unless workloads fail", "keras 3.17.0 is newer")),
    (with_keras("3.17.0.dev202", "keras-nightly"), warning("jax", "nothing, unless", "3.17.0.dev202 is newer")),
    (
        installed(installed(QUIET, "torch", {"keras": "3.12.0"}), "jax", {"keras": "3.15.0"}),
        warning("jax", pip(QUIET, "jax", "keras==3.15.1"), "keras 3.15.0 here and 3.15.1"),
        warning("torch", pip(QUIET, "torch", "keras==3.15.1"), "keras 3.12.0 here and 3.15.1"),
    ),
    (
        installed(installed(installed(M1, "jax", OLD_KERAS), "tensorflow", OLD_KERAS), "torch", OLD_KERAS),
        error("jax, tensorflow, torch", pip(M1, "jax", KERAS), "keras 2.15.0 is too old"),  # one command for all
    ),
    # MLX, of which pip would install the latest Keras beside a nightly.
    (with_mlx({"keras": "3.15.1"}), error("mlx", env("mlx"), "keras 3.15.1 is too old")),
    (with_mlx({}), error("mlx", env("mlx"), "keras is not installed beside mlx")),
    (with_mlx({"keras-nightly": "3.16.0.dev202"}),),
    (with_mlx({"keras": "3.16.0"}),),
    (with_mlx({"keras-nightly": "3.16.0.dev202"}, "torch"), note("mlx", "", "3.15.1 elsewhere: ratios compare these")),
    (gone(installed(with_mlx({}), "mlx", {"keras-mlx": None}), "mlx"), note("mlx", env("mlx"), "mlx is not installed")),
    (
        fails(with_mlx({"keras-nightly": "3.16.0.dev202"}), "mlx", "died"),
        error("mlx", env("mlx"), "does not load: died"),
    ),
    # What was imported is no fault, whatever its distribution is called, and however new its Python is.
    (installed(QUIET, "tensorflow", {"tensorflow": None, "tensorflow-cpu": "2.21.0"}),),
    (installed(QUIET, "torch", {}, python="3.14.1"),),
    (fails(QUIET, "torch", "died", LAST_WORDS), error("torch", AGAIN, "not load: died (ImportError: libcusparse.so)")),
    (
        fails(BOX, "jax", "died"),
        error("jax", pip(BOX, "jax", "--force-reinstall", KERAS, "'jax[cuda13]>=0.7'"), "not load: died"),
    ),
    (fails(M1, "tensorflow", "died", "died\n"), error("tensorflow", METAL_AGAIN, "does not load: died")),  # said once
    (
        installed(in_state(gone(M1, "torch"), on_battery=True), "jax", {"jax-metal": "0.1.1"}),  # the gravest first
        error("jax", env("jax"), "jax-metal 0.1.1"),
        warning("", "plug it in", "runs on battery"),
        note("torch", pip(M1, "torch", KERAS, "'torch>=2.6'"), "torch is not installed"),
    ),
]

# Macs. tensorflow pull request 126360: what `import tensorflow` says from 2.20 on with tensorflow-metal 1.2.0.

DLOPEN = "NotFoundError: dlopen(libmetal_plugin.dylib, 0x0006): Library not loaded: @rpath/_pywrap_tensorflow.so"
UNLOADABLE = "cannot be loaded by TensorFlow"
WITH_METAL = pip(M1, "tensorflow", METAL)
NO_METAL, NO_MPS = (installed(M1, name, {f"{name}-metal": None, f"{name}-mps": None}) for name in ("tensorflow", "jax"))
JAX_METAL = installed(NO_MPS, "jax", {"jax": "0.12.0", "jax-metal": "0.1.1"})  # jax issue 27062
BLIND_JAX = sees(of(NO_MPS, "jax"), "jax", jax_wheel="CPU")
JAX_0_11 = pip(M1, "jax", "'jax>=0.11,<0.12'")
PYTHON_3_12 = env("tensorflow", "--interpreter", "python3.12")
SWITCH = "PYTORCH_ENABLE_MPS_FALLBACK"
ROSETTA = "install an arm64 Python 3.12 (python.org, or Homebrew in /opt/homebrew) and recreate the environment"
# What `.[all]` installs there: TensorFlow 2.21 for the CPU, torch, jax-mps.
PYTHON_3_13 = sees(installed(M1, "tensorflow", {"tensorflow-metal": None}, python="3.13.9"), "tensorflow")


def tensorflow(version: str, metal: str, cause: str = "", facts: Facts = M1) -> Facts:
    facts = installed(facts, "tensorflow", {"tensorflow": version, "tensorflow-metal": metal})
    return fails(facts, "tensorflow", cause) if cause else facts


def under_rosetta(facts: Facts) -> Facts:
    """An x86-64 Python, with what pip brings there: nothing that is new enough but plain Python packages."""
    for name in ("jax", "tensorflow", "torch"):
        facts = installed(gone(facts, name), name, {}, architecture="x86_64")
        facts = but(facts, name, interpreter="/usr/local/bin/python3.12")
    return facts


MACS: list[Case] = [
    *(
        (tensorflow(version, metal, DLOPEN), error("tensorflow", WITH_METAL, f"{metal} {UNLOADABLE} {version}"))
        for version, metal in (("2.21.0", "1.2.0"), ("2.20.0", "1.2.0"), ("2.18.1", "1.1.0"))
    ),
    *((tensorflow(*versions),) for versions in (("2.17.1", "1.1.0"), ("2.18.1", "1.2.0"), ("2.19.1", "1.2.0"))),
    (PYTHON_3_13, warning("tensorflow", PYTHON_3_12, "which ends at Python")),
    # It cannot be mended there.
    (tensorflow("2.21.0", "1.2.0", facts=PYTHON_3_13), error("tensorflow", PYTHON_3_12, f"{UNLOADABLE} 2.21.0")),
    (sees(NO_METAL, "tensorflow"), warning("tensorflow", WITH_METAL, "no Apple GPU without tensorflow-metal")),
    # Another plug-in that brings the GPU is as good.
    (installed(NO_METAL, "tensorflow", {"tensorflow": "2.21.0", "tensorflow-metal-plugin": "0.4.1"}),),
    (sees(installed(NO_MPS, "jax", {"metaljax": "0.11.9"}), "jax", [Device(CPU), Device("metal")]),),
    (under_rosetta(M1), error("jax, tensorflow, torch", ROSETTA, "python3.12 is an x86-64 Python")),
    *(
        (sees(installed(facts, name, {}, architecture="x86_64"), name), error(name, ROSETTA, "x86-64 Python"))
        for name, facts in (("tensorflow", NO_METAL), ("jax", NO_MPS))  # it is offered no plug-in
    ),
    (under_rosetta(on(M1, apple_silicon=False)), warning("", "measure on another machine", "an Intel Mac")),
    (fails(JAX_METAL, "jax", "XlaRuntimeError"), error("jax", env("jax"), "jax-metal 0.1.1 is broken")),
    (installed(M1, "jax", {"jax": "0.12.0.1"}), error("jax", JAX_0_11, "0.11.1 needs JAX 0.11, this is 0.12")),
    *(
        (installed(BLIND_JAX, "jax", {}, python=python), warning("jax", pip(M1, "jax", wanted), "no Apple GPU without"))
        for python, wanted in (("3.11.14", "'jax-mps>=0.10,<0.11'"), ("3.12.12", "'jax-mps>=0.11,<0.12'"))
    ),
    (on(sees(NO_MPS, "jax"), macos=(13, 6)), note("", "update macOS, or measure", "macOS 13.6: jax-mps")),
    (on(M1, macos=(14, 0)),),
    (replace(M1, variables={SWITCH: "1"}), warning("torch", f"$ unset {SWITCH}", f"{SWITCH} is set")),
    (replace(M1, variables={SWITCH: "0"}),),
    (replace(BOX, variables={SWITCH: "1"}),),
]

# NVIDIA GPUs. Driver 535 speaks CUDA 12 (CUDA toolkit's release notes).

TWO_CARDS = [Device(CPU), Device("cuda", 0, "NVIDIA H200"), Device("cuda", 1, "NVIDIA H200")]
# What pip brings without an extra: torch's CPU index, plain jax, and TensorFlow, whose only build is for CUDA.
CPU_TORCH = installed(BOX, "torch", {"torch": "2.15.0+cpu", "nvidia-cudnn-cu13": None})
CPU_TORCH = sees(CPU_TORCH, "torch", torch="2.15.0+cpu", torch_wheel="CPU")
CPU_JAX = installed(CPU_TORCH, "jax", {"jax-cuda13-plugin": None, "jax-cuda13-pjrt": None})
CPU_BUILDS = installed(sees(CPU_JAX, "jax", jax_wheel="CPU"), "tensorflow", {"nvidia-cudnn-cu12": None})
CPU_BUILDS = sees(CPU_BUILDS, "tensorflow")
# One environment for TensorFlow and torch, as pip resolves it without a word: the files are the same ten.
BOTH = {"tensorflow": "2.21.0", "torch": "2.15.0", "nvidia-cudnn-cu12": "9.28.0.13", "nvidia-cudnn-cu13": "9.26.0.51"}
BOTH_CUDNNS = of(installed(installed(BOX, "tensorflow", BOTH), "torch", BOTH), "tensorflow", "torch")
CUDNNS = [error(name, env(name, "--cuda"), "overwrite each other's files") for name in ("tensorflow", "torch")]
EXCLUSIVE = replace(BOX.machine.cards[0], exclusive=True)
UPDATE = "update the NVIDIA driver"
NVIDIA_ML_PY = f"$ {shlex.quote(sys.executable)} -m pip install nvidia-ml-py"
VISIBLE = "CUDA_VISIBLE_DEVICES"
HIDDEN = {"-1": 0, "": 0, "1": 1, "0,-1,1": 1, "-1,0": 0, "GPU-8f2a, 1": 2}


def showing(value: str, facts: Facts = BOX) -> Facts:
    return replace(on(facts, cards=BOX.machine.cards * 3), variables={VISIBLE: value})


def driven_by(facts: Facts, driver: str) -> Facts:
    return on(facts, cards=[Card("NVIDIA H200", driver)])


CARDS: list[Case] = [
    (
        CPU_BUILDS,
        error("tensorflow", env("tensorflow --cuda"), "tensorflow is built for CUDA 12 and sees no GPU"),
        warning("jax", env("jax --cuda"), "this jax is a CPU build, on a machine with NVIDIA"),
        warning("torch", env("torch --cuda"), "this torch is a CPU build, on a machine with NVIDIA H200"),
    ),
    (driven_by(of(CPU_BUILDS, "torch"), "470.256.02"), warning("torch", f"{UPDATE}, 525", "this torch is a CPU build")),
    (
        sees(sees(driven_by(BOX, "535.183.06"), "jax"), "torch"),  # TensorFlow's build is fine
        *(error(name, env(f"{name} --cuda"), f"this {name} is built for CUDA 13") for name in ("jax", "torch")),
    ),
    (
        sees(sees(sees(driven_by(BOX, "470.256.02"), "jax"), "tensorflow"), "torch"),
        *(
            error(name, f"{UPDATE}, {driver} or newer", f"this {name} is built")
            for name, driver in (("jax", 580), ("tensorflow", 525), ("torch", 580))
        ),
    ),
    (on(CPU_BUILDS, cards=[]), warning("", "install NVIDIA's driver, version 580", "no driver lists it")),
    (on(BOX, cards=[], nvidia_package_missing=True), warning("", NVIDIA_ML_PY, "there is an NVIDIA driver, but")),
    *(
        (facts, note("", f"$ unset {VISIBLE}", f"{VISIBLE}={value} shows {shown} of 3 NVIDIA GPUs"))
        for value, shown in HIDDEN.items()
        for facts in (showing(value), showing(value, sees(BOX, "torch")))  # the build is not to blame
    ),
    (on(BOX, cards=[EXCLUSIVE]), warning("", "$ sudo nvidia-smi -c DEFAULT", "EXCLUSIVE_PROCESS")),
    (BOTH_CUDNNS, *CUDNNS),
    (fails(BOTH_CUDNNS, "torch", "ImportError: libcudnn.so.9: undefined symbol"), *CUDNNS),  # which is why
    (on(CPU_BUILDS, cards=[], makers=["AMD"]),),  # there is no card
    # NVIDIA's forward compatibility packages let a data centre's driver run a newer CUDA.
    (driven_by(BOX, "535.183.06"),),
    # CUDA 11 asks for driver 450: the list of drivers does not reach that far down.
    (driven_by(sees(of(BOX, "torch"), "torch", torch_wheel="CUDA 11.8"), "470.256.02"),),
    (replace(BOX, variables={VISIBLE: "0"}),),  # which hides none
    (on(sees(sees(BOTH_CUDNNS, "tensorflow"), "torch"), cards=[], makers=[]),),  # for a CPU
    (sees(on(BOX, cards=BOX.machine.cards * 2), "torch", TWO_CARDS),),
]

# What surrounds a measurement.

SHELL = {VISIBLE: "0", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--x"}
KEPT = "--keep-env OMP_NUM_THREADS,XLA_FLAGS"
GOVERNOR = "$ sudo cpupower frequency-set --governor performance"
SURROUNDINGS: list[Case] = [
    (in_state(BOX, on_battery=True), warning("", "plug it in", "runs on battery")),
    (in_state(BOX, busy_share=0.4), warning("", "close other programs", "40 % of the CPU in use")),
    (in_state(BOX, thermal_level=2), warning("", "let the machine cool down", "thermal pressure, level 2")),
    (in_state(BOX, governors=["powersave"]), warning("", GOVERNOR, "frequency governor powersave")),
    (in_state(BOX, quota_cores=1.5), warning("", "give the container all", "a control group allows 1.5 of 16")),
    (replace(BOX, variables=SHELL), note("", f"nothing, or pass them on with {KEPT}", ": JAX_PLATFORMS, OMP_NUM_")),
    (replace(BOX, variables={"KERAS_BACKEND": "jax"}), note("", "", "KERAS_BACKEND")),
]


@pytest.mark.parametrize("case", [*INSTALLED, *MACS, *CARDS, *SURROUNDINGS])
def test_what_is_wrong_is_said_with_a_remedy_that_can_be_taken(case: Case) -> None:
    facts, *said = case
    problems = diagnose(facts)
    assert [(problem.severity.value, problem.backend) for problem in problems] == [line[:2] for line in said]
    for problem, (_, _, remedy, cause) in zip(problems, said, strict=True):
        assert cause in problem.cause
        if not problem.is_command:
            assert problem.remedy.startswith(remedy) and not remedy.startswith("$")
            continue
        assert f"$ {problem.remedy}" == remedy
        _, *words = shlex.split(problem.remedy)
        if words[:4] == ["-m", "kerasbench", "env", "create"]:  # the real parsers read it, without executing it
            create.make_context("create", words[4:])
        elif words[:3] == ["-m", "pip", "install"]:
            assert all(Requirement(word) for word in words[3:] if word != "--force-reinstall")
        else:
            assert problem.remedy.startswith(("sudo ", "unset "))


def test_every_backend_is_asked_by_its_own_interpreter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "look_at_machine", lambda: QUIET.machine)
    monkeypatch.setattr(questions, "inventory", lambda python, tick: Inventory("3.12.1", python, "x86_64", {}))
    monkeypatch.setattr(questions, "probe", lambda name, python, tick: ProbeReport(name, python, {}, []))
    mine = tmp_path / "python"
    mine.touch(mode=0o755)
    torch, tensorflow = Environment("torch"), Environment("tensorflow")
    sources = {torch: "--python", tensorflow: "/here/k.toml"}
    named = Interpreters({torch: str(mine), tensorflow: "/gone/python"}, sources)
    *there, gone = doctor.gather(["jax", "torch", "tensorflow"], named).backends
    assert there == [
        BackendFacts(name, python, source, Inventory("3.12.1", python, "x86_64", {}), ProbeReport(name, python, {}, []))
        for name, python, source in (("jax", sys.executable, ""), ("torch", str(mine), "--python"))
    ]
    said = Failure(Code.UNAVAILABLE, "no interpreter at /gone/python", "correct the path in /here/k.toml", "spawn")
    assert (gone.inventory, gone.probe) == (said, said)
    assert (gone.packages, gone.installed, gone.python, gone.sees_gpu) == ({}, False, (), False)
