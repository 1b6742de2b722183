"""``--layout``: where images have their channels, in the data and in all layers."""

from typing import TYPE_CHECKING, Any, ClassVar

from kerasbench.protocol.columns import FIRST, LAST
from kerasbench.protocol.measurement import Resolved, Usage
from kerasbench.variants.variant import SCRIPT, CaseFacts, Refusal, ScriptFacts, Variant, Written

if TYPE_CHECKING:
    from kerasbench.runners.feed import Feed


CONVOLVES = ("cnn", "cnn1d")  # kinds of models
ONE_LAYOUT = "NHWC"  # what TensorFlow calls channels_last, where it says that it supports this alone


class Layout(Variant[str]):
    name = "layout"
    metavar = f"{LAST}|{FIRST}"
    help = "Where images have their channels: channels_last (default, as models are written) or channels_first."
    words: ClassVar = {LAST: None, FIRST: FIRST}
    tried = True
    changes = (
        "Channels first takes three more edits: x = np.ascontiguousarray(np.moveaxis(x, -1, 1)), the same order in "
        "Input(...), and axis=1 in normalisation and Concatenate. The results change by rounding."
    )

    def describe(self, value: str, backend: str) -> str:
        return "channels first"

    def candidates(self, facts: CaseFacts) -> list[str]:
        return [FIRST] if facts.backend.COPIES_IMAGES and facts.kind in CONVOLVES else []

    def written(self, value: str, script: ScriptFacts) -> Written:
        return SCRIPT, f'keras.config.set_image_data_format("{value}")'

    def remade(self, value: str, model: Any, feed: "Feed") -> "tuple[Any, Feed]":
        from kerasbench.runners.channels import channels_first

        return channels_first(model, feed)

    def explained(self, value: str, error: Exception) -> Refusal:
        if ONE_LAYOUT not in f"{error} {error.__cause__}":
            return None
        cause = "TensorFlow has no convolutions for channels that come first on this CPU: oneDNN, which has, is off"
        return cause, f"leave out --layout {FIRST} for tensorflow"

    def ran_as(self, value: str, resolved: Resolved, usage: Usage) -> str:
        return "" if resolved.image_data_format == value else resolved.image_data_format
