"""What travels to another machine: the files of a user, under names there, and the words of the command."""

import dataclasses
import shlex
from pathlib import Path

import pytest

from kerasbench import machines
from kerasbench.cli.preparing import DoctorSettings
from kerasbench.errors import UsageError
from kerasbench.machines.bundle import RemoteBundle, packed, shell_words
from kerasbench.machines.ssh import Shell
from kerasbench.modes import fastest, versus
from kerasbench.modes.run import RunSettings
from tests import made

pytestmark = pytest.mark.processes
RUN = made.record(made.trial())


@pytest.fixture
def with_files(tmp_path: Path) -> RunSettings:
    """Return settings that name files of one's own: a scenario with a baseline, a second one, layers and rows."""
    (tmp_path / "native").mkdir()
    for name in ("mine.py", "native/mine_torch.py", "other's.py", "layers.py", "rows.npz"):
        (tmp_path / name).write_text(name)
    mine, other, layers, rows = (str(tmp_path / name) for name in ("mine.py", "other's.py", "layers.py", "rows.npz"))
    return RunSettings(
        ["mnist_dense", f"{mine}/tiny", other], custom=layers, rows=rows, samples=7, choices={"threads": ["1", "2"]}
    )


def test_files_have_names_there_that_are_told_from_those_here(
    with_files: RunSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A", "b'c")
    bundle = packed(dataclasses.replace(with_files, keep_env=["A"]))
    box = Shell()
    list(box.run(f"F={shlex.quote(str(tmp_path / 'me-1'))}; {machines.PUT}", bundle.archive))
    names = sorted(file.name for file in (tmp_path / "me-1").rglob("*") if file.is_file())
    assert names == ["layers.py", "mine.py", "mine_torch.py", "other's.py", "rows.npz", "variables"]
    echo = f"F={shlex.quote(str(tmp_path / 'me-1'))}; . $F/variables; printf '%s\\n' \"$A\" "
    shown = b"".join(box.run(echo + " ".join(shell_words(with_files, bundle)), b"")).decode().splitlines()
    assert shown[0] == "b'c" and "--threads=1" in shown and "--samples=7" in shown and "--scenario=mnist_dense" in shown
    there = [word.partition("=")[2] for word in shown if word.startswith("--scenario=")]
    config = made.changed(RUN, config={"scenarios": there}).config
    assert bundle.with_names_here(config, "me-1").scenarios == with_files.scenarios
    assert Path(there[1]).parent.is_file() and Path(there[2]).is_file()


def test_the_words_of_other_commands() -> None:
    nothing = RemoteBundle()
    assert shell_words(versus.VersusSettings(base="a", head=["b c", "d"]), nothing)[-3:] == ["a", "'b c'", "d"]
    tried = shell_words(fastest.FastestSettings(["x"], tries=["jit"]), nothing)
    assert tried == ['--results="$F"/results', "--try=jit", "x"]
    assert shell_words(RunSettings(resume=True, budget=9.5), nothing)[1:] == ["--budget=9.5", "--resume"]
    script = RunSettings(["train.py"], script_arguments=["--name", "a b"])
    assert shell_words(script, nothing)[-3:] == ["--", "--name", "'a b'"]
    assert shell_words(DoctorSettings(backends=["jax"]), nothing) == ["--backend=jax"]


def test_what_is_too_large_or_not_there_does_not_travel(
    with_files: RunSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        packed(dataclasses.replace(with_files, custom="gone.py"))
    monkeypatch.setattr("kerasbench.machines.bundle.MOST_FILES_BYTES", 20)
    with pytest.raises(UsageError, match="are not sent: copy them to each machine by other means"):
        packed(with_files)
