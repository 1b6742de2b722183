"""Several machines at once, whole: everything is real but ssh and the children."""

import dataclasses
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kerasbench.runs.share import Hello, Line
from kerasbench.runs.ssh import over_ssh

import kerasbench
from kerasbench import __version__
from kerasbench.cli import main
from kerasbench.errors import UsageError
from kerasbench.protocol.requests import ModelConfig
from kerasbench.results.code import all_measuring_code
from kerasbench.results.run import INTERRUPTED, Carried, Trial
from kerasbench.results.store import load
from kerasbench.runs import cluster, machines, share
from kerasbench.settings import Settings
from tests import made, stand_in
from tests.stand_in import Command
from tests.stand_in.machines import (
    ALL,
    ROUNDS,
    answering,
    arrived,
    machine,
    records,
    running,
    script,
    shares,
    ssh,
    tried,
)

pytestmark = pytest.mark.processes
HELLO = Hello(__version__, all_measuring_code(), "3.11.7", "/python", time.time())
TRIALS = [made.trial(index, backend) for index in (1, 2, 3) for backend in ("jax", "torch")]


@pytest.fixture
def ssh_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return ssh(tmp_path, monkeypatch)


def words(folder: Path, names: Sequence[str], *more: str, rounds: int = ROUNDS) -> list[str]:
    """Return the command line that measures on these machines."""
    python = [f"--python={name}:kerasbench={folder / name / 'kerasbench'}" for name in names]
    own = ["--scenario", str(folder / "mine.py"), "--results", str(folder / "results"), *more]
    rest = [] if "--resume" in more else ["--backend", "jax,torch", "--rounds", str(rounds)]
    return ["run", f"--hosts={','.join(names)}", *python, *own, *rest]


@contextmanager
def killed_when_it_hangs(own: Path, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Kill what measures on a machine once a child of it hangs; children hang no more afterwards."""

    def kill() -> None:
        before()
        stand_in.wait_for(lambda: stand_in.hung(own) != [])
        for line in running(own).splitlines():
            os.kill(int(line.split()[0]), signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    yield
    killing.join()
    for file in own.glob("*.hangs"):
        file.unlink()


@pytest.fixture
def two(tmp_path: Path, ssh_log: Path) -> Path:
    stand_in.furnish(tmp_path)
    for name in ("one", "two"):
        machine(tmp_path, name)
    return tmp_path


def test_each_machine_measures_its_share_and_nothing_is_left_there(
    two: Path, ssh_log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"hosts": ["one", "two"], "rounds": ROUNDS, "results": two / "results"}
    python = {f"{name}:kerasbench": two / name / "kerasbench" for name in ("one", "two")}
    answer: Any = kerasbench.run(two / "mine.py", python=python, backends="jax,torch", **options)
    assert "JAX on one" in repr(answer) and "so nothing between them is decided" in str(answer)
    assert tried(answer["two"].records[0]) == ALL
    found = records(two)
    assert {name: tried(record) for name, record in found.items()} == {"one": ALL, "two": ALL}
    assert {record.machine.identifier for record in found.values()} == {"one", "two"}
    assert found["one"].config.scenarios == [str(two / "mine.py")]
    assert all(trial.surroundings is not None for trial in found["one"].trials)
    err = capsys.readouterr().err
    for name in ("one", "two"):
        assert f"{name}: [{2 * ROUNDS}/{2 * ROUNDS}] " in err
        assert shares(two / name) == [] and running(two / name) == ""
    for line in ssh_log.read_text().splitlines():
        assert line.startswith("-T -a -x -oBatchMode=yes ") and " -oControlMaster=no -- " in line
    assert next((two / "results").glob("*.json")).with_suffix(".md").is_file()


def test_a_machine_that_vanishes_is_a_row_and_the_others_go_on(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in.hang(two / "one", "trial-jax")
    with killed_when_it_hangs(two / "one"):
        assert main.main(words(two, ["one", "two"])) == 1
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if line.startswith("| one") and "the connection has ended" in line]
    assert tried(records(two)["two"]) == ALL
    assert "to continue: python -m kerasbench run --resume" in err and "--hosts=one --python=one:" in err
    assert main.main(words(two, ["one"], "--resume")) == 0
    assert tried(records(two)["one"]) == ALL
    assert shares(two / "one") == []


def test_a_disk_that_fills_up_there_ends_the_share_with_all_that_was_measured(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = two / "one" / "kerasbench"
    program.write_text(program.read_text().replace("exec", "ulimit -f 16\nexec"))  # blocks of 512 bytes in a file
    assert main.main(words(two, ["one", "two"])) == 1
    out, _ = capsys.readouterr()
    found = records(two)
    (row,) = [line for line in out.splitlines() if line.startswith("| one")]
    assert "it stopped, and all that it had measured is here: " in row and "File too large" in row
    assert tried(found["two"]) == ALL and 0 < len(found["one"].trials) < len(ALL)
    assert shares(two / "one") == []


def test_what_was_measured_and_has_not_arrived_comes_when_the_run_goes_on(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal there has more than the one here: its trials are sent, and not measured again."""

    def hang_later() -> None:
        stand_in.wait_for(lambda: arrived(two) > 2)
        stand_in.hang(two / "one", "trial-jax")

    with killed_when_it_hangs(two / "one", hang_later):
        assert main.main(words(two, ["one"], rounds=12)) == 1
    (journal,) = (two / "results").glob("*.jsonl")
    before = load(journal).trials
    header = journal.read_bytes().splitlines(keepends=True)[0]
    journal.write_bytes(header)
    assert main.main(words(two, ["one"], "--resume")) == 0
    again = records(two)["one"].trials
    assert again[: len(before) // 2 * 2] == before[: len(before) // 2 * 2]  # in whole rounds of both


def test_ctrl_c_ends_all_of_them_and_leaves_nothing_there(command: Command) -> None:
    own = command.folder / "one"
    machine(command.folder, "one")
    stand_in.hang(own, "trial-jax")
    command.start(
        *("--hosts", "here", "--python", f"kerasbench={own / 'kerasbench'}", "--backend", "jax,torch"),
        *("--scenario", str(command.folder / "mine.py")),
    )
    stand_in.wait_for(lambda: stand_in.hung(own) != [])
    children = stand_in.hung(own)
    assert command.ended(signal.SIGINT) == 130
    assert all(stand_in.is_gone(child) for child in children)
    assert shares(own) == [] and running(own) == ""
    assert "Traceback" not in command.output()[1]
    (file,) = command.results.glob("*.json")
    assert load(file).stopped_because == "interrupted"


# What another machine must not do.


class Played:
    """A machine that says these lines, and nothing more; what it is sent is kept."""

    def __init__(self, said: str) -> None:
        self.said = said.encode(errors="surrogateescape").split(b"\n")[:-1]
        self.sent: list[bytes] = []

    def start(self, share: machines.Share, inbox: machines.Inbox) -> None:
        for line in (*self.said, None):
            inbox.put((share, line))

    def send(self, line: bytes) -> None:
        self.sent.append(line)

    def close(self) -> None:
        """Leave nothing behind: there is nothing."""

    def why(self) -> str:
        return "it has said all"


class Silent(Played):
    """A machine that says nothing, and does not end."""

    def start(self, share: machines.Share, inbox: machines.Inbox) -> None:
        """Say nothing."""


def of_carrier(carrier: machines.Carrier, folder: Path) -> machines.Share:
    return machines.Share("box", carrier, share.Order("a", "run", Settings()), folder)


def lines_of(*messages: dict[str, Any], hello: Hello = HELLO) -> str:
    encoded = [Line(0, hello=hello), *(Line(number, **one) for number, one in enumerate(messages, start=1))]
    return "".join(msgspec.json.encode(one).decode() + "\n" for one in encoded)


def raw(data: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(data))


BEGUN = dataclasses.replace(made.record(*TRIALS), trials=[])
BEGIN = {"begin": raw(BEGUN)}


def of_others(**config: Any) -> msgspec.Raw:
    """Return a run that was measured otherwise than it was asked for, as it says."""
    return raw(made.changed(BEGUN, config=config))


OTHER_FILES = "it measured other files than it was asked for"
NEGATIVE = dataclasses.replace(made.trial(), wall_ns=-5)
OTHER = dataclasses.replace(made.trial(), scenario="another")
OLDER = Hello("0.0.1", "", "3.11", "/p", 0)


def run_of(trials: Sequence[Trial]) -> str:
    """Return what a machine says that has measured these."""
    return lines_of(BEGIN, *({"trial": raw(one)} for one in trials), {"end": raw(BEGUN), "known": len(trials)})


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("Welcome to this machine!\n", "its answer is not one of kerasbench: 'Welcome to this machine!'"),
        (
            lines_of(BEGIN, {"trial": raw(NEGATIVE)}),
            "not what kerasbench writes: trial 1 (dense, torch): wall_ns is out",
        ),
        (lines_of(BEGIN, {"trial": raw(OTHER)}), "not what kerasbench writes: trials of another"),
        (lines_of(BEGIN, {"trial": raw([1])}), "not what kerasbench writes: "),
        (lines_of({"trial": raw(made.trial())}), "it sent a trial before its run"),
        (lines_of(BEGIN, {"end": raw(BEGUN), "known": 7}), "it measured 7 trials, but 0 arrived"),
        (lines_of().replace('"number":0', '"number":4'), "line 4 came in place of line 0"),
        (lines_of({"begin": raw(dataclasses.replace(BEGUN, schema=4))}), "written by an older kerasbench"),
        (lines_of({"say": "\x1b]0;owned\x07"}, {"refused": "no \x1b[2J room"}), "no room"),
        (lines_of({"say": "x" * 200_000}), "it sent more data than a run can have"),
        (lines_of({"begin": raw({"a": "[" * 5000})}), "not what kerasbench writes"),
        ('{"number":0,"say":"\udcff"}\n', "its answer is not one of kerasbench"),
        (lines_of({"begin": raw(dataclasses.replace(BEGUN, started="../../x"))}), "its start, '../../x', is not"),
        (lines_of({"begin": raw(dataclasses.replace(BEGUN, started="2026-99-99T99:99:99Z"))}), "its start, '2026-99"),
        (lines_of({"begin": raw(dataclasses.replace(BEGUN, started="\0"))}), "not what kerasbench writes"),
        (lines_of({"begin": of_others(scenarios=["/home/me/secret.py"])}), OTHER_FILES),
        (lines_of({"begin": of_others(scenarios=["\0.py"])}), OTHER_FILES),
        (lines_of({"begin": of_others(model_config=ModelConfig(custom="/home/me/secret.py"))}), OTHER_FILES),
        (lines_of({"begin": of_others(model_config=ModelConfig(trust=True))}), OTHER_FILES),
        (lines_of({"begin": of_others(keep_env={"TOKEN": "x"})}), OTHER_FILES),
        (lines_of(BEGIN, {"end": of_others(scenarios=["/home/me/secret.py"])}), OTHER_FILES),
        (lines_of(*[{"say": "x"}] * 11), "it sent more messages than a run can have (11 lines)"),
        (lines_of(hello=OLDER), f"kerasbench 0.0.1 there, {__version__} here: "),
        (lines_of(hello=Hello(__version__, "other", "3.11", "/p", 0)), "there has other code (other, and "),
    ],
)
def test_what_no_kerasbench_sends_is_refused_and_the_others_go_on(
    tmp_path: Path, said: str, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "MOST_LINE_BYTES", 100_000)
    monkeypatch.setattr(machines, "MOST_SAID", 10)
    heard: list[str] = []
    odd, fine = (of_carrier(Played(one), tmp_path) for one in (said, run_of(TRIALS)))
    machines.Gathering([odd, fine], lambda host, line: heard.append(line), machines.Inbox()).run()
    assert cause in odd.cause and fine.is_done
    assert "\x1b" not in "".join([odd.cause, *heard])


def test_of_a_machine_that_is_lost_before_it_has_sent_what_it_had_there_is_nothing_to_read(tmp_path: Path) -> None:
    for known in (2, -1):
        lost = of_carrier(Played(lines_of(BEGIN | {"known": known}, {"trial": raw(TRIALS[0])})), tmp_path)
        machines.Gathering([lost], lambda host, line: None, machines.Inbox()).run()
        assert (lost.file, lost.is_unfinished, [*tmp_path.iterdir()]) == (None, False, [])
    named = BEGIN | {"python": ["torch@old=/cache/python"]}
    begun = of_carrier(Played(lines_of(named, {"trial": raw(TRIALS[0])})), tmp_path)
    machines.Gathering([begun], lambda host, line: None, machines.Inbox()).run()
    assert begun.file is not None and len(load(begun.file).trials) == 1 and begun.is_unfinished
    assert begun.python == ["torch@old=/cache/python"]  # which it takes to go on there


def test_one_that_says_no_hello_is_left_and_one_that_has_said_it_is_not(tmp_path: Path) -> None:
    heard: list[str] = []
    silent, greeted = (of_carrier(carrier, tmp_path) for carrier in (Silent(""), Played(run_of(TRIALS))))
    greeted.hello = HELLO
    machines.Gathering([silent, greeted], lambda host, line: heard.append(line), machines.Inbox(), 0.0).run()
    assert silent.cause.startswith("no answer in 0 s: ") and greeted.is_done
    assert silent.cause in heard


def test_what_goes_on_is_what_was_asked_for_here_and_not_what_a_file_says(
    two: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file may be anybody's, or the machine that wrote it."""
    stranger = dataclasses.replace(made.record(*TRIALS), carried=Carried("box", "a"), stopped_because=INTERRUPTED)
    made.stored(two / "results", made.changed(stranger, config={"scenarios": ["/home/me/secret.py"]}))
    asked_for = of_others(scenarios=[str(two / "mine.py")])
    answering(two, "box", lines_of({"begin": asked_for, "known": 2}))
    assert main.main(words(two, ["box"], "--resume")) == 1
    _, err = capsys.readouterr()
    assert err.splitlines()[-1].endswith(f" --scenario {two / 'mine.py'}") and "secret" not in err


@pytest.mark.parametrize(
    ("hello", "ctrl_c", "cause"),
    [(OLDER, False, "kerasbench 0.0.1 there"), (HELLO, True, "interrupted")],
)
def test_another_kerasbench_is_sent_nothing_nor_is_one_that_has_not_been_asked_at_ctrl_c(
    tmp_path: Path, hello: Hello, ctrl_c: bool, cause: str
) -> None:
    carrier, inbox = Played(lines_of(hello=hello)), machines.Inbox()
    if ctrl_c:
        inbox.put((None, None))
    one = of_carrier(carrier, tmp_path)
    machines.Gathering([one], lambda host, line: None, inbox).run()
    assert carrier.sent == [] and one.cause.startswith(cause)


def test_a_doctor_names_what_differs(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answering(two, "odd", lines_of({"end": raw({})}, hello=Hello("0.0.1", "x", "3.9.1", "/p", time.time() + 3600)))
    names = ["one", "odd", "none"]
    python = [f"--python={name}:kerasbench={two / name / 'kerasbench'}" for name in names]
    assert main.main(["doctor", f"--hosts={','.join(names)}", *python]) == 1
    out, _ = capsys.readouterr()
    one, odd, none = out.split("\n\n")
    assert "kerasbench " + __version__ in one and "jax" in one
    assert f"kerasbench 0.0.1 there, {__version__} here: on odd, " in odd and "warning: its clock is +36" in odd
    assert none.splitlines()[1].startswith("    error: the connection has ended: ")


# What is refused before any machine is asked.


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--cluster", "tls://x:1"], "--hosts and --cluster exclude each other"),
        (["--python", "three:torch=x"], "--python takes [HOST:]NAME=PATH, such as one:torch="),
        (["--backend", "pytorch"], "unknown backend"),
        (["--resume"], "no run on one can be continued"),
        (["--insecure"], "--insecure is for --cluster"),
    ],
)
def test_bad_settings_are_refused_before_any_machine_is_asked(
    two: Path, ssh_log: Path, more: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--hosts", "one", "--results", str(two / "results"), *more]
    assert main.main(command) == 2
    assert complaint in capsys.readouterr().err
    assert not ssh_log.exists()


def test_a_host_is_no_option_of_ssh() -> None:
    with pytest.raises(UsageError, match="--hosts takes names as ssh does"):
        over_ssh("-oProxyCommand=touch /tmp/x", "")


def test_a_path_there_is_one_word_and_a_home_folder_is_the_one_there() -> None:
    def said(python: str) -> str:
        return over_ssh("box", python)._command[-1]

    assert said("~/my kb; ls/python") == "exec ~/'my kb; ls/python' -m kerasbench share"
    assert said("/my kb; ls/python") == "exec '/my kb; ls/python' -m kerasbench share"
    assert said("") == "exec python3 -m kerasbench share"


def test_a_home_folder_here_is_made_out_without_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert over_ssh("here", "~/kb/python")._command[0] == "/home/me/kb/python"
    assert over_ssh("here", "")._command[0] == sys.executable


def test_interpreters_are_of_one_machine_or_of_all() -> None:
    given = ["torch=.venvs/torch", "one:jax=/jax", "two:jax=/other", "one:kerasbench=~/kb"]
    assert machines._python("one", ["one", "two"], given) == ("~/kb", ["torch=.venvs/torch", "jax=/jax"])
    assert machines._python("two", ["one", "two"], given) == ("", ["torch=.venvs/torch", "jax=/other"])


def test_json_is_of_one_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["fastest", "mnist_dense", "--hosts", "one", "--json"]) == 2
    assert "--json works for one machine" in capsys.readouterr().err


def _peak(folder: Path, names: Sequence[str], trials: Sequence[Trial]) -> int:
    """Return the most memory that was in use while so many machines sent a run each, in bytes."""
    for name in names:
        answering(folder, name, run_of(trials))
        program = folder / name / "kerasbench"
        program.write_text(f"#!/bin/sh\nsed 1q {folder / name}/said\nread order\nsed 1d {folder / name}/said\n")
    given = [f"{name}:kerasbench={folder / name / 'kerasbench'}" for name in names]
    settings = Settings(hosts=list(names), python=given, results=str(folder / "results"))
    tracemalloc.start()
    try:
        asked = machines.ask("run", settings, lambda host, line: None, cluster.connections)
        assert all(one.is_done for one in asked)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_records_of_many_machines_are_not_held_in_memory(tmp_path: Path, ssh_log: Path) -> None:
    short = _peak(tmp_path, [f"short{number}" for number in range(12)], TRIALS)
    long = _peak(tmp_path, [f"long{number}" for number in range(12)], TRIALS * 8)
    one_run = len(msgspec.json.encode(TRIALS * 8))
    assert long - short < 12 * one_run, (short, long, one_run)  # decoded, a run takes several times that


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
    (keys / "server").write_text(SERVER.format(port=port, folder=keys))
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


def test_the_user_s_own_ssh_carries_it_and_a_host_with_another_key_is_a_row(
    tmp_path: Path, sshd: None, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.furnish(tmp_path)
    for name in ("good", "stranger"):
        machine(tmp_path, name)
    assert main.main(words(tmp_path, ["good", "stranger"])) == 1
    out, _ = capsys.readouterr()
    (row,) = [line for line in out.splitlines() if line.startswith("| stranger")]
    assert "Host key verification failed" in row
    assert {name: tried(record) for name, record in records(tmp_path).items()} == {"good": ALL}
    assert shares(tmp_path / "good") == [] and running(tmp_path / "good") == ""


def test_a_share_that_nobody_asks_for_says_so_and_ends() -> None:
    command = [sys.executable, "-m", "kerasbench", "share"]
    ended = subprocess.run(command, input="", capture_output=True, text=True, timeout=30, check=False)
    *_, refused = map(json.loads, ended.stdout.splitlines())
    assert ended.returncode == 2 and "takes an order" in refused["refused"]
