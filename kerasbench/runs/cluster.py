"""The machines of a Dask cluster: each worker starts ``kerasbench share``, and carries its lines (``machines.py``).

Dask is asked for little: to run one function of kerasbench on one worker, by its name, and to carry lines. It tries
nothing again, and moves nothing to another worker.
"""

import asyncio
import logging
import queue
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kerasbench import text
from kerasbench.errors import UsageError
from kerasbench.runs.machines import SHOWN, WAITING, Connect, Inbox, Share
from kerasbench.runs.ssh import on_this_machine, over_ssh
from kerasbench.settings import Settings

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

SETTINGS = Path(__file__).parents[1] / "data" / "dask.yaml"
CONNECT_S = 20.0
LOOK_S = 5.0  # between two looks of a worker whether it is to end
EXTENSION = "kerasbench-"  # before a share's name: by what a worker finds what it has started


def connections(settings: Settings) -> AbstractContextManager[dict[str, Connect]]:
    """Return what makes a carrier for each machine of ``--hosts`` or ``--cluster``, by its name; ssh needs no Dask."""
    if settings.cluster:
        return connected(settings.cluster, settings.insecure)
    hosts: dict[str, Connect] = {host: partial(over_ssh, host) for host in settings.hosts}
    return nullcontext(hosts)


@contextmanager
def connected(address: str, insecure: bool) -> Iterator[dict[str, Connect]]:
    """Yield what makes a carrier for each worker of a cluster, by the worker's name.

    Dask reads the certificates from its own configuration (``distributed.comm.tls``). No command line shows a key.

    Raises:
        UsageError: it cannot be reached, has no workers, or has no encryption and may be reached by others.
    """
    require_encryption(address, insecure)
    try:
        import dask
        from distributed import Client
    except ImportError:
        raise UsageError("--cluster needs Dask: pip install 'kerasbench[cluster]'") from None
    for logger in ("distributed", "distributed.client"):  # what they say of lost workers is said in words here
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    (settings,) = dask.config.collect_yaml([str(SETTINGS)])
    wanted = dict(flat(settings))
    with dask.config.set(wanted):
        try:
            client = Client(address, timeout=CONNECT_S, set_as_default=False)
        except Exception as error:  # of the network, of certificates, of another version of Dask
            raise UsageError(f"{address}: no scheduler answers: {_words(error)}") from None
        with client:
            if refusal := differing("scheduler", of_scheduler(client, list(wanted)), wanted):
                raise UsageError(f"{address}: {refusal}")
            workers = client.scheduler_info(n_workers=-1)["workers"]
            if not workers:
                raise UsageError(
                    f"{address}: this cluster has no workers: docs/set-up-machines.md shows how to start them"
                )
            there = client.run(running, list(wanted), on_error="return")
            of_worker = wanted | {"--nthreads": 1, "--nanny": False}
            connect: dict[str, Connect] = {}
            for place, facts in workers.items():
                name = str(facts["name"]) if str(facts["name"]) not in connect else place
                connect[name] = partial(DaskCarrier, client, place, differing("worker", there.get(place), of_worker))
            yield connect


def require_encryption(address: str, insecure: bool) -> None:
    """Raise UsageError for an address without TLS that others may reach too, unless that was allowed."""
    scheme, _, place = address.rpartition("://")
    if scheme == "tls":
        return
    if scheme not in ("", "tcp"):
        raise UsageError(f"--cluster takes tls://HOST:PORT, not {address!r}")
    host = place.rpartition(":")[0].strip("[]")
    is_own = host == "localhost"
    with suppress(ValueError):
        is_own = ip_address(host).is_loopback
    if not is_own and not insecure:
        raise UsageError(
            f"{address} has no encryption: anyone on the network could run code on every machine of this cluster. "
            "Start it with TLS (docs/set-up-machines.md), or add --insecure"
        )


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield Dask's settings by their whole names, ``distributed.worker.profile.enabled``."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def of_scheduler(client: "Client", names: list[str]) -> object:
    """Return Dask's settings of these names in the scheduler, or why it does not say them."""
    try:
        return client.run_on_scheduler(configured, names)
    except Exception as error:  # it has no kerasbench, or another Dask
        return error


def configured(names: list[str]) -> dict[str, Any]:
    """Return Dask's settings of these names. It is run there."""
    import dask

    return {name: dask.config.get(name, None) for name in names}


def running(names: list[str], dask_worker: "Worker") -> dict[str, Any]:
    """Return with which settings a worker runs. It is run there."""
    return {"--nthreads": dask_worker.state.nthreads, "--nanny": bool(dask_worker.nanny)} | configured(names)


def differing(which: str, there: object, wanted: Mapping[str, Any]) -> str:
    """Return why a worker or a scheduler is refused: it would disturb what is measured; empty if it would not."""
    if not isinstance(there, Mapping):
        remedy = "pip install 'kerasbench[cluster]' there"
        return f"its {which} cannot run kerasbench ({_words(there)}): {remedy}"
    others = [f"{name}: {there.get(name)}" for name, value in wanted.items() if there.get(name) != value]
    if not others:
        return ""
    shown = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
    return (
        f"its {which} runs with other settings, which would change what is measured ({shown}): start it as "
        f"docs/set-up-machines.md shows, with DASK_CONFIG={SETTINGS}"
    )


class DaskCarrier:
    """A worker of Dask, which starts ``kerasbench share`` on its machine."""

    def __init__(self, client: "Client", worker: str, refusal: str, python: str) -> None:
        self._client, self._worker, self._refusal, self._python = client, worker, refusal, python
        self._share = self._lost = ""
        self._end: Callable[[], None] = lambda: None
        self._in_order = asyncio.Lock()  # lines overtake each other on their way otherwise
        self._future: Future | None = None

    def start(self, share: Share, inbox: Inbox) -> None:
        if self._refusal:
            raise UsageError(self._refusal)
        self._share = share.order.share
        topic = f"{EXTENSION}{self._share}-{secrets.token_hex(4)}"
        self._end = partial(inbox.put, (share, None))
        self._client.subscribe_topic(topic, lambda event: inbox.put((share, event[1])))
        self._future = self._client.submit(
            carry, self._python, self._share, topic,
            key=topic, workers=[self._worker], allow_other_workers=False, pure=False, retries=0,
        )  # fmt: skip
        self._future.add_done_callback(lambda _: self._end())

    def send(self, line: bytes) -> None:
        self._client.loop.add_callback(self._hand_over, line)

    def close(self) -> None:
        if self._future is not None and not self._future.done():
            self.send(b"")

    def why(self) -> str:
        if self._client.status != "running":
            return "the scheduler has ended"
        if self._future is None or not self._future.done():
            return self._lost
        try:
            return str(self._future.result(timeout=1))[:SHOWN]
        except Exception as error:  # of the worker, or of Dask
            return _words(error)

    async def _hand_over(self, line: bytes) -> None:
        async with self._in_order:
            try:
                await self._client._run(hand_over, self._share, line, workers=[self._worker])
            except Exception as error:  # of the network, or of Dask: the worker is gone, or the scheduler
                self._lost = self._lost or _words(error)
                self._end()


def carry(python: str, share: str, topic: str) -> str:
    """Start ``kerasbench share`` on this machine, and send its lines to a topic; return why they end. It is run there.

    In a process of its own: so it is interrupted as a run on a command line is, and what the worker costs beside it can
    be told from what it costs itself.
    """
    from distributed import Status, get_worker

    worker = get_worker()
    carrier = on_this_machine(python)
    inbox: Inbox = queue.Queue(WAITING)
    setattr(worker, EXTENSION + share, carrier)
    try:
        carrier.start(None, inbox)
        while True:
            with suppress(queue.Empty):
                line = inbox.get(timeout=LOOK_S)[1]
                if line is None:
                    return carrier.why()
                worker.log_event(topic, line)
            if worker.status not in (Status.running, Status.paused):  # the scheduler has ended, and it follows
                carrier.end_input()
    finally:
        delattr(worker, EXTENSION + share)
        carrier.close()


def hand_over(share: str, line: bytes, dask_worker: "Worker") -> None:
    """Give a line to what was started, or tell it that there are no more. It is run there."""
    carrier = getattr(dask_worker, EXTENSION + share, None)
    if carrier is not None:
        carrier.send(line) if line else carrier.end_input()


def _words(error: object) -> str:
    return text.one_line(f"{type(error).__name__}: {error}")[:SHOWN]
