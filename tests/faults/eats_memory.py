import time

from base import scenario

PART_BYTES, PARTS = 64 << 20, 40  # 2.5 GiB in all, should nobody stop it


def build(workload):
    eaten = []
    for _ in range(PARTS):
        eaten.append(b"x" * PART_BYTES)
        time.sleep(0.1)


spoiled = scenario(build=build)
