"""What a scenario file says of itself, remembered. Standard library alone: ``list`` reads nothing else."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class WorkloadDescription:
    name: str
    train: int
    batch: int
    steps: int
    epochs: int
    validation: int
    test: int
    data: str
    has_real_data: bool
    keras_only: str = ""  # what it needs that no native baseline has
    predicts_only: bool = False  # its model is not trained, because it was saved without what training takes
    parameters: int | None = None  # of its own model
    operations: int | None = None  # of a training step
    large: bool = False  # for a GPU, and measured on a CPU only if it is named
    predict_batch: int | None = None  # what a prediction takes at once
    new_tokens: int = 0  # of each sequence, where its model generates some
    own_generate: bool = False  # by a function of the scenario's own
    streams: bool = False  # its model is given a stream of batches, whose epochs are not measured by themselves
    on_disk: bool = False  # its samples lie in files, from which feeds read them
    loops: bool = False  # its steps are calls in a script's own loop, and nothing else of it is measured

    @property
    def predicts_batches(self) -> bool:
        """Whether predictions of a batch are measured besides those of single samples."""
        return self.predicted > 1

    @property
    def predicted(self) -> int:
        """Samples that a prediction takes at once."""
        return self.predict_batch or self.batch

    def of_batch(self, samples: int) -> "WorkloadDescription":
        operations = self.operations and self.operations * samples // self.batch
        return replace(self, batch=samples, predict_batch=samples, operations=operations)


@dataclass(frozen=True)
class Description:
    name: str
    title: str
    text: str
    source: str
    parameters: int | None
    learnable: bool
    workloads: list[WorkloadDescription]
    scalable: bool = False
    kind: str = "other"  # of model, as ``Scenario`` has it
    script: bool = False  # its text says which call of a script's is measured
