"""The JSON Schemas of a result file and of what --json prints.

python docs/tools/schema.py > docs/results.schema.json
python docs/tools/schema.py json > docs/json.schema.json
"""

import dataclasses
import inspect
import json
import re
import sys

import msgspec

from kerasbench import variants
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Slice
from kerasbench.report import document as printed
from kerasbench.results.run import SCHEMA, Run

FIELD = re.compile(r"^    (\w+): .*?  # (.*)$", re.MULTILINE)  # a field of a dataclass with a comment
OF_RESULTS = ("kerasbench.host", "kerasbench.protocol", "kerasbench.results")


def types_of(*modules: str) -> dict[str, type]:
    """Return the dataclasses and Structs of these modules by their names."""
    return {
        name: value
        for module in list(sys.modules.values())
        if module.__name__.startswith(modules)
        for name, value in vars(module).items()
        if isinstance(value, type) and (dataclasses.is_dataclass(value) or issubclass(value, msgspec.Struct))
    }


def written(root: type, title: str, types: dict[str, type]) -> str:
    """Return a schema (JSON Schema 2020-12), as msgspec derives it from the types, with their comments."""
    schema = msgspec.json.schema(root, schema_hook=of_options) | {"title": title}
    for name, definition in schema["$defs"].items():
        ancestors = types[name].__mro__[::-1] if name in types else ()
        for ancestor in (ancestor for ancestor in ancestors if ancestor.__module__.startswith("kerasbench")):
            for field, comment in FIELD.findall(inspect.getsource(ancestor)):
                definition["properties"][field]["description"] = comment
        if "description" in definition:  # a docstring, whose indentation Python 3.13 takes away by itself
            definition["description"] = inspect.cleandoc(definition["description"])
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def of_options(kind: type) -> dict[str, object]:
    """Say what a column may have: the size of a sweep, its interpreter, a control, and what is chosen of variants."""
    assert kind is Options
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    types = {name: {"type": names[takes[-1]]} for name, takes in sorted(variants.TAKES.items())}
    return {"type": "object", "title": "Options", "description": inspect.getdoc(kind), "properties": types}


def of_results() -> str:
    types = types_of(*OF_RESULTS) | {"Samples": Slice}  # each of its columns has what is a field there
    return written(Run, f"A kerasbench result file, schema {SCHEMA}", types)


def of_json() -> str:
    return written(
        printed.Document, f"What kerasbench prints with --json, schema {printed.SCHEMA}", types_of(printed.__name__)
    )


if __name__ == "__main__":
    print(of_json() if sys.argv[1:] == ["json"] else of_results(), end="")
