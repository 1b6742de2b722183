"""``--env``: environment variables of the child, each value a column: ``--env OMP_WAIT_POLICY=active,passive``."""

import itertools
import re
from collections.abc import Sequence

from kerasbench.backends import Backend
from kerasbench.variants.variant import SHELL, CaseFacts, Refusal, ScriptFacts, Variant, Written

ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=[\x21-\x7e]*")


class Env(Variant[str]):
    name = "env"
    metavar = "NAME=VALUE"
    repeat_on_resume = True
    help = "Environment variable of the trials; of several values each is a configuration: NAME=a,b."

    def parse(self, words: Sequence[str]) -> list[str | None]:
        by_name: dict[str, dict[str, None]] = {}  # in order, each once
        name = ""
        for word in words:
            name, value = word.split("=", 1) if "=" in word else (name, word)  # a comma stood before it
            by_name.setdefault(name, {})[f"{name}={value}"] = None
            if not ASSIGNED.fullmatch(f"{name}={value}"):
                raise ValueError(f"takes NAME=VALUE, or NAME=a,b, without spaces, not {word!r}")
        return [" ".join(values) for values in itertools.product(*by_name.values())]

    def word(self, value: str | None) -> str:
        return str(value).replace(" ", ",")

    def refusal(self, value: str, facts: CaseFacts) -> Refusal:
        taken = sorted(facts.reserved & set(self.variables(value, facts.backend, "")))
        if not taken:
            return None
        return f"kerasbench sets {', '.join(taken)} itself, for each trial", f"leave out --env {taken[0]}=..."

    def written(self, value: str, script: ScriptFacts) -> Written:
        return SHELL, f"export {value}"

    def variables(self, value: str, backend: Backend, folder: str) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in value.split(" "))
