"""Workers of Dask on this machine, over TLS whose certificates the test makes; children are a stand-in."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kerasbench.cli import main
from kerasbench.errors import ResultsError, UsageError
from kerasbench.machines import dask as cluster
from tests import stand_in
from tests.stand_in.machines import ALL, PROJECT, hangs_in_round_2, left, machine, records, running, there, tried
from tests.untraced import untraced

pytestmark = pytest.mark.processes


def test_a_cluster_has_tls_is_on_the_loopback_or_needs_to_be_allowed() -> None:
    for address in ("tls://scheduler:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:8786", "localhost:8786"):
        cluster.require_encryption(address, insecure=False)
    for address in ("tcp://10.0.0.1:8786", "scheduler:8786", "tcp://[::]:8786"):
        with pytest.raises(UsageError, match="has no encryption: anyone on the network could run code"):
            cluster.require_encryption(address, insecure=False)
        cluster.require_encryption(address, insecure=True)
    with pytest.raises(UsageError, match="--cluster takes tls://HOST:PORT"):
        cluster.require_encryption("ws://scheduler:8786", insecure=True)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main.main(["run", "--cluster", "tcp://127.0.0.1:1"]) == 2
    assert "pip install 'kerasbench[cluster]'" in capsys.readouterr().err


def test_a_scheduler_that_does_not_answer_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: --cluster is not tested")
    monkeypatch.setattr(cluster, "CONNECT_S", 0.2)
    assert main.main(["run", "--cluster", "tcp://127.0.0.1:1", "--backend", "jax"]) == 2
    assert "tcp://127.0.0.1:1: no scheduler answers: " in capsys.readouterr().err


def test_a_task_that_says_nothing_more_has_a_cause() -> None:
    cannot = "its worker cannot run kerasbench: ModuleNotFoundError: no kerasbench; pip install"
    for status, cause in (("error", cannot), ("lost", "its scheduler has ended, or has lost the task")):
        future: Any = SimpleNamespace(status=status, exception=lambda timeout: ModuleNotFoundError("no kerasbench"))
        assert cluster._why(future).startswith(cause)


def test_a_client_whose_scheduler_has_ended_is_left_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: --cluster is not tested")
    client = Mock(status="connecting")
    client.sync.return_value = {"workers": {"tls://x:1": {"name": "one"}}}
    client.close.side_effect = ValueError("IOStream is not idle; cannot convert to SSL")
    monkeypatch.setattr(distributed, "Client", Mock(return_value=client))
    with cluster.connected("tls://scheduler:8786", insecure=False) as carriers:
        assert list(carriers) == ["one"]
        client.submit.side_effect = distributed.client.ClosedClientError("Client is closed")
        with pytest.raises(ResultsError, match="the scheduler has ended: ClosedClientError: Client is closed"):
            list(carriers["one"].run("true"))
    assert client.status == "closed"  # or its __del__ closes it again


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """Start a scheduler and two workers, all with Dask's defaults, one without a nanny; yield them by name.

    The contact address of the second leads nowhere, so that nobody can call it.
    """
    pytest.importorskip("distributed", reason="Dask is not installed: --cluster is not tested")
    monkeypatch.setattr(cluster, "LOOK_S", 0.5)
    stand_in.furnish(tmp_path)
    for name in ("one", "two"):
        machine(tmp_path, name)
    security = pytest.importorskip("distributed.security").Security.temporary()
    texts = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    settings = {"ca-file": tmp_path / "ca"}
    for role in ("client", "scheduler", "worker"):
        settings |= {f"{role}.cert": tmp_path / "cert", f"{role}.key": tmp_path / "key"}
    import dask

    tls = {f"distributed.comm.tls.{name}": str(file) for name, file in settings.items()}
    for name, value in tls.items():
        monkeypatch.setenv("DASK_" + name.replace(".", "__").replace("-", "_").upper(), value)
    place = tmp_path / "scheduler.json"
    with ExitStack() as stack, untraced(), dask.config.set(tls):

        def start(name: str, *arguments: str) -> "subprocess.Popen[bytes]":
            log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            command = [sys.executable, "-m", "dask", *arguments]
            variables = os.environ | {"HOME": str(tmp_path / name)}
            process = subprocess.Popen(command, env=variables, stderr=log, cwd=tmp_path, start_new_session=True)
            stack.callback(process.wait)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            return process

        common = ("--protocol", "tls", "--scheduler-file", str(place), "--no-dashboard")
        loopback = ("--host", "127.0.0.1")
        processes = {"scheduler": start("scheduler", "scheduler", *common, *loopback, "--port", "0")}
        stand_in.wait_for(lambda: place.exists() and place.read_text() != "")  # it is made before it is written
        nowhere = ("--listen-address", "tls://127.0.0.1:0", "--contact-address", "tls://192.0.2.1:9")
        for name, more in (("one", (*loopback, "--no-nanny")), ("two", nowhere)):
            processes[name] = start(name, "worker", *common, "--name", name, *more)
        logs = [tmp_path / f"{name}.log" for name in ("one", "two")]
        stand_in.wait_for(lambda: all("Registered to" in log.read_text() for log in logs))
        yield processes


def typed(folder: Path, *more: str) -> list[str]:
    python = [f"--python={name}:kerasbench={folder / name / 'kerasbench'}" for name in ("one", "two")]
    files = ["--scenario", str(folder / "mine.py"), "--results", str(folder / "results")]
    scheduler = json.loads((folder / "scheduler.json").read_text())
    return ["run", "--cluster", scheduler["address"], *python, *files, *more]


def test_dask_carries_commands_and_a_lost_worker_is_a_row(
    tmp_path: Path,
    workers: dict[str, "subprocess.Popen[bytes]"],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "DISTURBING", 0.0)

    def kill() -> None:
        hangs_in_round_2(tmp_path / "one")
        workers["one"].send_signal(signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    assert main.main(typed(tmp_path, "--backend", "jax,torch", "--rounds", "3")) == 1
    killing.join()
    out, err = capsys.readouterr()
    rows = {line.split()[1]: line for line in out.splitlines() if line.startswith("| ")}
    assert "its Dask worker has ended" in rows["one"] and "--resume" in err
    assert tried(records(tmp_path)["two"]) == ALL and left(tmp_path / "two") == []
    assert "two: done; warning: its Dask worker used " in err and "Traceback" not in err
    stand_in.wait_for(lambda: running(tmp_path / "one") == "")  # it ends with its worker
    (kept,) = there(tmp_path / "one")
    assert kept.trials and kept.unfinished


@pytest.mark.parametrize("act", [pytest.param("interrupt", marks=pytest.mark.weekly), "end the scheduler"])
def test_a_run_on_a_cluster_ends_in_order_and_nothing_is_lost(
    act: str, tmp_path: Path, workers: dict[str, "subprocess.Popen[bytes]"]
) -> None:
    for name in ("one", "two"):
        stand_in.hang(tmp_path / name, "trial-jax")

    def end() -> None:
        stand_in.wait_for(lambda: all(stand_in.hung(tmp_path / name) for name in ("one", "two")))
        os.kill(os.getpid(), signal.SIGINT) if act == "interrupt" else workers["scheduler"].kill()

    ending = threading.Thread(target=end)
    ending.start()
    code = main.main(typed(tmp_path, "--backend", "jax,torch", "--rounds", "3"))
    ending.join()
    assert code == (130 if act == "interrupt" else 1)
    stand_in.wait_for(lambda: not any(running(tmp_path / name) for name in ("one", "two")))
    for name in ("one", "two"):
        (tmp_path / name / "trial-jax.hangs").unlink()
    assert len(there(tmp_path / "one")) == 1
    if act == "interrupt":
        assert main.main(typed(tmp_path, "--resume")) == 0
        assert {name: tried(run) for name, run in records(tmp_path).items()} == {"one": ALL, "two": ALL}
