"""Several machines at once, whole: everything is real but ssh and the children."""

import dataclasses
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

import kerasbench
from kerasbench import __version__, machines
from kerasbench.cli import main
from kerasbench.errors import ResultsError
from kerasbench.machines import RemoteConfig, RemoteRun
from kerasbench.machines.bundle import packed
from kerasbench.machines.lines import End, Handshake, RemoteMessage
from kerasbench.machines.ssh import Shell
from kerasbench.modes.run import RunSettings
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import BUDGET, INTERRUPTED, RemoteOrigin
from kerasbench.results.store import load
from kerasbench.runs.run import SUPERSEDED
from tests import made, stand_in
from tests.stand_in.machines import (
    ALL,
    ROUNDS,
    hangs_in_round_2,
    left,
    machine,
    records,
    running,
    script,
    ssh,
    there,
    tried,
)

pytestmark = pytest.mark.processes
HANDSHAKE = Handshake(__version__, all_measuring_code(), "3.11.7", "/python")
OLDER = Handshake("0.0.1", "", "3.11", "/p")
RUN = made.record(*(made.trial(index, backend) for index in (1, 2, 3) for backend in ("jax", "torch")))
FILE = "2026-01-02T030405"


@pytest.fixture
def ssh_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return ssh(tmp_path, monkeypatch)


def typed(folder: Path, names: Sequence[str], *more: str) -> list[str]:
    python = [f"--python={name}:kerasbench={folder / name / 'kerasbench'}" for name in names]
    files = ["--scenario", str(folder / "mine.py"), "--results", str(folder / "results"), *more]
    rest = [] if "--resume" in more else ["--backend", "jax,torch", "--rounds", str(ROUNDS)]
    return ["run", f"--hosts={','.join(names)}", *python, *files, *rest]


@contextmanager
def killed_in_round_2(folder: Path) -> Iterator[None]:
    """Kill what measures on a machine once a child of its second round hangs; children hang no more afterwards."""

    def kill() -> None:
        hangs_in_round_2(folder)
        for line in running(folder).splitlines():
            os.kill(int(line.split()[0]), signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    yield
    killing.join()
    for file in folder.glob("*.hangs"):
        file.unlink()


@pytest.fixture
def two(tmp_path: Path, ssh_log: Path) -> Path:
    stand_in.furnish(tmp_path)
    for name in ("one", "two"):
        machine(tmp_path, name)
    return tmp_path


def test_each_machine_measures_and_nothing_is_left_there(
    two: Path, ssh_log: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "it's; $HOME")
    options: dict[str, Any] = {"hosts": ["one", "two"], "rounds": ROUNDS, "results": two / "results"}
    python = {f"{name}:kerasbench": two / name / "kerasbench" for name in ("one", "two")}
    answer = kerasbench.on_machines(
        "run", two / "mine.py", python=python, backends="jax,torch", keep_env="SECRET", **options
    )
    assert "JAX on one" in repr(answer) and "undecided" in str(answer)
    assert tried(answer["two"].records[0]) == ALL
    runs = records(two)
    assert {name: tried(run) for name, run in runs.items()} == {"one": ALL, "two": ALL}
    assert {run.machine.identifier for run in runs.values()} == {"one", "two"}
    assert runs["one"].config.scenarios == [str(two / "mine.py")]
    assert runs["one"].config.keep_env == {"SECRET": "it's; $HOME"}
    err = capsys.readouterr().err
    for name in ("one", "two"):
        assert f"{name}: [{2 * ROUNDS}/{2 * ROUNDS}] " in err
        assert left(two / name) == [] and running(two / name) == ""
    log = ssh_log.read_text()
    assert "; $HOME" not in log  # a value may be a secret
    for line in log.splitlines():
        assert line.startswith("-T -a -x -oBatchMode=yes ") and " -oControlMaster=no -- " in line
    assert next((two / "results").glob("*.json")).with_suffix(".md").is_file()


def test_a_machine_that_vanishes_is_a_row_and_goes_on_with_what_it_has(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with killed_in_round_2(two / "one"):
        assert main.main(typed(two, ["one", "two"])) == 1
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if line.startswith("| one") and "the connection has ended" in line]
    assert {name: tried(record) for name, record in records(two).items()} == {"two": ALL}
    assert "to continue: python -m kerasbench run --resume" in err and "--hosts=one --python=one:" in err
    (journal,) = there(two / "one")
    assert main.main(typed(two, ["one"], "--resume")) == 0
    whole = records(two)["one"]
    assert tried(whole) == ALL and whole.started == journal.started
    assert whole.trials[: len(journal.trials) // 2 * 2] == journal.trials[: len(journal.trials) // 2 * 2]
    assert left(two / "one") == []


def test_what_the_disk_here_refuses_stays_there_until_the_run_goes_on(
    two: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("kerasbench.results.store.replace", Mock(side_effect=ResultsError("no space left")))
        assert main.main(typed(two, ["one"])) == 1
    out, err = capsys.readouterr()
    assert "no space left" in out and "to continue: " in err and list((two / "results").iterdir()) == []
    (measured,) = there(two / "one")
    assert main.main(typed(two, ["one"], "--resume")) == 0
    assert records(two)["one"].trials == measured.trials
    assert left(two / "one") == []


def test_a_disk_that_fills_up_there_keeps_what_was_measured_before(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = two / "one" / "kerasbench"
    whole = program.read_text()
    program.write_text(whole.replace("exec", "ulimit -f 16\nexec"))  # blocks of 512 bytes in a file
    assert main.main(typed(two, ["one", "two"])) == 1
    out, err = capsys.readouterr()
    (row,) = [line for line in out.splitlines() if line.startswith("| one")]
    assert "File too large" in row
    assert tried(records(two)["two"]) == ALL and 0 < len(records(two)["one"].trials) < len(ALL)
    program.write_text(whole)
    assert "--resume" in err and main.main(typed(two, ["one"], "--resume")) == 0
    assert tried(records(two)["one"]) == ALL
    assert all(run.stopped_because == SUPERSEDED for run in there(two / "one"))  # of half a round


def test_ctrl_c_ends_all_of_them_and_fetches_what_there_is(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        hangs_in_round_2(two / "one")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    assert main.main(typed(two, ["one"])) == 130
    assert running(two / "one") == "" and all(stand_in.is_gone(child) for child in stand_in.hung(two / "one"))
    interrupted = records(two)["one"]
    assert interrupted.stopped_because == INTERRUPTED and interrupted.trials
    (two / "one" / "trial-jax.hangs").unlink()
    assert main.main(typed(two, ["one"], "--resume")) == 0
    (file,) = (two / "results").glob("*.json")
    assert tried(load(file)) == ALL and left(two / "one") == []


# What another machine must not do.


class Played(Shell):
    def __init__(self, said: str) -> None:
        super().__init__()
        self.said = said.encode(errors="surrogateescape")
        self.scripts: list[str] = []

    def run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        self.scripts.append(script.partition("; ")[2])
        yield self.said if given is None else b""


def heard(results: Path, said: str, **more: Any) -> tuple[RemoteRun, str]:
    """Return what becomes of a machine that says this, and what is shown meanwhile."""
    shown: list[str] = []
    remote = RemoteRun(RemoteConfig("box", "run", RunSettings(), results, **more), Played(said))
    remote.measure(lambda host, line: shown.append(line))
    return remote, "\n".join(shown)


def said(*lines: RemoteMessage, handshake: Handshake = HANDSHAKE) -> str:
    return "".join(msgspec.json.encode(line).decode() + "\n" for line in (RemoteMessage(handshake=handshake), *lines))


def done(run: object = RUN, file: str = FILE) -> str:
    return said(RemoteMessage(end=End(0, file=file, run=msgspec.Raw(msgspec.json.encode(run, enc_hook=dict)))))


def test_what_was_measured_is_kept_with_where_it_comes_from(tmp_path: Path) -> None:
    remote, _ = heard(tmp_path, done(), folder="me-1", insecure=True)
    assert remote.store is not None and not remote.cause
    assert load(remote.store.data) == dataclasses.replace(RUN, carried=RemoteOrigin("box", "me-1", insecure=True))


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ("Welcome to this machine!\n", "its answer does not come from kerasbench: 'Welcome to this machine!'"),
        ('{"line":"\udcff"}\n', "its answer does not come from kerasbench"),
        ('{"line":"no handshake"}\n', "its answer does not come from kerasbench"),
        ("x" * 200_000, "its answer is longer than that of a run can be"),
        (said(RemoteMessage(line="\x1b]0;owned\x07"), RemoteMessage(end=End(2, "no \x1b[2J room"))), "no "),
        (said(), "the connection has ended"),
        (done(file="../../x"), "not the name of a run's file: '../../x'"),
        (done(file=FILE + "\n"), "not the name of a run's file"),
        (said(handshake=OLDER), f"kerasbench 0.0.1 there, {__version__} here: on box, "),
        (said(handshake=Handshake(__version__, "other", "3.11", "/p")), "there has other code (other, and "),
    ],
)
def test_what_no_kerasbench_says_is_refused(
    tmp_path: Path, lines: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "MAX_FILE_BYTES", 100_000)
    remote, shown = heard(tmp_path, lines)
    assert cause in remote.cause and remote.store is None and "\x1b" not in shown


@pytest.mark.parametrize(
    ("run", "cause"),
    [
        (made.changed(RUN, trials=[dataclasses.replace(made.trial(), wall_ns=-5)]), "wall_ns is out"),
        (dataclasses.replace(RUN, schema=4), "written by an older kerasbench"),
        (dataclasses.replace(RUN, started="../../x"), "its start, '../../x', is not"),
        ({"a": "[" * 5000}, "not a kerasbench result file"),
        (made.changed(RUN, config={"scenarios": ["/home/me/secret.py"]}), "it measured other"),
        (made.changed(RUN, config={"scenarios": ["\0.py"]}), "it measured other"),
        (
            made.changed(RUN, config={"model_config": ModelConfig(custom="/home/me/secret.py")}),
            "it measured other",
        ),
        (made.changed(RUN, config={"model_config": ModelConfig(trust=True)}), "it measured other"),
        (made.changed(RUN, config={"keep_env": {"TOKEN": "x"}}), "it measured other"),
    ],
)
def test_a_file_that_cannot_be_is_not_kept(tmp_path: Path, run: object, cause: str) -> None:
    remote, _ = heard(tmp_path, done(run))
    assert cause in remote.cause and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("why", "removed"), [("enough", True), (INTERRUPTED, False), (BUDGET, False)])
def test_a_run_that_may_go_on_stays_there(tmp_path: Path, why: str, removed: bool) -> None:
    remote, _ = heard(tmp_path, done(dataclasses.replace(RUN, stopped_because=why)))
    assert isinstance(remote.carrier, Played) and remote.store is not None
    assert any(script.startswith("rm") for script in remote.carrier.scripts) is removed


def test_one_that_shakes_no_hands_is_left(tmp_path: Path, ssh_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kerasbench.machines.ssh.ANSWER_S", 0.2)
    (tmp_path / "box").mkdir()
    silent = script(tmp_path / "box" / "python", "#!/bin/sh\nexec sleep 60\n")
    config = RemoteConfig("box", "run", RunSettings(), tmp_path, python=str(silent), bundle=packed(RunSettings()))
    remote = RemoteRun(config, Shell("box"))
    remote.measure(lambda host, line: None)
    assert "no answer in 0.2 s: " in remote.cause


def test_a_folder_there_is_of_a_single_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with machines._alone("me-box"):
        remote, _ = heard(tmp_path / "results", done(), folder="me")
        assert remote.cause.startswith("another command here")
    assert not heard(tmp_path / "results", done(), folder="me")[0].cause


def test_a_doctor_names_what_differs(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (two / "odd").mkdir()
    (two / "odd" / "said").write_text(said(RemoteMessage(end=End(0)), handshake=OLDER))
    script(two / "odd" / "kerasbench", f"#!/bin/sh\ncat {two / 'odd' / 'said'}\n")
    names = ["one", "odd", "none"]
    python = [f"--python={name}:kerasbench={two / name / 'kerasbench'}" for name in names]
    assert main.main(["doctor", f"--hosts={','.join(names)}", *python]) == 1
    one, odd, none = capsys.readouterr().out.split("\n\n")
    assert "kerasbench " + __version__ in one and "jax" in one
    assert f"kerasbench 0.0.1 there, {__version__} here: on odd, " in odd
    assert none.splitlines()[1].startswith("    error: the connection has ended: ")


# What is refused before any machine is asked.


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("run --cluster tls://x:1", "--hosts and --cluster exclude each other"),
        ("run --python three:torch=x", "--python takes [HOST:]NAME=PATH, such as one:torch="),
        ("run --backend pytorch", "unknown backend"),
        ("run --resume --quick", "--resume reuses the interrupted run's options"),
        ("run --hosts=-oProxyCommand=x", "--hosts takes names as ssh does"),
        ("run --insecure", "--insecure is for --cluster"),
        ("run --events", "--events is of one machine"),
        ("fastest mnist_dense --json", "--json works for one machine"),
    ],
)
def test_bad_settings_are_refused_before_any_machine_is_asked(
    two: Path, ssh_log: Path, typed: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*typed.split(), "--hosts", "one", "--results", str(two / "results")]) == 2
    assert complaint in capsys.readouterr().err
    assert not ssh_log.exists()


@pytest.mark.parametrize(
    ("python", "shell"),
    [
        ("~/my kb; ls/python", "exec \"$HOME\"/'my kb; ls/python' -m kerasbench run --events"),
        ("/my kb; ls/python", "exec '/my kb; ls/python' -m kerasbench run --events"),
        ("", 'exec "${KERASBENCH_PYTHON:-python3}" -m kerasbench run --events'),
    ],
)
def test_a_path_there_is_one_word_and_a_home_folder_is_the_one_there(tmp_path: Path, python: str, shell: str) -> None:
    remote, _ = heard(tmp_path, done(), python=python)
    assert isinstance(remote.carrier, Played)
    assert shell in remote.carrier.scripts[1]


def test_here_is_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"".join(Shell().run('printf %s "$KERASBENCH_PYTHON"', b"")).decode() == sys.executable
    with pytest.raises(ResultsError, match=r"^no such thing$"):
        list(Shell().run("echo no such thing >&2; exit 3", b""))
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ResultsError, match="ssh cannot be started: No such file"):
        list(Shell("box").run("true", b""))


def test_interpreters_are_of_one_machine_or_of_all() -> None:
    given = ["torch=.venvs/torch", "one:jax=/jax", "two:jax=/other", "one:kerasbench=~/kb"]
    assert machines._python("one", ["one", "two"], given) == ("~/kb", ["torch=.venvs/torch", "jax=/jax"])
    assert machines._python("two", ["one", "two"], given) == ("", ["torch=.venvs/torch", "jax=/other"])


SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv HOME={home}
"""
CLIENT = """\
Host good stranger
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  GlobalKnownHostsFile /dev/null
Host good
  UserKnownHostsFile {folder}/known
Host stranger
  UserKnownHostsFile {folder}/known_wrongly
"""


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a real sshd on the loopback, which the ssh of this test knows as ``good``, and with another key as stranger.

    Skipped where there is none: install openssh-server.
    """
    if SSHD is None:
        pytest.skip("there is no sshd here: the real ssh is not tested; install openssh-server")
    keys = tmp_path / "ssh"
    keys.mkdir(mode=0o700)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("host", "user", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
    for file, name in (("known", "host"), ("known_wrongly", "other")):
        key = " ".join((keys / f"{name}.pub").read_text().split()[:2])
        (keys / file).write_text(f"[127.0.0.1]:{port} {key}\n")
    (keys / "server").write_text(SERVER.format(port=port, folder=keys, home=tmp_path / "good"))
    (keys / "client").write_text(CLIENT.format(port=port, folder=keys))
    real = shutil.which("ssh")
    program = script(tmp_path / "bin" / "ssh", f'#!/bin/sh\nexec {real} -F {shlex.quote(str(keys / "client"))} "$@"\n')
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    with subprocess.Popen([SSHD, "-D", "-e", "-f", str(keys / "server")], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        try:
            if "listening" not in said:
                pytest.skip(f"sshd does not start here, so the real ssh is not tested: {said.strip()}")
            yield
        finally:
            server.terminate()


def test_the_user_s_own_ssh_carries_it_and_a_host_that_is_refused_or_killed_is_a_row(
    tmp_path: Path, sshd: None, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.furnish(tmp_path)
    good, _ = (machine(tmp_path, name).parent for name in ("good", "stranger"))
    with killed_in_round_2(good):
        assert main.main(typed(tmp_path, ["good", "stranger"])) == 1
    rows = {line.split()[1]: line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")}
    assert "Host key verification failed" in rows["stranger"] and "the connection has ended" in rows["good"]
    assert records(tmp_path) == {} and running(good) == ""
    assert main.main(typed(tmp_path, ["good"], "--resume")) == 0
    assert {name: tried(run) for name, run in records(tmp_path).items()} == {"good": ALL} and left(good) == []
