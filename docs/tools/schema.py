"""The JSON Schema of a result file: ``python docs/tools/schema.py > docs/results.schema.json`` makes it."""

import dataclasses
import inspect
import json
import re
import sys

import msgspec

from kerasbench.protocol.measurement import Slice
from kerasbench.results.record import SCHEMA, Record

FIELD = re.compile(r"^    (\w+): .*?  # (.*)$", re.MULTILINE)  # a field of a dataclass with a comment


def document() -> str:
    """Return the schema of today's files (JSON Schema 2020-12), as msgspec derives it from the types."""
    schema = msgspec.json.schema(Record) | {"title": f"A kerasbench result file, schema {SCHEMA}"}
    types = {
        name: value
        for module in list(sys.modules.values())
        if module.__name__.startswith("kerasbench")
        for name, value in vars(module).items()
        if isinstance(value, type) and dataclasses.is_dataclass(value)
    }
    types["Slices"] = Slice  # each of its columns has what is a field there
    for name, definition in schema["$defs"].items():
        for field, comment in FIELD.findall(inspect.getsource(types[name])) if name in types else ():
            definition["properties"][field]["description"] = comment
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(document(), end="")
