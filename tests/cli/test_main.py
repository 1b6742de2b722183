import errno
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench.cli import main
from kerasbench.cli.options import with_default_command
from tests.conftest import Shell

SCENARIOS = (
    *("mnist_dense", "mnist_*", "mnist_mlp/tiny", "tiny_transformer", "nonsense,vit", "a b/mine.py", "my.keras/x"),
    *("keras.applications.VGG16", "model.onnx", "hf://owner/model"),
)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], []),
        (["--quick"], ["run", "--quick"]),
        (["run", "--quick"], ["run", "--quick"]),
        *(([word], [word]) for word in ("list", "-h", "--help", "--version", "lst", "mnist", "results", "")),
        *(([word, "--quick"], ["run", word, "--quick"]) for word in SCENARIOS),
    ],
)
def test_run_is_meant_by_options_and_by_a_scenario(given: list[str], meant: list[str]) -> None:
    assert with_default_command(given, main.app.commands) == meant


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """In place of what measures: it is interrupted at once."""
    mock = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("kerasbench.api.measure", mock)
    return mock


@pytest.mark.parametrize(
    ("words", "scenarios"),
    [
        (["run", "mnist_dense", "lstm,vit", "--scenario", "mine.py"], ["mine.py", "mnist_dense", "lstm", "vit"]),
        (["mnist_dense", "lstm"], ["mnist_dense", "lstm"]),
        (["--quick", "iris_mlp"], ["iris_mlp"]),
    ],
)
def test_run_takes_scenarios_with_its_option_and_without(words: list[str], scenarios: list[str], measure: Mock) -> None:
    assert main.main(words) == 130
    assert measure.call_args.args[1].scenarios == scenarios


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--scenario", "a\x1b[31m|b.py"], "a|b.py: a scenario file's name must be"),
        (["--scenario", "x" * 300 + ".py"], "File name too long"),
        (["new", "."], "a scenario is a Python file: my_model.py, not ."),
        (["new", "my_model"], "a scenario is a Python file: my_model.py, not my_model"),
        (["new", "a|b.py"], "must be 1 to 64 letters"),
        (["new", "no/such/folder.py"], "cannot be written: No such file or directory"),
        (["new", "two words.yml"], "letters, digits, dashes and underscores"),
        (["versus", "~nobody-of-that-name/keras", "keras==3.14.*"], "is neither a label, nor"),
        (["lst"], "'lst' is neither a command nor a scenario; did you mean lstm or list? (commands: kerasbench --help"),
        (["my_training"], "a file of your own ends in one of .keras, .h5, .hdf5, .ipynb, .py)"),
        (["mnist_dens"], "did you mean mnist_dense"),
        (["soak", "nonsense", "--json"], "unknown scenario 'nonsense'"),
        (["--resume", "--scenario", "mnist_dense"], "--resume reuses the interrupted run's options"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(shell: Shell, arguments: list[str], complaint: str) -> None:
    said = shell.refused(*arguments)
    assert said.startswith("kerasbench: ") and complaint in said and "\x1b" not in said
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--quick"], ("bench", "10m", ["jax"])),
        (["--results", "here", "--backend", "torch", "--budget", "1h"], ("here", "1h", ["torch"])),
        (["--resume"], ("bench", None, [])),  # the rest is what the interrupted run was given
        (["soak", "mnist_dense"], ("bench", None, ["jax"])),  # it knows no budget
    ],
)
def test_defaults_of_the_folder(arguments: list[str], meant: tuple[object, ...], shell: Shell, measure: Mock) -> None:
    Path("kerasbench.toml").write_text('results = "bench"\nbudget = "10m"\nbackend = "jax"\n')
    assert shell(*arguments)[0] == 130
    _, asked = measure.call_args.args
    assert (asked.results, asked.budget, asked.backends) == meant


def test_a_group_without_a_command_shows_its_help(shell: Shell) -> None:
    code, out, err = shell("env")
    assert (code, out) == (2, "")
    assert err.startswith("Usage: kerasbench env") and "create" in err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (PermissionError(13, "Permission denied", "/root/m.py"), 2, "kerasbench: /root/m.py: Permission denied\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "No space left on device: free disk space\n"),
        (
            ModuleNotFoundError("No module named 'msgspec'", name="msgspec"),
            2,
            "there, with pip install -e . in its folder\n",
        ),
        (OSError(5, "Input/output error"), 70, "Input/output error\n"),
        (ZeroDivisionError("of\x1b[31m ours"), 70, "\nZeroDivisionError: of ours\n"),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_other_errors_are_to_be_reported(
    error: Exception, code: int, said: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kerasbench.plan.catalog.builtin_files", Mock(side_effect=error))
    ended, _, err = shell("list")
    assert ended == code and err.endswith(said)
    assert ("please report it" in err) is (err.count("\n") > 1) is (code == 70)


def test_a_reader_that_has_seen_enough_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Mock()
    monkeypatch.setattr("kerasbench.plan.catalog.builtin_files", Mock(side_effect=BrokenPipeError))
    monkeypatch.setattr("os.dup2", ended)
    monkeypatch.setattr("sys.stdout", Mock(fileno=lambda: 1))
    assert (main.main(["list"]), ended.call_args.args[1:]) == (0, (1,))
