"""What a scenario file says of itself: a message's part that is remembered, and listed without all the others."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RegimeDescription:
    """One regime. ``keras_only`` is what it needs that no twin without Keras has, empty where there is nothing.

    ``predicts_only``: its model is not trained, because it was saved without what training takes.
    ``parameters`` is the count of its own model, and ``operations`` are a training step's, None where nobody said it.
    ``large``: it is for a GPU, and measured on a CPU only if it is named. ``predict_batch`` is what a prediction takes
    at once.
    """

    name: str
    train: int
    batch: int
    full_batch: bool
    steps: int
    epochs: int
    validation: int
    test: int
    data: str
    has_real_data: bool
    keras_only: str = ""
    predicts_only: bool = False
    parameters: int | None = None
    operations: int | None = None
    large: bool = False
    predict_batch: int | None = None

    @property
    def predicts_batches(self) -> bool:
        """Whether predictions of a batch are measured besides those of single samples."""
        return (self.predict_batch or self.batch) > 1


@dataclass(frozen=True)
class Description:
    """What a scenario file says of itself."""

    name: str
    title: str
    text: str
    source: str
    parameters: int | None
    learnable: bool
    regimes: list[RegimeDescription]
    scalable: bool = False
