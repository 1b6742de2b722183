"""What somebody writes who wants the first step of ``noop.py`` and has no kerasbench: a child of ``overhead.py``."""

import json
import sys
import time

from kerasbench.worker.failure import refuse_other_frameworks

refuse_other_frameworks(sys.argv[2])  # as a trial does: Keras would import JAX too, wherever it finds it

import numpy as np  # noqa: E402
from noop import build  # noqa: E402

rng = np.random.default_rng(0)
build(None).fit(rng.random((1, 1), "float32"), rng.random((1, 1), "float32"), batch_size=1, verbose=0)
print(json.dumps(time.monotonic()))
