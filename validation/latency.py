"""Is our latency of one sample that of OpenVINO's own tool? Both in turn, on the same file, with the same threads.

    python validation/latency.py cifar10_cnn --exporter tensorflow=PATH --openvino PATH

A child exports the scenario's model; then the two ways alternate: `model(x)` of a trial as `--runtime openvino
--protocol calls` has it, whose input lies ready as the tool's does, and
`benchmark_app -api sync -nireq 1 -nstreams 1 -infer_precision CPU:f32`, two seconds each. The median of the ratios,
each of two neighbours, is to lie within 5 % of 1: the machine may change its speed meanwhile. The
interpreters: one with Keras, its backend and openvino, and one with NumPy and openvino. The machine has to be idle.
"""

import argparse
import dataclasses
import re
import statistics
import subprocess
import tempfile
from pathlib import Path

import medians

from kerasbench.plan import catalog
from kerasbench.processes import block
from kerasbench.processes.block import BlockMember, BlockPolicy
from kerasbench.processes.outcome import Outcome
from kerasbench.processes.process import Limits
from kerasbench.protocol.columns import Device, Options, processors
from kerasbench.protocol.requests import Protocol, TrialRequest
from kerasbench.protocol.stages import CALL
from kerasbench.runs import sizes, turns
from kerasbench.runtimes import get
from kerasbench.scenario import source_hash

RUNTIME, CLOSE, SECONDS = "openvino", 0.05, 2
ONE_CALL, SLICES = "call_one", 20  # of a tenth of a second
MEDIAN, MS = re.compile(r"Median:\s+([\d.]+) (us|ms)"), {"us": 1e-3, "ms": 1.0}


def main(scenario: str, exporter: str, openvino: str, alternations: int) -> None:
    backend, _, python = exporter.partition("=")
    (selected,) = catalog.select([scenario], python)
    workload, file = selected.workload, selected.entry.file
    protocol = Protocol("calls", slices_max_ns=1)
    with tempfile.TemporaryDirectory() as folder:
        request = TrialRequest(
            *(selected.entry.name, str(file), source_hash(file), workload.name, backend, Device("cpu"), 0, "synthetic"),
            *(protocol, Options(runtime=RUNTIME)),
            caches=folder,
        )
        policy = BlockPolicy(
            turns.draw_orders(""),
            lambda stage, slices: stage != ONE_CALL or len(slices[0]) >= SLICES,
            lambda steps_ns: sizes.sizes_of(protocol, workload, steps_ns),
            lambda: True,
        )

        def ran(python: str, request: TrialRequest) -> Outcome:
            limits = Limits(300.0, "5 minutes")
            (outcome,) = block.measure([BlockMember(python, request, limits)], policy, lambda event: None, 1, {})
            if outcome is None or outcome.failure is not None:
                raise SystemExit(f"{python}: {outcome and outcome.failure}")
            return outcome

        ran(python, dataclasses.replace(request, fills_caches=True))
        model, ratios = Path(folder, "1", get(RUNTIME).file), []
        for number in range(1, alternations + 1):
            measurement = ran(openvino, request).measurement
            assert measurement is not None
            called = measurement.latency(CALL, batched=False)
            assert called is not None
            ours_ms = statistics.median(called.calls_ns) / 1e6
            theirs_ms = theirs(Path(openvino).parent / "benchmark_app", model)
            ratios.append(ours_ms / theirs_ms)
            print(f"{number}: {ours_ms:.4f} ms, benchmark_app {theirs_ms:.4f} ms, {ratios[-1]:.3f}", flush=True)
    middle, (low, high) = statistics.median(ratios), medians.interval(ratios)
    verdict = "within" if abs(middle - 1) <= CLOSE else "NOT within"
    print(f"ours / benchmark_app: {middle:.3f} [{low:.3f}, {high:.3f}], {verdict} {CLOSE:.0%}")


def theirs(tool: Path, model: Path) -> float:
    # What -hint latency means here: with that hint the tool takes no number of threads.
    asked = f"-d CPU -hint none -nstreams 1 -nthreads {processors()} -api sync -nireq 1 -infer_precision CPU:f32"
    command = [str(tool), "-m", str(model), *asked.split(), "-t", str(SECONDS)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ((median, unit),) = MEDIAN.findall(printed)
    return float(median) * MS[unit]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario")
    parser.add_argument("--exporter", required=True, help="BACKEND=PATH of an interpreter")
    parser.add_argument("--openvino", required=True, help="PATH of an interpreter")
    parser.add_argument("--alternations", type=int, default=20)
    given = parser.parse_args()
    main(given.scenario, given.exporter, given.openvino, given.alternations)
