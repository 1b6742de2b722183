"""Keras 3.15 copies an input on torch to bring its channels first, though torch reads them where they are."""

import ast
import functools
import importlib
import inspect
from typing import Any

from kerasbench.variants.causes.cause import Cause, ancestors
from kerasbench.variants.variant import SCRIPT, Refusal, Written

POOLS = {"BasePooling", "BaseAdaptivePooling"}
MENDED = "channels_last_memory_format"  # what its pooling functions ask for where the copy is gone


class PoolingCopy(Cause):
    name = "without_pooling_copy"
    backends = ("torch",)
    says = "Keras copies the input of each pooling layer and convolution"
    upstream = "Keras PR 23645, open in November 2026, takes it away"
    function = ("keras.src.backend.torch.nn", "_transpose_spatial_inputs")
    sources = ("ef6498d8ab66ab0dd83a6d6d90e38e31778a1fb704ff35f305a74f0418c7d0ee",)  # 3.15.0, 3.15.1

    def concerns(self, model: Any) -> bool:
        from keras.src.backend.torch import nn

        tree = ast.parse(inspect.getsource(nn._transpose_spatial_inputs))  # whose comments speak of it, too
        copies = any(getattr(node, "attr", "") == "contiguous" for node in ast.walk(tree))  # not before 3.15
        if not copies or MENDED in inspect.getsource(nn.max_pool):
            return False
        pools = [layer for layer in model._flatten_layers() if POOLS & ancestors(layer)]
        return any(pool.data_format == "channels_last" for pool in pools)

    def written(self, value: bool, backend: str, processors: str) -> Written:
        return SCRIPT, f"import torch; {'.'.join(self.function)} = lambda x: torch.movedim(x, -1, 1)"

    def take_away(self, model: Any) -> Refusal:
        import torch

        module, name = self.function

        @functools.wraps(self.original())  # of which its source is then, so that it may be set again
        def moved(inputs: Any) -> Any:
            return torch.movedim(inputs, -1, 1)

        setattr(importlib.import_module(module), name, moved)
        return None
