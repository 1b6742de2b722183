"""Keras 3.15 copies an input on torch to bring its channels first, which later versions no longer do."""

import ast
import functools
import inspect
from typing import Any

from kerasbench.private import MAX_POOL, POOLING_INPUTS
from kerasbench.variants.causes.cause import Cause, ancestors
from kerasbench.variants.variant import SCRIPT, Refusal, ScriptFacts, Written

POOLS = {"BasePooling", "BaseAdaptivePooling"}
MENDED = "channels_last_memory_format"  # what its pooling functions ask for where the copy is gone


class PoolingCopy(Cause):
    name = "without_pooling_copy"
    backends = ("torch",)
    says = "Keras copies the input of each pooling layer and convolution"
    upstream = "It is mended after Keras 3.15.1, by PR 23645"
    function = POOLING_INPUTS
    sources = ("ef6498d8ab66ab0dd83a6d6d90e38e31778a1fb704ff35f305a74f0418c7d0ee",)  # 3.15.0, 3.15.1

    def concerns(self, model: Any) -> bool:
        tree = ast.parse(inspect.getsource(POOLING_INPUTS.find()))  # whose comments speak of it, too
        copies = any(getattr(node, "attr", "") == "contiguous" for node in ast.walk(tree))  # not before 3.15
        if not copies or MENDED in inspect.getsource(MAX_POOL.find()):
            return False
        pools = [layer for layer in model._flatten_layers() if POOLS & ancestors(layer)]
        return any(pool.data_format == "channels_last" for pool in pools)

    def written(self, value: bool, script: ScriptFacts) -> Written:
        copies = POOLING_INPUTS.places[-1].replace(":", ".")  # in the versions that do it
        return SCRIPT, f"import torch; {copies} = lambda x: torch.movedim(x, -1, 1)"

    def take_away(self, model: Any) -> Refusal:
        import torch

        @functools.wraps(POOLING_INPUTS.find())  # of which its source is then, so that it may be set again
        def moved(inputs: Any) -> Any:
            return torch.movedim(inputs, -1, 1)

        setattr(POOLING_INPUTS.owner(), POOLING_INPUTS.name, moved)
        return None
