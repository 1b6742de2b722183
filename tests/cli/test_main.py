import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kerasbench.cli import main
from kerasbench.cli.options import with_default_command
from kerasbench.errors import UsageError
from kerasbench.settings import settings

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


def test_run_takes_scenarios_with_its_option_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def measure(command: str, given: dict[str, object], **arguments: object) -> None:
        asked.append(settings(command, given, **arguments).scenarios)
        raise UsageError("enough")

    monkeypatch.setattr("kerasbench.api.measure", measure)
    assert main.main(["run", "mnist_dense", "lstm,vit", "--scenario", "mine.py"]) == 2
    assert main.main(["mnist_dense", "lstm"]) == main.main(["--quick", "iris_mlp"]) == 2
    assert asked == [["mine.py", "mnist_dense", "lstm", "vit"], ["mnist_dense", "lstm"], ["iris_mlp"]]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--scenario", "a\x1b[31m|b.py"], "a|b.py: a scenario file's name must be"),
        (["--scenario", "x" * 300 + ".py"], "File name too long"),
        (["new", "."], "a scenario is a Python file: my_model.py, not ."),
        (["versus", "~nobody-of-that-name/keras", "keras==3.14.*"], "is neither a label, nor"),
        (["lst"], "'lst' is neither a command nor a scenario; did you mean lstm or list? (commands: kerasbench --help"),
        (["mnist_dens"], "did you mean mnist_dense"),
        (["soak", "nonsense", "--json"], "unknown scenario 'nonsense'"),
        (["--resume", "--scenario", "mnist_dense"], "--resume reuses the interrupted run's options"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line_and_exit_code_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(arguments) == 2
    out, err = capsys.readouterr()
    assert complaint in err
    assert err.startswith("kerasbench: ") and "\x1b" not in err
    assert err.count("\n") == 1
    assert not out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["--quick"], ("bench", "10m", ("jax",))),
        (["--results", "here", "--backend", "torch", "--budget", "1h"], ("here", "1h", ("torch",))),
        (["--resume"], ("bench", None, ())),  # the rest is what the interrupted run was given
        (["soak", "mnist_dense"], ("bench", None, ("jax",))),  # it knows no budget
    ],
)
def test_a_file_of_the_folder_has_defaults_and_the_command_line_goes_before(
    arguments: list[str], meant: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kerasbench.toml").write_text('results = "bench"\nbudget = "10m"\nbackend = "jax"\n')
    monkeypatch.chdir(tmp_path)
    asked: list[dict[str, Any]] = []

    def measure(_: str, options: dict[str, Any], **__: object) -> None:
        asked.append(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("kerasbench.api.measure", measure)
    assert main.main(arguments) == 130
    (options,) = asked
    assert (options["results"], options.get("budget"), options["backends"]) == meant


def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["env"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("Usage: kerasbench env") and "create" in err and not out


def test_what_a_user_can_mend_is_one_line_and_any_other_error_is_asked_to_be_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[Exception] = [
        PermissionError(13, "Permission denied", "/root/m.py"),
        OSError(5, "Input/output error"),
    ]
    monkeypatch.setattr("kerasbench.plan.catalog.builtin_files", lambda: (_ for _ in ()).throw(refused.pop(0)))
    assert main.main(["list"]) == 2
    assert capsys.readouterr().err == "kerasbench: /root/m.py: Permission denied\n"
    assert main.main(["list"]) == 70
    first, *traceback = capsys.readouterr().err.splitlines()
    assert "please report it" in first and traceback[-1].endswith("Input/output error")
    refused.append(ZeroDivisionError("of\x1b[31m ours"))
    assert main.main(["list"]) == 70
    assert capsys.readouterr().err.endswith("\nZeroDivisionError: of ours\n")
    refused.append(OSError(errno.ENOSPC, "No space left on device"))
    assert main.main(["list"]) == 2
    assert capsys.readouterr().err == "kerasbench: No space left on device: free disk space\n"


def test_a_reader_that_has_seen_enough_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr("kerasbench.plan.catalog.builtin_files", lambda: (_ for _ in ()).throw(BrokenPipeError()))
    monkeypatch.setattr("os.dup2", lambda null, stdout: ended.append(stdout))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(fileno=lambda: 1))
    assert (main.main(["list"]), ended) == (0, [1])
