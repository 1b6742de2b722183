"""Names of Keras that are not public: where each version has them, and what is lost where none of these places does.

No other file of the package imports from ``keras.src``. A child alone looks them up, once Keras is imported.
"""

import importlib
from dataclasses import dataclass
from typing import Any

_lost: dict[str, None] = {}  # sentences of what this process has looked for in vain, in order


class LostNameError(AttributeError):
    """Keras has a name in none of its known places. Its text is a sentence for users."""


@dataclass(frozen=True)
class PrivateName:
    """A place is a module and, behind a colon, what it is called in there. They are tried in order."""

    places: tuple[str, ...]
    loss: str  # what kerasbench cannot do without it

    @property
    def name(self) -> str:
        return self.places[0].rpartition(":")[2].rpartition(".")[2]

    def owner(self) -> Any:
        """Return the module or class that has it, in which it can be replaced; raise LostNameError."""
        for place in self.places:
            module, _, path = place.partition(":")
            try:
                owner: Any = importlib.import_module(module)
                for outer in path.split(".")[:-1]:
                    owner = getattr(owner, outer)
                getattr(owner, self.name)
            except (ImportError, AttributeError):
                continue
            return owner
        raise LostNameError(lose(self.name, self.loss), name=self.name)

    def find(self) -> Any:
        return getattr(self.owner(), self.name)


@dataclass(frozen=True)
class InnerNames:
    """Variables of functions that Keras makes and keeps: which holds what is looked for depends on the version."""

    names: tuple[str, ...]
    loss: str

    def find(self, function: Any, attribute: str) -> list[Any]:
        """Return what of them has that attribute, behind a wrapper too. None has: the loss is noted."""
        cells = getattr(function, "__closure__", None) or ()
        inside = dict(zip(function.__code__.co_freevars, cells, strict=True)) if cells else {}
        values = [inside[name].cell_contents for name in self.names if name in inside]
        values += [value.__wrapped__ for value in values if hasattr(value, "__wrapped__")]
        owners = [value for value in values if hasattr(value, attribute)]
        if not owners:
            lose(" or ".join(self.names), self.loss)
        return owners


def lose(name: str, loss: str) -> str:
    """Note that Keras has not got the name; return the sentence that says so."""
    import keras

    return note(f"Keras {keras.__version__} has no {name} where kerasbench looks for it: {loss}")


def note(sentence: str) -> str:
    _lost[sentence] = None
    return sentence


def lost() -> list[str]:
    """Return the sentences of this process, of which each stands for a name that it has needed."""
    return list(_lost)


# Torch. Until 3.15 in backend/torch/, from 3.16 on in backend/torch/ops/ (Keras pull request 23642).
TORCH_DEVICE = PrivateName(
    ("keras.src.backend.torch.ops.core:get_device", "keras.src.backend.torch.core:get_device"),
    "the device is learned from a new tensor, which slows calls on a GPU a little",
)
POOLING_INPUTS = PrivateName(
    (
        "keras.src.backend.torch.ops.nn:_transpose_spatial_inputs",
        "keras.src.backend.torch.nn:_transpose_spatial_inputs",
    ),
    "it is unknown whether pooling layers copy their inputs",
)
MAX_POOL = PrivateName(
    ("keras.src.backend.torch.ops.nn:max_pool", "keras.src.backend.torch.nn:max_pool"), POOLING_INPUTS.loss
)
ATTENTION = PrivateName(
    ("keras.src.layers.attention.multi_head_attention:MultiHeadAttention._compute_attention",),
    "it is unknown what dropout costs attention layers",
)

DOT_PRODUCT_ATTENTION = PrivateName(
    ("keras.src.backend:ops.nn.dot_product_attention", "keras.src.backend:nn.dot_product_attention"),
    "it is unknown how attention is computed on TensorFlow",
)

# Recurrent layers. They call backend.lstm until 3.15, backend.rnn.lstm from 3.16 on. Both have keras.src.backend.*.rnn,
# but until 3.15 a function that is replaced in there is not called.
RECURRENT = {
    kind: PrivateName(
        (f"keras.src.backend:{kind}", f"keras.src.backend:rnn.{kind}"),
        f"it is unknown whether cuDNN computes {kind.upper()} layers",
    )
    for kind in ("lstm", "gru")
}

# What `fit` feeds. It takes batches of what it is given by the first; by the second, on JAX, it hands executions
# theirs: until 3.15 one by one, from 3.16 on those of an execution stacked (Keras pull request 23527).
ADAPTER = PrivateName(
    ("keras.src.trainers.data_adapters:get_data_adapter",),
    "what it costs to draw the order of samples is left out of an epoch, and no feed is measured by itself",
)
JAX_EPOCH = PrivateName(
    ("keras.src.backend.jax.trainer:JAXEpochIterator",),
    "several steps in one execution cannot be measured without fit",
)

# TensorFlow's functions inside of model.train_function, the one around all steps of an execution first. From 3.16 on, a
# single step is called without it. predict_function is TensorFlow's own in all versions.
TRACED = InnerNames(
    ("multi_step_on_iterator", "one_step_on_data"),
    "it is unknown whether TensorFlow traces a step again while it is timed",
)

# Attributes of public objects, and what cannot be done without them.
ATTRIBUTES = {
    "_flatten_layers": "the layers of a model cannot be looked at",
    "_call_has_training_arg": "models cannot be called as predict calls them",
    "_value": "it is unknown when JAX or MLX has computed the weights",
    "_jax_state": "it is unknown when JAX has done the steps of a fit",
    "_mlx_state": "it is unknown when MLX has done the steps of a fit",
    "_seed_generators": "layers with random numbers cannot be told from others",
    "_inputs_struct": "it is unknown what a model with several inputs takes",
    "_inbound_nodes": "it is unknown which input an embedding looks up",
    "_keras_history": "it is unknown which layer returns an image",
    "_compile_config": "a model cannot be compiled again as it was",
    "_compile_metrics": "it is unknown which outputs of a saved model have targets",
    "_trainable_variables": "it is unknown whether a loaded optimizer fits its model",
    "_compute_attention": ATTENTION.loss,
    "_dropout": ATTENTION.loss,
}


def missing(attribute: str) -> LostNameError:
    return LostNameError(lose(attribute, ATTRIBUTES[attribute]), name=attribute)
