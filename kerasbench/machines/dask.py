"""Workers of a Dask cluster run scripts of a shell, by connections that they opened (distributed#5048, #8918)."""

import logging
import queue
import secrets
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from kerasbench import text
from kerasbench.errors import KerasbenchError, ResultsError, UsageError
from kerasbench.machines.ssh import SHOWN, Shell

if TYPE_CHECKING:
    from distributed import Client, Future

SETTINGS = Path(__file__).parents[1] / "data" / "dask.yaml"  # with which a worker disturbs little
CONNECT_S = 20.0
LOOK_S = 5.0  # between two looks whether the other side is still there
DISTURBING = 0.01  # of a core: what a worker uses with Dask's defaults, and not with SETTINGS


@contextmanager
def connected(address: str, insecure: bool) -> Iterator[dict[str, "DaskCarrier"]]:
    """Yield a carrier for each worker, by its name; the keys of TLS are those of Dask's own configuration."""
    require_encryption(address, insecure)
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster needs Dask: pip install 'kerasbench[cluster]'") from None
    for logger in ("distributed", "distributed.client"):  # what they say of lost workers is said in words here
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except Exception as error:  # of the network, of certificates, of another version of Dask
        raise UsageError(f"{address}: no scheduler answers: {_words(error)}") from None
    try:
        workers = _workers(client)
        if not workers:
            raise UsageError(
                f"{address}: this cluster has no workers: kerasbench docs set-up-machines shows how to start them"
            )
        yield {str(facts["name"]): DaskCarrier(client, place) for place, facts in workers.items()}
    finally:
        # Without its scheduler this raises what reaching it died of, and so would its __del__ unless it is closed.
        with suppress(Exception):
            client.close()
        client.status = "closed"


def require_encryption(address: str, insecure: bool) -> None:
    """Raise UsageError for an address without TLS that others may reach too, unless that was allowed."""
    scheme, _, place = address.rpartition("://")
    if scheme == "tls":
        return
    if scheme not in ("", "tcp"):
        raise UsageError(f"--cluster takes tls://HOST:PORT, not {address!r}")
    host = place.rpartition(":")[0].strip("[]")
    is_private = host == "localhost"
    with suppress(ValueError):
        is_private = ip_address(host).is_loopback
    if not is_private and not insecure:
        why = "anyone on the network could run code on every machine of this cluster"
        remedy = "Start it with TLS (kerasbench docs set-up-machines), or add --insecure"
        raise UsageError(f"{address} has no encryption: {why}. {remedy}")


class DaskCarrier:
    def __init__(self, client: "Client", worker: str) -> None:
        self.warning = ""
        self._client, self._worker = client, worker
        self._stop = f"kerasbench-{secrets.token_hex(8)}"  # an Event of Dask
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run(self, script: str, given: bytes | None = None) -> Iterator[bytes]:
        topic, inbox = f"kerasbench-{secrets.token_hex(8)}", queue.SimpleQueue[object]()
        self._inbox = inbox
        try:
            self._client.subscribe_topic(topic, lambda event: inbox.put(event[1]))
            with warnings.catch_warnings(action="ignore"):  # that files are large
                future = self._client.submit(
                    carry, topic, self._stop, script, given,
                    key=topic, workers=[self._worker], allow_other_workers=False, pure=False, retries=0,
                )  # fmt: skip
        except Exception as error:  # of Dask: its client is closed
            raise ResultsError(f"the scheduler has ended: {_words(error)}") from None
        future.add_done_callback(lambda _: inbox.put(None))
        while not isinstance(message := self._next(future), dict):
            if not isinstance(message, bytes):
                raise ResultsError("its answer does not come from kerasbench")
            yield message
        used = message.get("used")
        if given is None and isinstance(used, float) and used > DISTURBING:
            effect = "which may change what was measured (kerasbench docs set-up-machines: a quiet worker)"
            self.warning = f"warning: its Dask worker used {100 * used:.1f} % of a core meanwhile, {effect}"
        if message.get("failed"):
            raise ResultsError(text.one_line(text.printable(str(message["failed"])))[:SHOWN])

    def stop(self) -> None:
        from distributed import Event

        if self._client.status == "running":  # without its scheduler, the task ends with its worker
            with suppress(Exception):  # of the network, or of Dask
                Event(self._stop, client=self._client).set()

    def close(self) -> None:
        self.stop()
        self._inbox.put(ResultsError("it did not end in time"))

    def _next(self, future: "Future") -> object:
        """Return what the task sends next; raise ResultsError where nothing more will come."""
        while True:
            with suppress(queue.Empty):
                message = self._inbox.get(timeout=LOOK_S)
                if isinstance(message, ResultsError):
                    raise message
                if message is None:  # of its own accord the task says so before
                    raise ResultsError(_why(future))
                return message
            try:
                is_there = self._worker in _workers(self._client)
            except Exception as error:  # of the network, or of Dask
                raise ResultsError(f"the scheduler has ended: {_words(error)}") from None
            if not is_there:
                raise ResultsError("its Dask worker has ended")


def _workers(client: "Client") -> dict[str, dict[str, Any]]:
    """Return what the scheduler says of each worker, by its address; scheduler_info may say that there are none."""
    return dict(client.sync(client.scheduler.identity, n_workers=-1)["workers"])


def _why(future: "Future") -> str:
    if future.status == "error":
        error = future.exception(timeout=1)  # it came here with the news
        remedy = "; pip install 'kerasbench[cluster]' there" if isinstance(error, ImportError) else ""
        return f"its worker cannot run kerasbench: {_words(error)}{remedy}"
    return "its scheduler has ended, or has lost the task"


def carry(topic: str, stop: str, script: str, given: bytes | None) -> None:
    """Run a script in a shell of this worker's machine, and send its output to a topic. It is run there."""
    from distributed import Event, Status, get_client, get_worker

    worker, shell, process, ended = get_worker(), Shell(), psutil.Process(), threading.Event()
    stopped = Event(stop, client=get_client())

    def heed() -> None:
        with suppress(Exception):  # the scheduler is gone
            while not ended.is_set() and worker.status in (Status.running, Status.paused):
                if stopped.wait(timeout=LOOK_S):
                    break
        shell.stop()

    if given is None:
        threading.Thread(target=heed, daemon=True).start()
    used_s, began_s, failed = sum(process.cpu_times()[:2]), time.monotonic(), ""
    try:
        for block in shell.run(script, given):
            worker.log_event(topic, block)
    except KerasbenchError as error:
        failed = str(error)
    finally:
        ended.set()
    share = (sum(process.cpu_times()[:2]) - used_s) / max(time.monotonic() - began_s, LOOK_S)
    worker.log_event(topic, {"used": share, "failed": failed})


def _words(error: object) -> str:
    return text.one_line(f"{type(error).__name__}: {error}")[:SHOWN]
