"""Starts a process in a session of its own, which outlives a kill of the child's group."""

import os
import subprocess
import sys

import base

SLEEP = "import time; time.sleep(600)"


def build(workload):
    daemon = subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)
    if place := os.environ.get("DAEMON_FILE"):
        with open(place, "w") as file:
            file.write(str(daemon.pid))
    return base.build(workload)


fine = base.scenario(build=build)
