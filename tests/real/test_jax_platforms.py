"""JAX's own answer to the list of platforms that a child on a GPU gets; the GPU is a CPU client under another name."""

import subprocess
import sys

import pytest

from kerasbench.backends import jax
from kerasbench.processes.variables import clean
from kerasbench.protocol.columns import DEFAULT, Device

pytestmark = pytest.mark.real

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
    variables = clean() | jax.environment(Device("pretended"), DEFAULT, "")
    child = subprocess.run([sys.executable, "-c", PROGRAM], check=False, env=variables, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
