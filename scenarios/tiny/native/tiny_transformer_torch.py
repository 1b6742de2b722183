"""tiny_transformer in plain torch."""

import torch
from torch import nn

from kerasbench.native.torch import Loop, adam

VOCABULARY, WIDTH, HEADS = 1_000, 256, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention = nn.LayerNorm(WIDTH, eps=1e-3)
        self.query, self.key, self.value, self.output = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.before_dense = nn.LayerNorm(WIDTH, eps=1e-3)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.before_attention(x)
        q, k, v = (each(y).unflatten(-1, (HEADS, -1)).transpose(1, 2) for each in (self.query, self.key, self.value))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(y.transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.before_dense(x))))


def copy_layer(layer, arrays):
    """Copy Keras' arrays: a kernel has its outputs last, and those of attention have an axis for the heads."""
    kernel = arrays[0]
    if isinstance(layer, nn.Linear):
        kernel = kernel.reshape(layer.in_features, layer.out_features).T
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(kernel.copy()))
        if len(arrays) > 1:
            layer.bias.copy_(torch.from_numpy(arrays[1].reshape(-1)))


def build(start):
    blocks = [Block(), Block()]
    model = nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH), *blocks, nn.LayerNorm(WIDTH, eps=1e-3), nn.Linear(WIDTH, VOCABULARY)
    )
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.LayerNorm)]
    copy_layer(model[0], start.weights[:1])
    for number, layer in enumerate(layers):
        copy_layer(layer, start.weights[1 + 2 * number : 3 + 2 * number])
    return Loop(start, model, adam(0.001), accuracy=False)
