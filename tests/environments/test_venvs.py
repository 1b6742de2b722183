"""Making environments, with a uv that only notes down what it was asked; and what requirements mean."""

import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
import uv
from packaging.requirements import Requirement

from kerasbench import backends
from kerasbench.backends import Target, Version
from kerasbench.environments import interpreters, venvs
from kerasbench.environments.venvs import EnvironmentSpec
from kerasbench.errors import EnvironmentFailed, UsageError
from kerasbench.host import macos, nvidia
from kerasbench.host.nvidia import Card
from kerasbench.processes import questions
from kerasbench.protocol.messages import Code, Failure, Inventory

INVENTORY, ARM_PYTHON = (Inventory("3.12.1", "/usr", architecture, {}) for architecture in ("x86_64", "arm64"))
PYTHON_3_14 = Inventory("3.14.1", "/usr", "x86_64", {})
OLD_PYTHON = Failure(Code.UNAVAILABLE, "/usr/bin/python3 is Python 3.9", "", "import")
PINS = "jax==0.10.2\nkeras==3.15.1\n"
PYPROJECT = '[project]\nname = "mine" # of all names\n\n[tool.kerasbench]\n'
FILES = [
    ("kerasbench.toml", '# mine\n[python]\n# the slow one\njax = "{}" # for now\ntorch = "/torch/python"\n'),
    ("pyproject.toml", PYPROJECT + '[tool.kerasbench.python]\njax = "{}" # for now\n[tool.mypy]\nstrict = true\n'),
]
OPTIONS_OF_PIP = ("--index-url=https://evil.example/simple", "-r x://y", "--pre", "-e git+https://example.org/a")
H200, OLD, TOO_OLD = (Card("NVIDIA H200", driver) for driver in ("580.95.05", "535.183.06", "470.256.02"))
CPU_BUILDS = ("--torch-backend", "cpu")


class Uv:
    """A stand-in for uv: it notes every command with its input, and fails where it is told to."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.inputs: list[list[str]] = []
        self.fail_at, self.pins = "", PINS
        self.error: type[BaseException] = EnvironmentFailed

    def __call__(self, *arguments: str, failure: str, stdin: str = "", messages: bool = False) -> str:
        self.commands.append(arguments)
        self.inputs.append(stdin.splitlines())
        if self.fail_at in arguments:
            raise self.error(failure)
        if arguments[0] == "venv":
            shutil.rmtree(arguments[-1], ignore_errors=True)
            interpreter = interpreters.inside(Path(arguments[-1]))
            interpreter.parent.mkdir(parents=True)
            interpreter.write_text("new")
        return self.pins if "compile" in arguments else ""


def test_an_environment_of_a_runtime_has_numpy_and_that_alone(tool: Uv, tmp_path: Path) -> None:
    venvs.create("openvino", EnvironmentSpec(), tmp_path)
    assert tool.inputs[0] == ["numpy>=1.26", "openvino"]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Uv:
    tool = Uv()
    monkeypatch.setattr(venvs, "uv", tool)
    return tool


@pytest.fixture(autouse=True)
def _linux_without_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "linux")


def on(
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    inventory: Inventory | Failure = INVENTORY,
    cards: Sequence[Card] = (),
    version: Version = (),
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(questions, "inventory", lambda python: inventory)
    monkeypatch.setattr(nvidia, "cards", lambda: list(cards))
    monkeypatch.setattr(nvidia, "package_missing", lambda: False)
    monkeypatch.setattr(macos, "version", lambda: version)


def test_an_environment_has_keras_and_its_backend_and_a_lock_that_says_what_it_is(tool: Uv, tmp_path: Path) -> None:
    python = venvs.create("jax", EnvironmentSpec(gpu=False), tmp_path)
    assert python == str(tmp_path / "jax" / "bin" / "python")
    compiled, *made = tool.commands
    assert compiled[:5] == ("pip", "compile", "-", "--python", sys.executable)
    assert tool.inputs[0] == ["keras>=3.12", "numpy>=1.26", "jax>=0.5"]
    assert made == [
        ("venv", "--seed", "--clear", "--python", sys.executable, str(tmp_path / "jax")),
        ("pip", "sync", "-", "--python", python),
    ]
    head, *pins = tool.inputs[2]
    assert head.startswith("# jax by kerasbench ") and head.endswith(", Python 3.12.1, linux x86_64")
    assert pins == PINS.splitlines()
    assert (tmp_path / "jax.lock").read_text().splitlines() == tool.inputs[2]


@pytest.mark.parametrize(
    ("backend", "extra", "keras", "has_override"),
    [
        ("mlx", (), "keras-nightly>=3.16.0.dev0", True),
        ("mlx", ("keras==3.16.*",), "keras==3.16.*", False),
        ("jax", (), "keras>=3.12", False),
        ("jax", ("keras-nightly==3.16.0.dev1",), "keras-nightly==3.16.0.dev1", True),
    ],
)
def test_a_nightly_keras_is_never_installed_beside_a_release_that_some_package_needs(
    backend: str, extra: tuple[str, ...], keras: str, has_override: bool, tool: Uv, tmp_path: Path
) -> None:
    venvs.create(backend, EnvironmentSpec(extra=extra), tmp_path)
    assert [line for line in tool.inputs[0] if line.startswith("keras") and "mlx" not in line] == [keras]
    assert ("--override" in tool.commands[0]) == has_override


def test_constraints_and_an_index_are_handed_to_uv(tool: Uv, tmp_path: Path) -> None:
    venvs.create("torch", EnvironmentSpec(constraints=Path("c.txt"), index="https://index.example/cpu"), tmp_path)
    index = ("--index", "https://index.example/cpu", "--index-strategy", "unsafe-best-match")
    assert (tool.commands[0][-6:], tool.commands[2][-4:]) == ((*index, "--constraint", "c.txt"), index)


@pytest.mark.parametrize(
    ("cards", "gpu", "is_cpu", "said"),
    [
        ([], None, True, "CPU builds, because there is no NVIDIA GPU"),
        ([TOO_OLD], None, True, "CPU builds, because there is no NVIDIA GPU"),
        ([H200], None, False, "CUDA 13 builds, several GB; --cpu installs smaller ones"),
        ([], True, False, "CUDA 13 builds, several GB"),
        ([H200], False, True, "CPU builds"),
    ],
)
def test_builds_are_those_that_this_machine_can_use_and_are_said_before_they_are_fetched(
    cards: list[Card],
    gpu: bool | None,
    is_cpu: bool,
    said: str,
    tool: Uv,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on(monkeypatch, "linux", cards=cards)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(f"{len(tool.commands)}: {line}")

    venvs.create("torch", EnvironmentSpec(gpu=gpu), tmp_path, say)
    assert (CPU_BUILDS[0] in tool.commands[0]) == is_cpu
    assert [line for line in lines if line.startswith(f"0: {said}")] == lines


@pytest.mark.parametrize(("system", "options"), [("linux", CPU_BUILDS), ("darwin", ())])  # a Mac has one build
def test_torch_s_cpu_build_comes_from_its_own_index_and_from_there_again_by_the_lock(
    system: str, options: tuple[str, ...], tool: Uv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, system, ARM_PYTHON if system == "darwin" else INVENTORY)
    tool.pins = f"torch==2.13.0{'+cpu' if options else ''}\n"
    venvs.create("torch", EnvironmentSpec(gpu=False), tmp_path)
    venvs.create("torch", EnvironmentSpec(locked=True, force=True), tmp_path)
    compiled, _, synced, _, again = tool.commands
    assert synced[5:] == again[5:] == options and (CPU_BUILDS[0] in compiled) == bool(options)


@pytest.mark.parametrize(
    ("extra", "asked_for"),
    [
        (("keras==3.14.*",), ["numpy>=1.26", "jax>=0.5"]),  # in place of the usual Keras
        (("git+https://example.org/keras", "optree==0.19"), ["keras>=3.12", "numpy>=1.26", "jax>=0.5"]),
    ],
)
def test_a_label_makes_an_environment_beside_the_others_with_what_is_asked_for_as_well(
    extra: tuple[str, ...], asked_for: list[str], tool: Uv, tmp_path: Path
) -> None:
    python = venvs.create("jax", EnvironmentSpec(label="new", extra=extra), tmp_path)
    assert python == str(tmp_path / "jax@new" / "bin" / "python")
    assert tool.inputs[0] == [*asked_for, *extra]
    assert sorted(place.name for place in tmp_path.iterdir()) == ["jax@new", "jax@new.lock"]


def test_a_lock_is_installed_and_nothing_else_and_no_old_build_of_an_address(tool: Uv, tmp_path: Path) -> None:
    refreshed = {
        ("keras @ git+https://example.org/keras", "jax==0.9"): ["--refresh-package=keras"],
        ("git+https://example.org/keras",): ["--refresh"],
        ("/x/keras-3.14-py3-none-any.whl", "optree==0.17"): [],
    }
    for pins, options in refreshed.items():
        (tmp_path / "jax.lock").write_text("\n".join(pins))
        python = venvs.create("jax", EnvironmentSpec(locked=True, force=True), tmp_path)
        assert tool.commands.pop() == ("pip", "sync", "-", "--python", python, *options)
        assert tool.inputs[-1] == list(pins)
    assert [command[0] for command in tool.commands] == ["venv"] * 3


def test_an_environment_that_is_there_stays_without_force_or_versions(tool: Uv, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"jax\.lock does not exist: leave out --locked"):
        venvs.create("jax", EnvironmentSpec(locked=True), tmp_path)
    interpreter = interpreters.inside(tmp_path / "jax")
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text("old")
    with pytest.raises(UsageError, match="jax already exists; use --force to rebuild it"):
        venvs.create("jax", EnvironmentSpec(), tmp_path)
    assert tool.commands == []
    tool.fail_at = "compile"
    with pytest.raises(EnvironmentFailed, match="jax: no versions were found"):
        venvs.create("jax", EnvironmentSpec(force=True), tmp_path)
    assert interpreter.read_text() == "old"
    tool.fail_at = ""
    venvs.create("jax", EnvironmentSpec(force=True), tmp_path)
    assert interpreter.read_text() == "new"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["jax", "jax.lock"]


@pytest.mark.parametrize("step", ["venv", "sync"])
@pytest.mark.parametrize("error", [EnvironmentFailed, KeyboardInterrupt])
def test_no_half_an_environment_is_left(step: str, error: type[BaseException], tool: Uv, tmp_path: Path) -> None:
    tool.fail_at, tool.error = step, error
    with pytest.raises(error):
        venvs.create("jax", EnvironmentSpec(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_target_is_what_the_driver_speaks_or_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    targets: list[tuple[list[Card], bool | None, int | None]] = [
        *(([], None, None), ([], True, 13)),  # an image for another machine
        *(([H200], None, 13), ([H200], False, 13), ([OLD], None, 12), ([OLD], True, 12), ([TOO_OLD], None, None)),
    ]
    for cards, gpu, cuda in targets:
        on(monkeypatch, "linux", cards=cards)
        expected = Target("linux", "x86_64", (3, 12, 1), gpu is not False, cuda)
        assert venvs.target("jax", EnvironmentSpec(gpu=gpu)) == expected


def test_a_driver_that_is_too_old_or_unknown_is_refused_and_cuda_on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "linux", cards=[TOO_OLD])
    with pytest.raises(UsageError, match=r"--cuda: driver 470\.256\.02 is too old; update it to 525 or newer"):
        venvs.target("jax", EnvironmentSpec(gpu=True))
    on(monkeypatch, "linux")
    monkeypatch.setattr(nvidia, "package_missing", lambda: True)
    with pytest.raises(UsageError, match=r"which CUDA .* found out: .* -m pip install nvidia-ml-py; or add --cpu"):
        venvs.target("jax", EnvironmentSpec())
    assert venvs.target("jax", EnvironmentSpec(gpu=False)).cuda is None
    on(monkeypatch, "darwin", ARM_PYTHON, version=(15, 7))
    assert venvs.target("jax", EnvironmentSpec()) == Target("darwin", "arm64", (3, 12, 1), True, None, (15, 7))
    with pytest.raises(UsageError, match=r"--cuda is for Linux"):
        venvs.target("jax", EnvironmentSpec(gpu=True))


def test_an_interpreter_that_is_of_no_use_is_refused_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tool: Uv, tmp_path: Path
) -> None:
    (tmp_path / "tensorflow.lock").write_text(PINS)
    unfit: tuple[tuple[str, Inventory | Failure, str], ...] = (
        ("linux", PYTHON_3_14, r"Python 3\.14\.1, for which tensorflow has no wheels; a Python 3\.11 to 3\.13 is"),
        ("linux", OLD_PYTHON, r"/usr/bin/python3 is Python 3\.9; a Python 3\.11 to 3\.13 is needed"),
        ("darwin", INVENTORY, r"x86-64 Python, .*; an arm64 Python 3\.11 to 3\.13"),
    )
    for (system, answer, complaint), locked in product(unfit, (False, True)):
        on(monkeypatch, system, answer)
        with pytest.raises(UsageError, match=rf"^--interpreter {sys.executable}: .*{complaint}"):
            venvs.create("tensorflow", EnvironmentSpec(locked=locked), tmp_path)
    assert tool.commands == []


def test_a_python_that_is_too_new_for_tensorflow_is_none_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "linux", PYTHON_3_14)
    assert {venvs.target(name, EnvironmentSpec()).python for name in ("jax", "torch", "onnxruntime")} == {(3, 14, 1)}
    with pytest.raises(UsageError, match=r"--interpreter /gone/python: there is none; an? .*Python 3\.11 or newer"):
        venvs.target("jax", EnvironmentSpec("/gone/python"))


def test_uv_runs_without_the_variables_of_this_python_and_is_found_on_the_path_or_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "uv"
    script.write_text("#!/bin/sh\ncat; echo $1 $PYTHONPATH; echo trouble >&2; exit $1\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("PYTHONPATH", "/here")
    for messages in (True, False):
        assert venvs.uv("0", failure="it failed", stdin="in ", messages=messages) == "in 0\n" + "trouble\n" * messages
        assert capfd.readouterr().err == ("" if messages else "trouble\n")
        with pytest.raises(EnvironmentFailed, match=r"^jax: it failed: see the message of uv above"):
            venvs.uv("3", failure="jax: it failed", messages=messages)
        assert "trouble" in capfd.readouterr().err
    monkeypatch.setenv("PATH", "/nowhere")
    assert venvs._uv_path() == uv.find_uv_bin()
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(UsageError, match=r"^uv, which installs packages .* is missing: .* -m pip install uv$"):
        venvs.uv("venv", failure="it failed")


def test_a_new_file_names_an_interpreter_by_a_path_of_its_own_folder(tmp_path: Path) -> None:
    file = venvs.remember("jax", str(tmp_path / ".venvs/jax/bin/python"), tmp_path)
    venvs.remember("torch", "/elsewhere/bin/python", tmp_path)
    named = {"jax": ".venvs/jax/bin/python", "torch": "/elsewhere/bin/python"}
    assert file == tmp_path / "kerasbench.toml" and tomllib.loads(file.read_text()) == {"python": named}


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        *((name, text.format("/old/python"), text.format("below/jax/bin/python")) for name, text in FILES),
        ("pyproject.toml", PYPROJECT, PYPROJECT + '[tool.kerasbench.python]\njax = "below/jax/bin/python"\n'),
    ],
)
def test_a_file_keeps_what_it_says_besides(tmp_path: Path, name: str, before: str, after: str) -> None:
    file, below = tmp_path / name, tmp_path / "below"
    file.write_text(before)
    below.mkdir()
    assert venvs.remember("jax", str(below / "jax/bin/python"), below) == file
    assert file.read_text() == after


def test_a_project_that_does_not_speak_of_kerasbench_gets_a_file_beside_it(tmp_path: Path) -> None:
    project, file = tmp_path / "pyproject.toml", tmp_path / "kerasbench.toml"
    project.write_text("[project]\nname = 'other'\n")
    assert venvs.remember("jax", "/jax/python", tmp_path) == file
    file.chmod(0o666)  # passed over, and not replaced by one without what it says
    with pytest.raises(UsageError, match="others own it or may change it"):
        venvs.remember("torch", "/torch/python", tmp_path)
    assert "/jax/python" in file.read_text()
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(UsageError, match=r"kerasbench\.toml: is a link, and nothing is written through links"):
        venvs.remember("jax", "/jax/python", tmp_path)
    assert project.read_text() == "[project]\nname = 'other'\n"


def test_a_requirement_stays_as_it_is_and_tells_its_package() -> None:
    packages = {
        "torch>=2.6,<2.7": "torch",
        "tensorflow_metal==1.2": "tensorflow-metal",
        "keras @ git+https://github.com/keras-team/keras": "keras",
        "git+https://github.com/keras-team/keras": "",
    }
    assert {venvs.parse(f" {text}"): venvs.package(text) for text in packages} == packages


def test_a_checkout_and_a_wheel_are_named_by_what_they_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkout, wheel = tmp_path / "branch-1.2", tmp_path / "keras_nightly-3.16.0.dev1-py3-none-any.whl"
    checkout.mkdir()
    damaged = dict.fromkeys(("[project", f"x = {'1' * 5000}", f"x = {'[' * 5000}"), "")
    for content, name in {**damaged, '[project]\nname = "Keras"\n': "keras"}.items():
        (checkout / "pyproject.toml").write_text(content)
        assert venvs.package(str(checkout)) == name
    wheel.touch()
    assert venvs.package(str(wheel)) == "keras-nightly"
    assert list(map(venvs.parse, ("./branch-1.2", str(checkout), wheel.name))) == [str(checkout)] * 2 + [str(wheel)]
    refused = {
        "": "'' is not a requirement",
        "./gone": r"\./gone: neither a checkout",
        "..": r"\.\.: neither a checkout",
        "keras-3.14-py3-none-any.whl": "neither a checkout .* nor a wheel is there",
        **dict.fromkeys(OPTIONS_OF_PIP, "is not a requirement|neither a checkout"),
    }
    for text, complaint in refused.items():
        with pytest.raises(UsageError, match=complaint):
            venvs.parse(text)


def test_blanks_part_requirements_which_have_a_version_or_an_address() -> None:
    words = {
        "keras==3.14.* torch~=2.6": ["keras==3.14.*", "torch~=2.6"],
        " keras >= 3.14, <3.15  torch==2.6": ["keras>=3.14,<3.15", "torch==2.6"],
        "keras[extra, other] == 3.14": ["keras[extra,other]==3.14"],
        "git+https://example.org/keras": ["git+https://example.org/keras"],
        "keras @ git+https://me@example.org/keras@main": ["keras@git+https://me@example.org/keras@main"],
        "keras-3.14-py3-none-any.whl": ["keras-3.14-py3-none-any.whl"],
    }
    assert {text: venvs.split(text) for text in words} == words
    for text in ("keras >=", "keras-3.14", "keras==3.14 torch", "", *OPTIONS_OF_PIP):
        assert venvs.split(text) == [], text


def test_a_label_is_made_of_what_is_installed() -> None:
    labels = {
        ("keras==3.14.*",): "keras-3.14",
        ("keras>=3.14,<3.15", "torch==2.6"): "keras-3.14-3.15-torch-2.6",
        ("/home/me/k3.12",): "k3.12",
        ("/x/keras-3.14-py3-none-any.whl",): "keras-3.14-py3-none-any",
        ("git+https://github.com/keras-team/keras@abc",): "keras-abc",
    }
    assert {given: venvs.label(given) for given in labels} == labels


# What is installed agrees with the extras of pyproject.toml, which say the same to users.

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
PYTHONS = ((3, 11, 14), (3, 12, 12), (3, 13, 9), (3, 14, 0), (3, 15, 0))
LINUX, MAC, SEQUOIA = ("linux", "x86_64"), ("darwin", "arm64"), (15, 7)
CPU_ALONE = {"jax": "jax>=0.5", "tensorflow": "tensorflow>=2.18", "torch": "torch>=2.6"}


def of_extra(name: str, target: Target) -> Iterator[str]:
    """Yield what an extra installs on a target, those that it includes taken apart."""
    markers = {
        "sys_platform": target.system,
        "platform_machine": target.architecture,
        "python_version": ".".join(map(str, target.python[:2])),
        "python_full_version": ".".join(map(str, target.python)),
    }
    for line in EXTRAS[name]:
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate(markers):
            continue
        if wanted.name == PROJECT["name"]:
            yield from (installed for extra in wanted.extras for installed in of_extra(extra, target))
        else:
            wanted.marker = None
            yield str(wanted)


def target(platform: tuple[str, str], python: Version, cuda: int | None = None) -> Target:
    return Target(*platform, python, True, cuda, SEQUOIA if platform == MAC else ())


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("backend", "platform", "cuda", "extra"),
    [
        *((name, platform, None, name) for name in backends.names() for platform in (LINUX, MAC)),
        *(("tensorflow", LINUX, cuda, "tensorflow-cuda") for cuda in (12, 13)),
        *(("jax", LINUX, cuda, f"jax-cuda{cuda}") for cuda in (12, 13)),
        ("torch", LINUX, 13, "torch-cuda"),
    ],
)
def test_an_extra(backend: str, platform: tuple[str, str], cuda: int | None, extra: str, python: Version) -> None:
    here = target(platform, python, cuda)
    has_wheels = python[:2] <= (backends.get(backend).NEWEST_PYTHON or python)
    # The extra of a backend that needs a nightly Keras is for the day of its release.
    wanted = [backends.BUILT_IN, venvs.NUMPY, *(backends.get(backend).requirements(here) if has_wheels else [])]
    assert {str(Requirement(line)) for line in wanted} == set(of_extra(extra, here))


@pytest.mark.parametrize(
    ("backend", "here", "wanted"),
    [
        *((name, Target(*LINUX, PYTHONS[1], False, 13), CPU_ALONE[name]) for name in CPU_ALONE),  # a card is no matter
        ("torch", Target(*LINUX, PYTHONS[1], True, 12), "torch>=2.6,<2.11"),  # newer wheels are of CUDA 13
        # No plug-in for the CPU; and jax-mps needs macOS 14.
        *((name, Target(*MAC, PYTHONS[1], False, None, SEQUOIA), CPU_ALONE[name]) for name in ("jax", "tensorflow")),
        *(("jax", Target(*MAC, PYTHONS[1], macos=version), "jax>=0.5") for version in ((), (13, 6))),
    ],
)
def test_what_no_extra_says(backend: str, here: Target, wanted: str) -> None:
    assert backends.get(backend).requirements(here) == [wanted]


def test_the_parent_needs_no_backend_and_no_build_of_tensorflow_is_for_a_python_that_is_too_new_for_it() -> None:
    assert "<" not in PROJECT["requires-python"]
    extras = [set(of_extra(extra, target(LINUX, (3, 14, 0)))) for extra in ("tensorflow-cpu", "keras")]
    assert extras[0] == extras[1] < set(of_extra("tensorflow-cpu", target(LINUX, (3, 13, 9))))
