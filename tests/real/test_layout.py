"""Models whose channels are moved: they compute the same, or the layer is named that cannot."""

import sys

import pytest

from kerasbench import backends
from kerasbench.protocol.columns import CPU, DEFAULT, Column, Options
from kerasbench.protocol.messages import Code
from tests import made
from tests.real import trials
from tests.repository import printed

pytestmark = pytest.mark.real
FIRST = Options(layout="channels_first")

MODELS = '''
import keras
import numpy as np

from kerasbench import Workload
from kerasbench.protocol.messages import TrialFailure
from kerasbench.runners.channels import channels_first
from kerasbench.runners.feed import Feed, Rows

L, SIDE, CHANNELS = keras.layers, 8, 3
image = keras.Input((SIDE, SIDE, CHANNELS))


class Bare(L.Layer):
    def __init__(self, units):
        super().__init__()

    def call(self, x):
        return x


class Picky(L.Layer):
    def call(self, x):
        assert x.shape[-1] == 4
        return x


class Own(keras.Model):
    def train_step(self, data):
        return super().train_step(data)


def everything():
    """Layers of every kind that can be moved, in an order in which a wrong axis is another number."""
    x = L.BatchNormalization()(L.Conv2D(SIDE, 3, padding="same")(L.Rescaling(0.5)(image)))
    x = L.PReLU()(x)
    squeezed = L.Reshape((1, 1, SIDE))(L.GlobalAveragePooling2D()(x))
    x = L.Multiply()([x, L.Conv2D(SIDE, 1, activation="sigmoid")(squeezed)])
    x = L.Concatenate()([x, L.DepthwiseConv2D(3, padding="same")(L.ReLU()(x))]) * 2.0
    x = L.Softmax()(L.GroupNormalization(2)(x))
    x = L.Dropout(0.5, noise_shape=(None, 1, 1, 2 * SIDE))(L.SpatialDropout2D(0.5)(x))
    pooled = keras.ops.mean(x, axis=(1, 2))
    return L.Concatenate()([pooled, L.Flatten()(L.ZeroPadding2D(1)(L.MaxPooling2D(2)(x)))])


def named(layer):
    return lambda x: L.Dense(2)(L.Flatten()(layer(L.Conv2D(4, 3, name="known")(x))))


def own_loss(y, outputs):
    return keras.ops.mean(keras.ops.square(outputs - y), axis=-1)


rng = np.random.default_rng(0)
x = rng.random((6, SIDE, SIDE, CHANNELS), dtype="float32")


def moved(model, x=x, **workload):
    rows = Rows(x, np.zeros((len(x), 2), np.float32))
    return channels_first(model, Feed(Workload(train=len(x), **workload), rows, rows, rows[:0]))


model = keras.Model(image, L.Dense(2)(everything()))
model.compile(keras.optimizers.SGD(0.25), own_loss, steps_per_execution=1)
made, feed = moved(model)
apart = np.max(np.abs(model.predict_on_batch(x) - made.predict_on_batch(feed.validation.x)))
print("computes the same:", bool(apart < 1e-5), feed.train.x.shape, feed.train.x.flags.c_contiguous)
print("compiled alike:", made.loss is own_loss, float(made.optimizer.learning_rate))
loss = made.evaluate(feed.train.x, feed.train.y, verbose=0)
print("the same loss:", bool(abs(loss - np.mean(model.predict_on_batch(x) ** 2)) < 1e-5))
made.fit(feed.train.x, feed.train.y, verbose=0)
layers = [L.Conv1D(4, 3), L.MaxPooling1D(2), L.Flatten(), L.Dense(2)]
sequential = keras.Sequential([keras.Input((SIDE, CHANNELS)), *layers])
print("one dimension:", moved(sequential, x[:, 0])[0].input_shape)

CANNOT = {
    "dense": named(L.Dense(4, name="named")),
    "softmax": named(L.Conv2D(4, 3, activation="softmax", name="named")),
    "permute": named(L.Permute((2, 1, 3), name="named")),
    "another shape": named(L.Reshape((36, 4), name="named")),
    "not to be copied": named(Bare(4)),
    "fails": named(Picky(name="named")),
    "returns an image": L.Conv2D(2, 3, name="named"),
    "is moved already": named(L.MaxPooling2D(2, data_format="channels_first", name="named")),
    "has no channels": lambda x: L.Dense(2)(L.Flatten()(x)),
}
for what, layers in CANNOT.items():
    try:
        moved(keras.Model(image, layers(image)))
    except TrialFailure as error:
        print(f"{what}: {error.failure.code} {error.failure.cause}")
drops = [keras.Input((SIDE, CHANNELS)), L.SpatialDropout1D(0.5, name="named"), L.Conv1D(4, 3), L.Flatten()]
for what, model, different in (
    ("drops channels", keras.Sequential([*drops, L.Dense(2)]), {"x": x[:, 0]}),
    ("steps of its own", Own(image, L.Dense(2)(L.Flatten()(L.MaxPooling2D(2)(image)))), {}),
    ("own batches", sequential, {"x": x[:, 0], "feed": lambda x, y, batch: None}),
    ("no channels in the data", sequential, {"x": x[:, 0, :, 0]}),
):
    try:
        moved(model, **different)
    except TrialFailure as error:
        print(f"{what}: {error.failure.cause}")
'''
WHAT = "the channels cannot be moved:"
SAID = f"""
computes the same: True (6, 3, 8, 8) True
compiled alike: True 0.25
the same loss: True
one dimension: (None, 3, 8)
dense: unsupported {WHAT} its layer named has weights of another shape with channels first
softmax: unsupported {WHAT} its layer named computes something else with channels first
permute: unsupported {WHAT} its layer named computes something else with channels first
another shape: unsupported {WHAT} its layer named computes something else with channels first
not to be copied: unsupported {WHAT} its layer bare cannot be made again from its configuration
fails: unsupported {WHAT} its layer named does not take an image that has them first
returns an image: unsupported {WHAT} its layer named returns an image, as its targets are
is moved already: unsupported {WHAT} its layer named already has its channels first
has no channels: unsupported {WHAT} it has no layer with channels, as convolutions and pooling have
drops channels: {WHAT} its layer named drops what comes last
steps of its own: {WHAT} its class Own has a call, or steps, of its own
own batches: {WHAT} its batches come from a pipeline of its own
no channels in the data: {WHAT} its samples have other dimensions than its inputs
"""


@pytest.mark.weekly
def test_what_is_moved_computes_the_same_and_what_cannot_be_is_named() -> None:
    said = printed(sys.executable, "-c", MODELS, KERAS_BACKEND="torch")
    assert said.split("\n") == [*SAID.strip().split("\n"), ""]


WEEKLY = [(name, backend) for name in ("resnet8", "ds_cnn", "cifar10_cnn") for backend in backends.built_in()]


@pytest.mark.parametrize(
    ("scenario", "backend"),
    [("cifar10_cnn", "torch"), *(pytest.param(*case, marks=pytest.mark.weekly) for case in WEEKLY)],
)
def test_a_column_with_its_channels_first_learns_the_same(scenario: str, backend: str) -> None:
    folder = "" if scenario == "cifar10_cnn" else "tiny/"
    columns = {Column(backend, CPU, options): options for options in (DEFAULT, FIRST)}
    measured = {
        column: trials.measured(trials.builtin(folder + scenario, "default", backend, options, trials.STEPS_ALONE))
        for column, options in columns.items()
    }
    formats = [measurement.resolved.image_data_format for measurement in measured.values()]
    assert formats == ["channels_last", "channels_first"]
    assert trials.disagreements(measured) == {} and all(measurement.parity for measurement in measured.values())


def test_what_tensorflow_has_no_operation_for_is_said() -> None:
    options = Options(env="TF_ENABLE_ONEDNN_OPTS=0", **FIRST)
    failure = made.known(trials.builtin("cifar10_cnn", "default", "tensorflow", options, trials.STEPS_ALONE).failure)
    assert failure.code is Code.UNSUPPORTED and "TensorFlow has no convolutions for channels" in failure.cause
