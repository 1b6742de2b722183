"""Write the tables of what ``kerasbench versus --json`` measured, and print how many figures have a verdict.

``verdicts.py JSON TABLES``. The figures of controls, which should not differ, do not count.
"""

import json
import sys
from pathlib import Path


def main(file: str, tables: str) -> None:
    import kerasbench

    found = json.loads(Path(file).read_text("utf-8"))
    (run,) = found["runs"]
    Path(tables).write_text(f"{kerasbench.load(run['result_file'])}\n", "utf-8")
    verdicts = [one["verdict"] for one in found["ratios"] if not one["is_control"]]
    print(sum(verdict not in (None, "inconclusive") for verdict in verdicts))


if __name__ == "__main__":
    main(*sys.argv[1:])
