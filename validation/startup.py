"""How long do the commands take that measure nothing, in units of an empty Python?

Each is started in turn with ``python -c pass``, so that whatever else the machine does meets both alike. Compiled
modules and descriptions of scenarios are kept, as they are for a user; the first start of each is not counted.

    python validation/startup.py [STARTS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

EMPTY = ["-c", "pass"]
COMMANDS = {"--help": 6.0, "list": 10.0}  # how many times an empty Python each may take
STARTS = 40


def seconds(arguments: list[str], environment: dict[str, str]) -> float:
    """Return how long one start took."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def measure(starts: int, cache: str) -> dict[str, list[float]]:
    """Return the times of each command, and of an empty Python, one of each in every turn."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": cache, "XDG_CACHE_HOME": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    asked = {"pass": EMPTY} | {name: ["-m", "kerasbench", name] for name in COMMANDS}
    turns = [{name: seconds(arguments, environment) for name, arguments in asked.items()} for _ in range(starts + 1)]
    return {name: [turn[name] for turn in turns[1:]] for name in asked}


def main() -> int:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else STARTS
    with tempfile.TemporaryDirectory() as cache:
        times = measure(starts, cache)
    print(f"python -c pass: {statistics.median(times['pass']) * 1e3:.0f} ms; medians of {starts} starts in turn")
    slow = False
    for name, most in COMMANDS.items():
        ratio = statistics.median(mine / empty for mine, empty in zip(times[name], times["pass"], strict=True))
        slow |= ratio > most
        print(f"{name}: {statistics.median(times[name]) * 1e3:.0f} ms, {ratio:.1f} times as long (at most {most:g})")
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
