"""A convolution, attention and an LSTM; planted, the last two are computed otherwise."""

import keras
from base import scenario

from kerasbench import Workload


class Attention(keras.layers.MultiHeadAttention):
    plain = False

    def call(self, query, value, key=None, **named):
        if not self.plain:
            return super().call(query, value, key, **named)
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(SDPBackend.MATH):
            return super().call(query, value, key, **named)


class LSTM(keras.layers.LSTM):
    """Its fused function refuses, as where cuDNN cannot do what a layer is."""

    def call(self, sequences, initial_state=None, mask=None, training=False):
        from kerasbench.private import RECURRENT

        def refuse(*args, **named):
            raise NotImplementedError

        owner, name = RECURRENT["lstm"].owner(), RECURRENT["lstm"].name
        fused = getattr(owner, name)
        setattr(owner, name, refuse)
        try:
            return super().call(sequences, initial_state, mask, training)
        finally:
            setattr(owner, name, fused)


def build(workload):
    kernel = LSTM if workload.name == "planted" else keras.layers.LSTM
    images = keras.Input((8, 8, 3))
    x = keras.layers.MaxPooling2D()(keras.layers.Conv2D(4, 3)(images))
    x = keras.layers.Reshape((9, 4))(x)
    attention = Attention(2, 4)
    attention.plain = workload.name == "planted"
    x = kernel(4)(attention(x, x))
    model = keras.Model(images, keras.layers.Dense(2)(x))
    model.compile("sgd", "mse")
    return model


def data(samples, rng):
    return rng.random((samples, 8, 8, 3), dtype="float32"), rng.random((samples, 2), dtype="float32")


workloads = tuple(Workload(name=name, train=320, batch=16) for name in ("default", "planted"))
which_code = scenario(build=build, data=data, workloads=workloads)
