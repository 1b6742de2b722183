"""Finds the pipe, writes the measurement of another trial to it, and leaves as a trial does."""

import json
import os
import sys
from pathlib import Path

from base import scenario

GOLDEN = Path(__file__).parents[1] / "golden" / "schema_5.json"


def build(workload):
    (first, *_) = json.loads(GOLDEN.read_text())["trials"]
    os.write(int(sys.argv[1]), json.dumps({"measurement": first["measurement"]}).encode() + b"\n")
    os._exit(0)


spoiled = scenario(build=build)
