"""Making environments, with a pip and a venv that only note down what they were asked."""

import io
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from kerasbench.backends import Target
from kerasbench.environments import interpreters, venvs
from kerasbench.environments.venvs import EnvironmentSpec
from kerasbench.errors import EnvironmentFailed, UsageError
from kerasbench.host import macos, nvidia
from kerasbench.host.nvidia import Card
from kerasbench.processes import questions
from kerasbench.protocol.columns import Environment
from kerasbench.protocol.messages import Code, Failure, Inventory

INVENTORY = Inventory("3.12.1", "/usr", "x86_64", {}, [])
FROZEN = "jax==0.10.2\nkeras==3.15.1\n"


class Tools:
    """What stands in for venv and pip: it notes every command, and fails at the step that it is told to fail at."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.fail_at = ""

    def __call__(self, command: Sequence[str], failure: str, quiet: bool = False) -> str:
        self.commands.append([*command])
        if self.fail_at and self.fail_at in command:
            raise EnvironmentFailed(failure)
        if "venv" in command:
            interpreter = interpreters.inside(Path(command[-1]))
            interpreter.parent.mkdir(parents=True)
            interpreter.write_text("new")
        return FROZEN if quiet else ""

    @property
    def installed(self) -> list[str]:
        """What pip was last asked to install."""
        command = next(command for command in reversed(self.commands) if "install" in command)
        return command[command.index("install") + 1 :]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    found = Tools()
    monkeypatch.setattr(venvs, "run", found)
    return found


@pytest.fixture(autouse=True)
def _linux_without_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "linux")


def on(
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    found: Inventory | Failure = INVENTORY,
    cards: Sequence[Card] = (),
    version: tuple[int, int] | None = None,
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(questions, "inventory", lambda backend, python: found)
    monkeypatch.setattr(nvidia, "cards", lambda: list(cards))
    monkeypatch.setattr(nvidia, "package_missing", lambda: False)
    monkeypatch.setattr(macos, "version", lambda: version)


def test_an_environment_has_keras_and_its_backend_and_a_lock_that_says_what_it_is(tools: Tools, tmp_path: Path) -> None:
    python = venvs.create("jax", EnvironmentSpec(gpu=False), tmp_path)
    assert python == str(tmp_path / "jax" / "bin" / "python")
    venv, install, freeze = tools.commands
    assert venv == [sys.executable, "-m", "venv", str(tmp_path / "jax")]
    assert install == [python, "-m", "pip", "install", "keras>=3.12,<3.17", "numpy>=1.26", "jax>=0.5"]
    assert freeze == [python, "-m", "pip", "freeze"]
    head, *packages = (tmp_path / "jax.lock").read_text().splitlines(keepends=True)
    assert head.startswith("# jax, as kerasbench ")
    assert head.endswith(" installed it for Python 3.12.1 on linux x86_64\n")
    assert "".join(packages) == FROZEN


def test_constraints_and_an_index_are_handed_to_pip(tools: Tools, tmp_path: Path) -> None:
    wish = EnvironmentSpec(constraints=Path("constraints.txt"), index="https://index.example/cpu")
    venvs.create("torch", wish, tmp_path)
    options = ["-c", "constraints.txt", "--extra-index-url", "https://index.example/cpu"]
    assert tools.installed == [*options, "keras>=3.12,<3.17", "numpy>=1.26", "torch>=2.6"]


def test_a_label_makes_an_environment_beside_the_others_with_a_keras_of_its_own(tools: Tools, tmp_path: Path) -> None:
    python = venvs.create("jax", EnvironmentSpec(label="keras-3.14", extra=("keras==3.14.*",)), tmp_path)
    assert python == str(tmp_path / "jax@keras-3.14" / "bin" / "python")
    assert tools.installed == ["numpy>=1.26", "jax>=0.5", "keras==3.14.*"]
    assert sorted(place.name for place in tmp_path.iterdir()) == ["jax@keras-3.14", "jax@keras-3.14.lock"]
    assert venvs.is_there("jax@keras-3.14", tmp_path) and not venvs.is_there("jax", tmp_path)


def test_what_is_asked_for_as_well_stands_beside_what_a_backend_needs(tools: Tools, tmp_path: Path) -> None:
    venvs.create("jax", EnvironmentSpec(label="new", extra=("git+https://example.org/keras", "optree==0.19")), tmp_path)
    assert tools.installed[:3] == ["keras>=3.12,<3.17", "numpy>=1.26", "jax>=0.5"]
    assert tools.installed[3:] == ["git+https://example.org/keras", "optree==0.19"]


def test_a_lock_is_installed_and_nothing_else(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "jax.lock").write_text(FROZEN)
    venvs.create("jax", EnvironmentSpec(locked=True), tmp_path)
    assert tools.installed == ["-r", str(tmp_path / "jax.lock")]


def test_there_must_be_a_lock_where_one_is_asked_for(tools: Tools, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"jax\.lock is not there: leave out --locked"):
        venvs.create("jax", EnvironmentSpec(locked=True), tmp_path)
    assert tools.commands == []


def old_environment(folder: Path) -> Path:
    interpreter = interpreters.inside(folder / "jax")
    interpreter.parent.mkdir(parents=True)
    interpreter.write_text("old")
    (folder / "jax.lock").write_text("old lock")
    return interpreter


def test_an_environment_that_is_there_is_left_alone(tools: Tools, tmp_path: Path) -> None:
    interpreter = old_environment(tmp_path)
    with pytest.raises(UsageError, match="jax already exists; use --force to rebuild it"):
        venvs.create("jax", EnvironmentSpec(), tmp_path)
    assert interpreter.read_text() == "old"
    assert tools.commands == []


def test_force_puts_a_new_one_in_its_place(tools: Tools, tmp_path: Path) -> None:
    interpreter = old_environment(tmp_path)
    venvs.create("jax", EnvironmentSpec(force=True), tmp_path)
    assert interpreter.read_text() == "new"
    assert (tmp_path / "jax.lock").read_text().endswith(FROZEN)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["jax", "jax.lock"]


@pytest.mark.parametrize("step", ["venv", "install", "freeze"])
def test_a_failure_at_any_step_puts_the_old_environment_back(tools: Tools, tmp_path: Path, step: str) -> None:
    interpreter = old_environment(tmp_path)
    tools.fail_at = step
    with pytest.raises(EnvironmentFailed, match=r"jax: (no virtual environment|pip did not)"):
        venvs.create("jax", EnvironmentSpec(force=True), tmp_path)
    assert interpreter.read_text() == "old"
    assert (tmp_path / "jax.lock").read_text() == "old lock"
    assert sorted(place.name for place in tmp_path.iterdir()) == ["jax", "jax.lock"]


def test_a_failure_leaves_nothing_where_there_was_nothing(tools: Tools, tmp_path: Path) -> None:
    tools.fail_at = "install"
    with pytest.raises(EnvironmentFailed):
        venvs.create("jax", EnvironmentSpec(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_puts_the_old_environment_back_too(
    tools: Tools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: Sequence[str], failure: str, quiet: bool = False) -> str:
        if "install" in command:
            raise KeyboardInterrupt
        return tools(command, failure, quiet)

    interpreter = old_environment(tmp_path)
    monkeypatch.setattr(venvs, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        venvs.create("jax", EnvironmentSpec(force=True), tmp_path)
    assert interpreter.read_text() == "old"


def killed(folder: Path, forced: bool) -> None:
    """Leave what a process leaves that is killed while pip installs, in the place of a whole environment or of none."""
    old = old_environment(folder)
    if forced:
        old.parents[1].rename(folder / "jax.old")
    else:
        shutil.rmtree(old.parents[1])
        (folder / "jax.lock").unlink()
    (folder / "jax" / "bin").mkdir(parents=True)
    (folder / "jax" / venvs.UNFINISHED).touch()
    interpreters.inside(folder / "jax").write_text("half")


@pytest.mark.parametrize("forced", [True, False])
def test_what_a_killed_process_has_left_is_not_taken_for_finished(tools: Tools, tmp_path: Path, forced: bool) -> None:
    killed(tmp_path, forced)
    assert not venvs.is_there("jax", tmp_path)
    python = venvs.create("jax", EnvironmentSpec(), tmp_path)
    assert Path(python).read_text() == "new" and venvs.is_there("jax", tmp_path)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["jax", "jax.lock"]
    assert [place.name for place in (tmp_path / "jax").iterdir()] == ["bin"]


@pytest.mark.parametrize("begun", [True, False], ids=["while pip installs", "right after it was set aside"])
def test_what_a_killed_process_had_set_aside_is_put_back_by_the_next_failure(
    tools: Tools, tmp_path: Path, begun: bool
) -> None:
    killed(tmp_path, True)
    if not begun:
        shutil.rmtree(tmp_path / "jax")
    tools.fail_at = "install"
    with pytest.raises(EnvironmentFailed):
        venvs.create("jax", EnvironmentSpec(force=True), tmp_path)
    assert interpreters.inside(tmp_path / "jax").read_text() == "old"
    assert venvs.is_there("jax", tmp_path) and not (tmp_path / "jax.old").exists()


def test_a_folder_that_cannot_be_written_to_is_said(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "venvs").touch()
    with pytest.raises(EnvironmentFailed, match="venvs/jax: no virtual environment could be made: Not a directory"):
        venvs.create("jax", EnvironmentSpec(), tmp_path / "venvs")


H200 = Card("NVIDIA H200", "580.95.05")
OLD = Card("NVIDIA H200", "535.183.06")
TOO_OLD = Card("Tesla K80", "470.256.02")


@pytest.mark.parametrize(
    ("cards", "gpu", "expected"),
    [
        ([], None, Target("linux", "x86_64", (3, 12, 1), True, None)),
        ([H200], None, Target("linux", "x86_64", (3, 12, 1), True, 13)),
        ([OLD], None, Target("linux", "x86_64", (3, 12, 1), True, 12)),
        ([OLD], True, Target("linux", "x86_64", (3, 12, 1), True, 12)),
        ([H200], False, Target("linux", "x86_64", (3, 12, 1), False, 13)),
        ([TOO_OLD], None, Target("linux", "x86_64", (3, 12, 1), True, None)),
        ([], True, Target("linux", "x86_64", (3, 12, 1), True, 13)),  # an image for another machine
    ],
)
def test_the_target_is_what_the_driver_speaks_unless_something_else_is_asked_for(
    cards: list[Card], gpu: bool | None, expected: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, "linux", cards=cards)
    assert venvs.target("jax", EnvironmentSpec(gpu=gpu)) == expected


def test_cuda_for_a_driver_that_speaks_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "linux", cards=[TOO_OLD])
    with pytest.raises(UsageError, match=r"--cuda: driver 470\.256\.02 is too old; update it to 525 or newer"):
        venvs.target("jax", EnvironmentSpec(gpu=True))


def test_a_driver_that_nobody_can_ask_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "linux")
    monkeypatch.setattr(nvidia, "package_missing", lambda: True)
    with pytest.raises(UsageError, match=r"which CUDA it speaks: .* -m pip install nvidia-ml-py; or say --cpu"):
        venvs.target("jax", EnvironmentSpec())
    assert venvs.target("jax", EnvironmentSpec(gpu=False)).cuda is None


MAC = Inventory("3.12.1", "/usr", "arm64", {}, [])


def test_a_mac_s_target_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "darwin", MAC, version=(15, 7))
    assert venvs.target("jax", EnvironmentSpec()) == Target("darwin", "arm64", (3, 12, 1), True, None, (15, 7))
    with pytest.raises(UsageError, match=r"--cuda is for Linux"):
        venvs.target("jax", EnvironmentSpec(gpu=True))


@pytest.mark.parametrize(
    ("system", "found", "complaint"),
    [
        ("linux", Inventory("3.14.1", "/usr", "x86_64", {}, []), r"it is Python 3\.14\.1; a Python 3\.11 to 3\.13 is"),
        (
            "linux",
            Failure(Code.UNAVAILABLE, "/usr/bin/python3 is Python 3.9", "", "import"),
            r"/usr/bin/python3 is Python 3\.9; a Python 3\.11 to 3\.13 is needed",
        ),
        ("darwin", Inventory("3.12.1", "/usr", "x86_64", {}, []), r"x86-64 Python, .*; an arm64 Python 3\.11 to 3\.13"),
    ],
)
def test_an_interpreter_that_is_of_no_use_is_refused_before_anything_is_made(
    system: str,
    found: Inventory | Failure,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    tools: Tools,
    tmp_path: Path,
) -> None:
    on(monkeypatch, system, found)
    (tmp_path / "jax.lock").write_text(FROZEN)
    for locked in (False, True):
        with pytest.raises(UsageError, match=rf"^--interpreter {sys.executable}: .*{complaint}"):
            venvs.create("jax", EnvironmentSpec(locked=locked), tmp_path)
    assert tools.commands == []


def test_an_interpreter_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--interpreter /gone/python: there is none; a Python 3\.11"):
        venvs.target("jax", EnvironmentSpec("/gone/python"))


def test_what_a_command_prints_is_returned_where_it_is_to_be_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/here")
    monkeypatch.setenv("VIRTUAL_ENV", "/here")
    code = "import os; print(sorted(os.environ.keys() & {'PYTHONPATH', 'VIRTUAL_ENV'}))"
    assert venvs.run([sys.executable, "-c", code], "it failed", quiet=True) == "[]\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], "its last words are above"),
        (["/gone/python"], "/gone/python: No such file or directory"),
        (["/"], "/: Permission denied"),
    ],
)
def test_a_command_that_fails_or_does_not_start_is_told_what_it_was_for(command: list[str], said: str) -> None:
    with pytest.raises(EnvironmentFailed, match=f"^pip did not install jax: {said}"):
        venvs.run(command, "pip did not install jax", quiet=True)


def test_a_new_file_names_an_interpreter_by_a_path_of_its_own_folder(tmp_path: Path) -> None:
    file = venvs.remember({"jax": str(tmp_path / ".venvs/jax/bin/python")}, tmp_path)
    assert file == tmp_path / "kerasbench.toml"
    assert tomllib.loads(file.read_text()) == {"python": {"jax": ".venvs/jax/bin/python"}}
    venvs.remember({"torch": "/elsewhere/bin/python"}, tmp_path)
    found = interpreters.find([], ["jax", "torch"], tmp_path)
    assert found.of(Environment("jax")) == str(tmp_path / ".venvs/jax/bin/python")
    assert found.of(Environment("torch")) == "/elsewhere/bin/python"


def test_what_a_file_says_besides_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "kerasbench.toml"
    file.write_text('# mine\n[python]\n# the slow one\njax = "/old/python" # for now\ntorch = "/torch/python"\n')
    venvs.remember({"jax": str(tmp_path / ".venvs/jax/bin/python")}, tmp_path)
    assert file.read_text() == (
        '# mine\n[python]\n# the slow one\njax = ".venvs/jax/bin/python" # for now\ntorch = "/torch/python"\n'
    )


PYPROJECT = """[project]
name = "mine" # of all names

[tool.kerasbench]
{table}
[tool.mypy]
strict = true
"""


@pytest.mark.parametrize("table", ["", '[tool.kerasbench.python]\njax = "/old/python" # for now\n'])
def test_a_project_that_speaks_of_kerasbench_keeps_its_other_tables_and_comments(tmp_path: Path, table: str) -> None:
    file = tmp_path / "pyproject.toml"
    before = PYPROJECT.format(table=table)
    file.write_text(before)
    below = tmp_path / "below"
    below.mkdir()
    assert venvs.remember({"jax": str(below / ".venvs/jax/bin/python")}, below) == file
    found = tomllib.loads(file.read_text())
    assert found["tool"]["kerasbench"] == {"python": {"jax": "below/.venvs/jax/bin/python"}}
    assert (found["project"], found["tool"]["mypy"]) == ({"name": "mine"}, {"strict": True})
    kept = [line for line in before.splitlines() if "jax =" not in line]
    assert [line for line in file.read_text().splitlines() if line in kept] == kept
    assert ("# for now" in file.read_text()) is bool(table)


def test_a_project_that_does_not_speak_of_kerasbench_gets_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert venvs.remember({"jax": "/jax/python"}, tmp_path) == tmp_path / "kerasbench.toml"
    assert (tmp_path / "pyproject.toml").read_text() == "[project]\nname = 'other'\n"


def test_an_environment_that_cannot_be_set_aside_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "jax"
    place.mkdir()

    def refuse(self: Path, target: Path) -> Path:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(EnvironmentFailed, match="Permission denied; it is as it was"):
        venvs._set_aside(place)
    assert place.is_dir()


def test_where_a_child_cannot_write_to_stderr_its_words_are_shown_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = io.StringIO()  # as in some notebooks: it has no descriptor
    monkeypatch.setattr(sys, "stderr", shown)
    assert venvs.run([sys.executable, "-c", "print('installed')"], "it failed")
    assert shown.getvalue() == "installed\n"
