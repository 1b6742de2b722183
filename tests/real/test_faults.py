"""Scenario files that go wrong, each a failure that says why and leaves nothing, and GPUs that are not there."""

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from kerasbench.backends import jax
from kerasbench.processes.group import MARK
from kerasbench.processes.variables import clean
from kerasbench.protocol.columns import Device
from kerasbench.protocol.messages import Code
from kerasbench.results.store import load
from tests import made, whole_command
from tests.real import trials

pytestmark = pytest.mark.real

FAULTS = {
    "raises_in_fit": (Code.ERROR, r"goes_wrong\.py, line 23: ArithmeticError"),
    "speaks_in_markup": (Code.ERROR, r"speaks_in_markup\.py, line 10: ValueError: </td><img src=x> \|   \*bold\* \?"),
    "segfaults": (Code.CRASH, r"died from SIGSEGV in phase 'build'"),
    "is_killed": (Code.CRASH, r"killed by SIGKILL from outside in phase 'build'"),
    "eats_memory": (Code.OOM, r"used 1\.\d+ GiB in phase 'build', the limit is 1 GiB"),
    "forges_a_measurement": (Code.INVALID, r"other than kerasbench wrote to the result pipe in phase 'build'"),
    "uses_another_framework": (Code.UNSUPPORTED, r"goes_wrong\.py, line 55: imports \w+, which"),
}
HARMLESS = "shouts"
LAST_WORDS = {
    "segfaults": "Fatal Python error: Segmentation fault, in goes_wrong.py, line 32",
    "is_killed": "good \\| &lt;b&gt;bye&lt;/b&gt;",
}


# One test, and so one process of the tests, for all that is said of the run: it is made once.
def test_every_fault_is_a_row_and_what_is_harmless_is_complete(faults: Path, tmp_path: Path) -> None:
    chosen = ",".join(str(faults / f"{name}.py") for name in (HARMLESS, "speaks_in_markup", "goes_wrong"))
    options = ["--backend", "jax", "--quick", "--memory-limit", "1g", "--results", str(tmp_path)]
    command = whole_command.command(tmp_path, "--scenario", chosen, *options)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tables, progress = process.communicate()
    assert process.returncode == 1, progress

    (data,) = tmp_path.glob("*.json")
    ended = {trial.workload.replace("default", trial.scenario): trial for trial in load(data).trials}
    assert {name for name, trial in ended.items() if trial.measurement} == {HARMLESS}
    for name, (code, cause) in FAULTS.items():
        failure = made.known(ended[name].failure)
        assert failure.code is code and re.search(cause, failure.cause) and failure.remedy, (name, failure)
        assert re.search(rf"^\| .*{name} .*\| +\*{code}\*", tables, re.MULTILINE), name

    begin = tables.split("\n\n## ")[0]
    assert data.with_suffix(".md").read_text().startswith(begin)
    for name, words in LAST_WORDS.items():
        assert f"{name} on JAX: last output: {words}\n" in tables
    assert all(c.isprintable() or c == "\n" for c in tables + progress)
    assert "&lt;/td&gt;&lt;img src=x&gt;" in tables
    for process_left in psutil.process_iter():
        with suppress(psutil.Error):
            is_of_the_run = process_left.environ().get(MARK, "").startswith(f"{process.pid}-")
            assert not is_of_the_run or process_left.status() == psutil.STATUS_ZOMBIE, process_left


def test_a_peak_above_the_limit_of_memory_is_a_failure_though_it_was_never_seen(faults: Path) -> None:
    # The import of a framework reaches its peak between two looks, if it is quick.
    failure = made.known(trials.run(faults / "fine.py", "jax", memory_bytes=100 << 20).failure)
    assert failure.code is Code.OOM
    assert re.search(r"^used \d+(\.\d+)? MiB .*, the limit is 100 MiB \(--memory-limit\)$", failure.cause)


@pytest.mark.parametrize(
    ("backend", "code", "cause"),
    [
        ("torch", Code.UNAVAILABLE, ""),
        ("jax", Code.UNAVAILABLE, ""),
        # TensorFlow runs on the CPU without a word where the GPU is not there.
        ("tensorflow", Code.WRONG_DEVICE, "asked for cuda:99, but found weights on cpu:0"),
    ],
)
def test_a_gpu_that_is_not_there_is_never_a_row(faults: Path, backend: str, code: Code, cause: str) -> None:
    outcome = trials.run(faults / "fine.py", backend, device=Device("cuda", 99), plan=trials.STEPS_ALONE)
    assert outcome.measurement is None and outcome.failure is not None
    assert outcome.failure.code is code
    assert cause in outcome.failure.cause


# JAX's own answer to the list of platforms that a child on a GPU gets; the GPU is a CPU client under another name.
PROGRAM = """
import jax, jax.extend, numpy
from jax._src import xla_bridge
xla_bridge.register_backend_factory("pretended", xla_bridge.make_cpu_client, priority=500)
default = jax.extend.backend.get_backend()
assert default is jax.extend.backend.get_backend("pretended")
assert [d.client for d in jax.numpy.zeros(3).devices()] == [default]
jax.local_devices(backend="cpu")
whole = jax.ShapeDtypeStruct((3,), "float32")
doubled = jax.jit(lambda x: jax.pure_callback(lambda x: 2 * numpy.asarray(x), whole, x))(jax.numpy.ones(3))
assert doubled.tolist() == [2, 2, 2]
"""


def test_callbacks_find_a_cpu_beside_the_gpu_which_stays_the_default() -> None:
    variables = clean() | jax.environment(Device("pretended"), "")
    child = subprocess.run([sys.executable, "-c", PROGRAM], check=False, env=variables, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
