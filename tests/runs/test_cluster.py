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

import pytest

from kerasbench.cli import main
from kerasbench.errors import UsageError
from kerasbench.runs import cluster
from tests import stand_in
from tests.stand_in.machines import ALL, PROJECT, arrived, machine, records, running, shares, tried
from tests.untraced import untraced

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    "address", ["tls://scheduler:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:8786", "localhost:8786"]
)
def test_a_cluster_has_tls_or_is_on_the_loopback(address: str) -> None:
    cluster.require_encryption(address, insecure=False)


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "scheduler:8786", "tcp://[::]:8786"])
def test_a_cluster_without_tls_needs_to_be_allowed(address: str) -> None:
    with pytest.raises(UsageError, match="has no encryption: anyone on the network could run code"):
        cluster.require_encryption(address, insecure=False)
    cluster.require_encryption(address, insecure=True)


def test_another_protocol_is_refused() -> None:
    with pytest.raises(UsageError, match="--cluster takes tls://HOST:PORT"):
        cluster.require_encryption("ws://scheduler:8786", insecure=True)


WANTED = {"distributed.worker.profile.enabled": False, "--nanny": False}


def test_a_worker_with_other_settings_is_named() -> None:
    assert cluster.differing("worker", WANTED, WANTED) == ""
    nanny = cluster.differing("worker", WANTED | {"--nanny": True}, WANTED)
    assert nanny.startswith("its worker runs with other settings") and "(--nanny: True)" in nanny
    assert "profile.enabled: True" in cluster.differing("scheduler", dict.fromkeys(WANTED, True), WANTED)
    why = cluster.differing("scheduler", ModuleNotFoundError("x"), WANTED)
    assert "its scheduler cannot run kerasbench (ModuleNotFoundError" in why


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main.main(["run", "--cluster", "tcp://127.0.0.1:1"]) == 2
    assert "pip install 'kerasbench[cluster]'" in capsys.readouterr().err


def test_a_scheduler_with_other_settings_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: --cluster is not tested")
    place = tmp_path / "scheduler.json"
    own = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place))
    with (
        untraced(),
        subprocess.Popen([sys.executable, "-m", "dask", "scheduler", *own], stderr=subprocess.DEVNULL) as scheduler,
    ):
        try:
            stand_in.wait_for(lambda: place.exists() and place.read_text() != "")  # it is made before it is written
            assert main.main(["run", "--cluster", address_of(place)]) == 2
        finally:
            scheduler.kill()
    assert "its scheduler runs with other settings" in capsys.readouterr().err


def address_of(place: Path) -> str:
    return str(json.loads(place.read_text())["address"])


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """Start a scheduler and three workers, the last of them with Dask's own settings; yield them by name."""
    pytest.importorskip("distributed", reason="Dask is not installed: --cluster is not tested")
    security = pytest.importorskip("distributed.security").Security.temporary()
    texts = {"ca": security.tls_ca_file, "cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    settings = {"ca-file": tmp_path / "ca"}
    for role in ("client", "scheduler", "worker"):
        settings |= {f"{role}.cert": tmp_path / "cert", f"{role}.key": tmp_path / "key"}
    import dask

    own = {f"distributed.comm.tls.{name}": str(file) for name, file in settings.items()}
    for name, value in own.items():
        monkeypatch.setenv("DASK_" + name.replace(".", "__").replace("-", "_").upper(), value)
    dask_command = [sys.executable, "-m", "dask"]
    place = tmp_path / "scheduler.json"
    with ExitStack() as stack, untraced(), dask.config.set(own):

        def start(name: str, *arguments: str, **variables: str) -> "subprocess.Popen[bytes]":
            log = stack.enter_context((tmp_path / f"{name}.log").open("wb"))
            process = subprocess.Popen(
                [*dask_command, *arguments], env=os.environ | variables, stderr=log, cwd=tmp_path
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        quiet = {"DASK_CONFIG": str(cluster.SETTINGS)}
        common = ("--protocol", "tls", "--host", "127.0.0.1", "--scheduler-file", str(place))
        found = {"scheduler": start("scheduler", "scheduler", *common, "--port", "0", "--no-dashboard", **quiet)}
        stand_in.wait_for(lambda: place.exists() and place.read_text() != "")
        plain = ("--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard")
        for name, variables in (("one", quiet), ("two", quiet), ("loud", {})):
            found[name] = start(name, "worker", *common, "--name", name, *plain, **variables)
        logs = [tmp_path / f"{name}.log" for name in ("one", "two", "loud")]
        stand_in.wait_for(lambda: all("Registered to" in log.read_text() for log in logs))
        yield found


def words(folder: Path, *more: str) -> list[str]:
    python = [f"--python={name}:kerasbench={folder / name / 'kerasbench'}" for name in ("one", "two")]
    own = ["--scenario", str(folder / "mine.py"), "--results", str(folder / "results")]
    return ["run", "--cluster", address_of(folder / "scheduler.json"), *python, *own, *more]


def test_dask_carries_shares_and_a_lost_worker_is_a_row_with_which_the_run_goes_on(
    tmp_path: Path, workers: dict[str, "subprocess.Popen[bytes]"], capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.furnish(tmp_path)
    for name in ("one", "two"):
        machine(tmp_path, name)

    def kill() -> None:
        stand_in.wait_for(lambda: arrived(tmp_path) > 2)
        stand_in.hang(tmp_path / "one", "trial-jax")
        stand_in.wait_for(lambda: stand_in.hung(tmp_path / "one") != [])
        workers["one"].send_signal(signal.SIGKILL)

    killing = threading.Thread(target=kill)
    killing.start()
    assert main.main(words(tmp_path, "--backend", "jax,torch", "--rounds", "3")) == 1
    killing.join()
    out, err = capsys.readouterr()
    rows = {line.split()[1]: line for line in out.splitlines() if line.startswith("| ")}
    assert "the connection has ended" in rows["one"]
    assert "its worker runs with other settings" in rows["loud"] and "DASK_CONFIG=" in rows["loud"]
    assert tried(records(tmp_path)["two"]) == ALL
    assert "Traceback" not in err
    stand_in.wait_for(lambda: running(tmp_path / "one") == "")  # it ends with its worker
    assert shares(tmp_path / "two") == []
