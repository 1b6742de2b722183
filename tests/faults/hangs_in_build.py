import signal
import time

from base import scenario


def build(workload):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


spoiled = scenario(build=build)
