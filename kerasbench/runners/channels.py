"""A Keras model whose images have their channels first, made of one that has them last; it computes the same."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kerasbench.protocol.columns import FIRST, LAST
from kerasbench.protocol.messages import Code, Failure, TrialFailure
from kerasbench.runners.feed import Feed, Rows
from kerasbench.runners.inputs import leaves, mapped

TRIED_ROWS = 2
# How far the outputs of a layer may lie apart, as a share of the largest: all rounding is less, other axes are more.
FULL, ALIKE, ALIKE_ROUNDED = {"float32", "float64"}, 1e-3, 1e-1
CHANGE = 0.5  # at most: a new normalisation is the identity, along whichever axis, so it is compared with other weights
REMEDY = f"leave out --layout {FIRST} for this model"
Ranks = set[int]  # how many dimensions images have, the samples' among them
Outputs = list[tuple[str, Any]]  # what layers return, each with the layer's name


def channels_first(model: Any, feed: Feed) -> tuple[Any, Feed]:
    """Return model and feed with the channels first; raise TrialFailure that names what cannot be moved."""
    import keras

    graph = _graph_of(model)
    ranks = _ranks_of_images(graph)
    rows = _moved_rows(feed, graph, ranks)
    inputs = keras.tree.map_structure(
        lambda tensor: keras.Input(batch_shape=moved(tensor.shape, ranks), dtype=tensor.dtype, name=tensor.name),
        graph.input,
    )
    made, outputs = _called_again(graph, inputs, lambda layer: _moved_layer(layer, ranks))
    _, expected = _called_again(graph, graph.input, lambda layer: layer)
    weights, rng = graph.get_weights(), np.random.default_rng(0)
    changed = [weight + CHANGE * rng.random(weight.shape) if weight.ndim == 1 else weight for weight in weights]
    graph.set_weights(changed)
    _give_weights(graph, made)
    few = feed.train[:TRIED_ROWS]
    after = _computed_or_refused(made.input, outputs, rows(few).x)
    _require_alike(_computed(graph.input, expected, few.x), after, ranks, _bound(graph))
    graph.set_weights(weights)
    _give_weights(graph, made)
    _compile_as(model, made)
    return made, replace(feed, train=rows(feed.train), validation=rows(feed.validation), test=rows(feed.test))


def moved(shape: Any, ranks: Ranks) -> tuple[Any, ...]:
    return (shape[0], shape[-1], *shape[1:-1]) if len(shape) in ranks else tuple(shape)


def _refused(cause: str) -> TrialFailure:
    return TrialFailure(Failure(Code.UNSUPPORTED, f"the channels cannot be moved: {cause}", REMEDY))


def _graph_of(model: Any) -> Any:
    """Return a model of the same layers that was not compiled: Keras' copy of a loss of the user's own would fail."""
    import keras

    if type(model) is keras.Sequential:
        return keras.Model(model.inputs[0], model.outputs[0])
    graph = keras.Model(model.input, model.output) if hasattr(model, "_inputs_struct") else None
    if type(model) is not type(graph):
        raise _refused(f"its class {type(model).__name__} has a call, or steps, of its own")
    return graph


def _ranks_of_images(graph: Any) -> Ranks:
    import keras

    known = [layer for layer in graph.layers if hasattr(layer, "data_format")]
    known = [layer for layer in known if not isinstance(layer, keras.layers.Flatten)]
    if first := next((layer.name for layer in known if layer.data_format == FIRST), None):
        raise _refused(f"its layer {first} already has its channels first")
    if not known:
        raise _refused("it has no layer with channels, as convolutions and pooling have")
    ranks = {len(tensor.shape) for layer in known for tensor in _taken(layer)}
    drops = [layer.name for layer in graph.layers if isinstance(layer, keras.layers.SpatialDropout1D)]
    if drops and 3 in ranks:  # it has no data_format
        raise _refused(f"its layer {drops[0]} drops what comes last")
    for tensor in keras.tree.flatten(graph.output):
        if len(tensor.shape) in ranks:
            raise _refused(f"its layer {tensor._keras_history.operation.name} returns an image, as its targets are")
    return ranks


def _taken(layer: Any) -> list[Any]:
    tensors: list[Any] = layer._inbound_nodes[0].input_tensors
    return tensors


def _moved_rows(feed: Feed, graph: Any, ranks: Ranks) -> Callable[[Rows], Rows]:
    import keras

    if feed.workload.feed is not None:
        raise _refused("its batches come from a pipeline of its own")
    dimensions = [array.ndim for _, array in leaves(feed.train.x)]
    if dimensions != [len(tensor.shape) for tensor in keras.tree.flatten(graph.input)]:
        raise _refused("its samples have other dimensions than its inputs")

    def move(array: Any) -> Any:
        return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if array.ndim in ranks else array

    return lambda rows: replace(rows, x=mapped(move, rows.x))


def _called_again(graph: Any, inputs: Any, copy: Callable[[Any], Any]) -> tuple[Any, Outputs]:
    """Return a model of copies of the layers, called on other inputs, and what each of them returns."""
    import keras

    outputs: Outputs = []

    def copied(layer: Any) -> Any:
        try:
            return copy(layer)
        except Exception as error:  # of a layer of the user's own, whatever its configuration lacks
            raise _refused(f"its layer {layer.name} cannot be made again from its configuration") from error

    def called(layer: Any, *args: Any, **named: Any) -> Any:
        try:
            output = layer(*args, **named)
        except Exception as error:  # Keras and each backend have other ones for a shape that does not fit
            raise _refused(f"its layer {layer.name} does not take an image that has them first") from error
        outputs.extend((layer.name, tensor) for tensor in keras.tree.flatten(output))
        return output

    return keras.models.clone_model(graph, inputs, copied, called), outputs


def _moved_layer(layer: Any, ranks: Ranks) -> Any:
    config, taken = layer.get_config(), [len(tensor.shape) for tensor in _taken(layer)]
    rank = next((rank for rank in taken if rank in ranks), 0)
    if rank:
        places = [0, *range(2, rank), 1]  # where each axis goes
        if config.get("data_format") == LAST:
            config["data_format"] = FIRST
        for name in ("axis", "shared_axes"):
            if isinstance(axes := config.get(name), int):
                config[name] = places[axes]
            elif axes is not None:
                config[name] = [places[axis] for axis in axes]
        if config.get("noise_shape"):
            config["noise_shape"] = moved(config["noise_shape"], ranks)
    if "target_shape" in config:
        config["target_shape"] = moved((None, *config["target_shape"]), ranks)[1:]
    return type(layer).from_config(config)


def _give_weights(graph: Any, made: Any) -> None:
    """Weights of all axes of an image, as a PReLU has, are moved with them."""
    for layer in [layer for layer in graph.layers if layer.weights]:
        copy, weights = made.get_layer(layer.name), layer.get_weights()
        for place, (weight, variable) in enumerate(zip(weights, copy.weights, strict=True)):
            if weight.shape != tuple(variable.shape):
                weights[place] = np.moveaxis(weight, -1, 0)
            if weights[place].shape != tuple(variable.shape):
                raise _refused(f"its layer {layer.name} has weights of another shape with channels first")
        copy.set_weights(weights)


def _computed(inputs: Any, outputs: Outputs, x: Any) -> Outputs:
    import keras

    arrays = keras.Model(inputs, [tensor for _, tensor in outputs]).predict_on_batch(x)
    return [(name, array) for (name, _), array in zip(outputs, keras.tree.flatten(arrays), strict=True)]


def _computed_or_refused(inputs: Any, outputs: Outputs, x: Any) -> Outputs:
    try:
        return _computed(inputs, outputs, x)
    except Exception as error:  # of the backend, which may lack what Keras lets one ask for
        for name, tensor in outputs:
            try:
                _computed(inputs, [(name, tensor)], x)
            except Exception:
                raise _refused(f"its layer {name} does not run with channels first") from error
        raise


def _bound(graph: Any) -> float:
    return ALIKE if {layer.compute_dtype for layer in graph.layers} <= FULL else ALIKE_ROUNDED


def _require_alike(expected: Outputs, computed: Outputs, ranks: Ranks, bound: float) -> None:
    """Raise TrialFailure for the first layer that computes something else."""
    for (name, before), (_, after) in zip(expected, computed, strict=True):
        wanted = np.moveaxis(before, -1, 1) if before.ndim in ranks else before
        largest = float(np.max(np.abs(wanted), initial=0.0))
        if wanted.shape != after.shape or not np.max(np.abs(wanted - after), initial=0.0) <= bound * largest:
            raise _refused(f"its layer {name} computes something else with channels first")


def _compile_as(model: Any, made: Any) -> None:
    if getattr(model, "compiled", False):
        config = dict(model._compile_config.config)  # what compile() was given
        if model.optimizer.built:  # as loading leaves it, for the weights of that model
            config["optimizer"] = type(model.optimizer).from_config(model.optimizer.get_config())
        made.compile(**config)
