import os

import base


def build(regime):
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, b'{"measurement": {"fake": 1}}\n')
        except OSError:
            continue
    return base.build(regime)


spoiled = base.scenario(build=build)
