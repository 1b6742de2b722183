"""The JSON Schema of a result file: ``python docs/tools/schema.py > docs/results.schema.json`` makes it."""

import json

import msgspec

from kerasbench.results.record import SCHEMA, Record


def document() -> str:
    """Return the schema of today's files (JSON Schema 2020-12), as msgspec derives it from the types."""
    schema = msgspec.json.schema(Record) | {"title": f"A kerasbench result file, schema {SCHEMA}"}
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    print(document(), end="")
