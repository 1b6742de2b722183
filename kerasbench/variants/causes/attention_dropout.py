"""An attention layer with dropout leaves the fused kernel, in predictions too, which drop nothing."""

from types import MethodType
from typing import Any

from kerasbench.private import ATTENTION
from kerasbench.variants.causes.cause import Cause
from kerasbench.variants.variant import Refusal


class AttentionDropout(Cause):
    name = "without_attention_dropout"
    backends = ("torch",)
    predicts = True
    says = "attention layers with dropout do not use the fused kernel, although a prediction drops nothing"
    today = "For predictions, build the model with dropout=0 and load the same weights"
    function = ATTENTION
    sources = ("88168a1a82dd0d31365342088698b31988c40e6fdb2cd06001d4d2ec8f372966",)  # 3.15.0, 3.15.1

    def concerns(self, model: Any) -> bool:
        return bool(dropping(model, ATTENTION.find()))

    def take_away(self, model: Any) -> Refusal:
        original = ATTENTION.find()

        def compute(
            layer: Any,
            query: Any,
            key: Any,
            value: Any,
            mask: Any = None,
            training: Any = None,
            *rest: Any,
            **named: Any,
        ) -> Any:
            attributes = vars(layer)  # to set an attribute of a layer takes Keras far longer
            dropout = attributes["_dropout"]
            attributes["_dropout"] = dropout if training else 0.0
            try:
                return original(layer, query, key, value, mask, training, *rest, **named)
            finally:
                attributes["_dropout"] = dropout

        for layer in dropping(model, original):
            layer._compute_attention = MethodType(compute, layer)
        return None


def dropping(model: Any, original: Any) -> list[Any]:
    """Return the layers with dropout that compute attention as Keras' own class does."""
    layers = model._flatten_layers()
    attentions = [layer for layer in layers if getattr(type(layer), "_compute_attention", None) is original]
    return [layer for layer in attentions if layer._dropout > 0]
