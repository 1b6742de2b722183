"""What does Dask's worker change in what is measured beside it? A run in whose every second cycle it is stopped.

    python validation/engine_cost.py iris_mlp 600          600 cycles of JAX and torch
    python validation/engine_cost.py iris_mlp 60 --busy    what it shows of a script that keeps a core busy

A scheduler and a worker run on this machine over TLS, with kerasbench's settings. The worker carries a process that
says nothing, as it carries a run's lines while something is measured. It is awake in the even cycles of each
stage, and stopped (SIGSTOP) in the odd ones. What it does for two cycles falls into one of them, so this is twice what
it costs. Printed are the medians over neighbouring cycles, awake / stopped, with their 95 % intervals: of a training
step in each column, and of the ratio of each two columns.
"""

import argparse
import dataclasses
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask
import medians
import psutil
from distributed import Client
from distributed.security import Security

from kerasbench import backends
from kerasbench.analysis.summary import summarize
from kerasbench.environments.interpreters import find
from kerasbench.events import CycleEnded, Event, TrialEnded
from kerasbench.machines import dask as cluster
from kerasbench.modes import known
from kerasbench.modes.run import RunSettings
from kerasbench.modes.run.plan import run
from kerasbench.protocol.measurement import Measurement
from kerasbench.results.run import Run
from kerasbench.runs.run import measured

READY_S = 60.0
SILENT = "#!/bin/sh\necho\nexec sleep 100000\n"
BUSY = "#!/bin/sh\necho\nwhile :; do :; done\n"


def main(scenario: str, cycles: int, busy: bool) -> None:
    with tempfile.TemporaryDirectory() as scratch, engine(Path(scratch), BUSY if busy else SILENT) as processes:
        began_s, used_s = time.monotonic(), cpu_s(processes[0])
        record = measure(scenario, cycles, Path(scratch) / "results", processes)
        share = (cpu_s(processes[0]) - used_s) / (time.monotonic() - began_s)
    print(f"{scenario}, {cycles} cycles: the worker used {share:.2%} of a core")
    for name, found in awake_over_stopped(record).items():
        middle, (low, high) = statistics.median(found), medians.interval(found)
        print(f"{name}: {math.exp(middle):.4f} [{math.exp(low):.4f}, {math.exp(high):.4f}], {len(found)} pairs")


def cpu_s(process: psutil.Process) -> float:
    used = process.cpu_times()
    return used.user + used.system


@contextmanager
def engine(folder: Path, carried: str) -> Iterator[list[psutil.Process]]:
    """Have a scheduler, and a worker that carries a script in place of a Python; yield the worker and the script."""
    made = Security.temporary()
    for name, text in (("ca", made.tls_ca_file), ("cert", made.tls_client_cert), ("key", made.tls_client_key)):
        (folder / name).write_text(text)
    own = {"distributed.comm.tls.ca-file": str(folder / "ca")}
    for role, part in itertools.product(("client", "scheduler", "worker"), ("cert", "key")):
        own[f"distributed.comm.tls.{role}.{part}"] = str(folder / part)
    variables = {"DASK_" + name.replace(".", "__").replace("-", "_").upper(): value for name, value in own.items()}
    variables["DASK_CONFIG"] = str(cluster.SETTINGS)
    place, script = folder / "scheduler.json", folder / "python"
    script.write_text(carried)
    script.chmod(0o700)
    common = ("--protocol", "tls", "--host", "127.0.0.1", "--scheduler-file", str(place), "--no-dashboard")
    with ExitStack() as stack, dask.config.set(own):

        def start(*arguments: str) -> int:
            command = [sys.executable, "-m", "dask", *arguments, *common]
            process = subprocess.Popen(command, env=os.environ | variables, stderr=subprocess.DEVNULL, cwd=folder)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process.pid

        start("scheduler", "--port", "0")
        wait_for(place.exists)
        worker = psutil.Process(start("worker", "--no-nanny", "--nthreads", "1", "--memory-limit", "0"))
        client = stack.enter_context(Client(json.loads(place.read_text())["address"], timeout=READY_S))
        client.wait_for_workers(1, timeout=READY_S)
        carrying = client.submit(cluster.carry, "topic", "stop", f"exec {script}", None, pure=False)
        wait_for(lambda: bool(worker.children()))
        (process,) = worker.children()
        stack.callback(process.kill)
        stack.callback(worker.resume)
        yield [worker, process]
        assert not carrying.done(), "it has ended too soon"


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + READY_S
    while not is_so():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"Dask is not ready after {READY_S:.0f} s")
        time.sleep(0.1)


def measure(scenario: str, cycles: int, folder: Path, processes: list[psutil.Process]) -> Run:
    """Measure. These processes are stopped in the odd cycles of each stage, and run meanwhile and in all the others."""

    def on_event(event: Event) -> None:
        if isinstance(event, CycleEnded):
            ended = max(map(len, event.slices.values()), default=0)
            for process in processes:
                process.resume() if event.is_last or ended % 2 == 0 else process.suspend()
        elif isinstance(event, TrialEnded):
            print(event.case.label, flush=True)

    config = run(RunSettings(scenarios=[scenario], backends=["jax", "torch"], rounds=1))
    steps = dataclasses.replace(
        config.effort.protocol, min_cycles=cycles, slices_max_ns=cycles * 10**9, epochs=False, predicts=False
    )
    config = dataclasses.replace(config, effort=dataclasses.replace(config.effort, protocol=steps))
    with measured(config, folder, find([], backends.names()), known.planner, on_event) as finished:
        return finished.record


def awake_over_stopped(record: Run) -> dict[str, list[float]]:
    """Return the logarithms of what neighbouring cycles differ by: of each column's step, and of each ratio."""
    found = defaultdict[str, list[float]](list)
    for row in summarize(record).rows:
        blocks = {column.label: {t.block: logs(m) for t, m in case.trials} for column, case in row.cases.items()}
        for name, one in blocks.items():
            found[name] += [step for each in one.values() for step in differences(each)]
        for (name, a), (other, b) in itertools.combinations(blocks.items(), 2):
            for block in a.keys() & b.keys():
                common = a[block].keys() & b[block].keys()
                ratios = {cycle: a[block][cycle] - b[block][cycle] for cycle in common}
                found[f"{name} / {other}"] += differences(ratios)
    return found


def logs(measurement: Measurement) -> dict[int, float]:
    """Return by cycle the logarithm of what a training step took."""
    training = measurement.training
    return {cycle: math.log(ns) for cycle, ns in training.slices.ns_by_cycle.items()} if training else {}


def differences(by_cycle: Mapping[int, float]) -> list[float]:
    return [by_cycle[cycle] - by_cycle[cycle + 1] for cycle in by_cycle if cycle % 2 == 0 and cycle + 1 in by_cycle]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("cycles", type=int)
    parser.add_argument("--busy", action="store_true")
    given = parser.parse_args()
    main(given.scenario, given.cycles, given.busy)
