"""What a saved model's configuration says of its training, and how one that reads text is cut."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kerasbench.runners.inputs import InputSpec

NOT_COMPILED = "not compiled"
NO_LOSS = "compiled without a loss"
# fmt: off
OPTIMIZERS = frozenset(
    {
        "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "ftrl", "lamb", "lion", "lossscaleoptimizer",
        "muon", "nadam", "rmsprop", "sgd",
    }
)
# What any of these takes in Keras 3; it ignores `decay` with a warning.
TAKEN = frozenset(
    {
        "adam_beta_1", "adam_beta_2", "adam_lr_ratio", "adam_weight_decay", "amsgrad", "beta", "beta_1", "beta_2",
        "beta_2_decay", "caution", "centered", "clip_threshold", "clipnorm", "clipvalue", "decay",
        "dynamic_growth_steps", "ema_momentum", "ema_overwrite_frequency", "epsilon", "epsilon_1", "epsilon_2",
        "exclude_embeddings", "exclude_layers", "global_clipnorm", "gradient_accumulation_steps",
        "initial_accumulator_value", "initial_scale", "inner_optimizer", "l1_regularization_strength",
        "l2_regularization_strength", "l2_shrinkage_regularization_strength", "learning_rate", "learning_rate_power",
        "loss_scale_factor", "momentum", "muon_a", "muon_b", "muon_c", "name", "nesterov", "ns_steps", "relative_step",
        "rho", "rms_rate", "use_ema", "warmup_steps", "weight_decay",
    }
)
# fmt: on
REGULARIZER, OWN_LOSS = "_regularizer", ("ActivityRegularization",)
TEXT = "string"
NESTED = ("Functional", "Sequential", "Model")
MAX_WORD = 80  # characters of what a file says and pages repeat


def why_untrained(training: Any, kind: str, parts: Iterable[Mapping[str, Any]]) -> str:
    """Return why a model is not trained; empty where it can be. ``parts``: the objects of its configuration."""
    if training is None:
        return NOT_COMPILED
    if not isinstance(training, dict):
        return ""
    if "loss" in training and training["loss"] is None and kind in NESTED and not any(map(_brings_loss, parts)):
        return NO_LOSS
    optimizer = training.get("optimizer_config") or training.get("optimizer")
    if not isinstance(optimizer, dict) or not isinstance(config := optimizer.get("config"), dict):
        return ""
    name = str(optimizer.get("class_name"))[:MAX_WORD]
    refused = sorted(config.keys() - TAKEN)
    if name.lower() not in OPTIMIZERS or not refused:
        return ""
    return f"its optimizer {name} was saved with {', '.join(refused)[:MAX_WORD]}, which Keras 3 does not take"


def _brings_loss(part: Mapping[str, Any]) -> bool:
    """Tell whether a layer may add a loss: it is the user's own, or it has a regularizer."""
    config = part.get("config")
    regularized = isinstance(config, dict) and any(
        name.endswith(REGULARIZER) and value is not None for name, value in config.items()
    )
    is_own = bool(part.get("registered_name")) and part.get("class_name") not in NESTED
    return regularized or is_own or part.get("class_name") in OWN_LOSS


def cut_lines(file: Path, config: Mapping[str, Any], inputs: Sequence[InputSpec], trains: bool) -> list[str]:
    """Return lines of Python that save the model behind the layers that read text; none for what has no such layers."""
    layers = [layer for layer in _layers(config) if isinstance(layer.get("config"), dict)]
    ends = []
    for spec in inputs:
        reader = spec.name if spec.dtype != TEXT else _reader(layers, spec.name)
        if not reader:
            return []
        ends.append(f"model.get_layer({json.dumps(reader)}).output")
    rest = file.with_name(f"{file.stem}_rest.keras").name
    entry = ends[0] if len(ends) == 1 else f"[{', '.join(ends)}]"
    output = "outputs[0]" if config.get("class_name") == "Sequential" else "output"
    compiled = ["rest.compile_from_config(model.get_compile_config())"] if trains else []
    return [
        'import os; os.environ["KERAS_BACKEND"] = "tensorflow"',
        f"import keras; model = keras.models.load_model({json.dumps(file.name)})",
        f"rest = keras.Model({entry}, model.{output})",
        *compiled,
        f"rest.save({json.dumps(rest)})",
    ]


def _layers(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    inner = config.get("config")
    layers = inner.get("layers") if isinstance(inner, dict) else None
    return [layer for layer in layers if isinstance(layer, dict)] if isinstance(layers, list) else []


def _reader(layers: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the layer that takes the input of that name; of a Sequential, whose layers name none, the next one."""
    names = [str(layer["config"].get("name")) for layer in layers]
    for layer, its_name in zip(layers, names, strict=True):
        if json.dumps(name) in json.dumps(layer.get("inbound_nodes", [])) and layer.get("class_name") not in NESTED:
            return its_name
    is_sequential = not any(layer.get("inbound_nodes") for layer in layers)
    place = names.index(name) + 1 if name in names and is_sequential else len(names)
    return names[place] if place < len(names) else ""
