"""What is measured in slices (``Stage``), and what a kind of trial may measure (``Agenda``): others use the names."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

TRAIN, EPOCH, PARTS = "train", "epoch", "parts"
BUILDS = BUILD, BUILD_CLEARED, BUILD_FIT = "build", "build_cleared", "build_fit"
PREDICTIONS = ONE, BATCH, ALL = "predict_one", "predict_batch", "predict_all"
PREDICT_CALLS = ONE_CALL, BATCH_CALL = "predict_call_one", "predict_call_batch"
# Before all stages, in a row's first block: each turn is one more step, until the parent answers with the row's sizes.
PILOT = "pilot"
FEED = "feed"  # what feeds `fit`, by itself
# The samples of PARTS, a slice of each in every turn: steps that are fed from arrays; with a batch that lies ready on
# the device; and without fit: the compiled step alone (torch: the eager one).
PARTS_OF_STEP = ("parts_arrays", "parts_ready", "parts_bare")

# Ways to predict: ``predict_on_batch``; the model called on a tensor that lies on the device, eager and compiled; and
# ``predict`` for one batch. Texts grow by a call of the whole text for each new token, or by the scenario's function.
ON_BATCH, OWN = "predict_on_batch", "own"
WAYS = CALL, COMPILED_CALL, PREDICT_CALL = "call", "compiled_call", "predict_call"
GROWS = (CALL, COMPILED_CALL, OWN)


@dataclass(frozen=True)
class Stage:
    name: str
    phase: str  # of the trial
    counts: str  # what a slice counts
    unit: str  # the key of runs.sizes.Units that says how long one of these takes
    left_out: str = "calls"  # what a warning calls it
    lead: int | None = None  # so many of them come before the slices; None: as many calls as a row warms up with
    room: float = 1 / 6  # of the time that a column may take (Protocol.column_max_ns); with less it is left out
    long: bool = False  # its units cannot be made shorter, so that fewer cycles do
    way: str = ""  # to predict, or to generate
    batched: bool = False  # it predicts a batch, and is missing where that is a single sample
    sum_of: int = 1  # slices that each of its slices is the sum of: how precise they are cannot be seen from it
    clears: bool = False  # Keras' session before each model that is built
    fits: bool = False  # each model that is built, for one epoch


_STAGES = (  # in the order in which a trial has them
    Stage(TRAIN, "train", "step", "train", lead=0),
    Stage(EPOCH, "epoch", "short epoch", "epoch", "the fixed cost of an epoch", lead=4, room=3 / 8, long=True),
    Stage(ONE, "predict", "single prediction", "single", "single predictions", way=ON_BATCH),
    Stage(BATCH, "predict", "prediction of a batch", "forward", "predictions of a batch", way=ON_BATCH, batched=True),
    Stage(ALL, "predict", "pass of predict", "whole", "passes of predict", lead=3, long=True),
    Stage(FEED, "feed alone", "batch of a feed alone", "parts", "a feed by itself", lead=0),
    Stage(PARTS, "parts", "step in three ways", "parts", "what a step is made of", lead=0, room=1.0, sum_of=3),
    Stage("call_one", "calls", "call one", "single", way=CALL),
    Stage("call_batch", "calls", "call batch", "forward", way=CALL, batched=True),
    Stage("compiled_call_one", "calls", "compiled call one", "single", way=COMPILED_CALL),
    Stage("compiled_call_batch", "calls", "compiled call batch", "forward", way=COMPILED_CALL, batched=True),
    Stage(ONE_CALL, "calls", "predict call one", "single", way=PREDICT_CALL),
    Stage(BATCH_CALL, "calls", "predict call batch", "forward", way=PREDICT_CALL, batched=True),
    Stage("generate_call", "generate", "new token", "text", "new tokens", lead=2, way=CALL),
    Stage("generate_compiled_call", "generate", "new token", "text", "new tokens", lead=2, way=COMPILED_CALL),
    Stage("generate_own", "generate", "new token", "text", "new tokens", lead=2, way=OWN),
    # The model is built again and again.
    Stage(BUILD, "builds", "build", "step"),
    Stage(BUILD_CLEARED, "builds", "build", "step", clears=True),
    Stage(BUILD_FIT, "builds", "build", "step", clears=True, fits=True),
)
STAGES: Mapping[str, Stage] = {stage.name: stage for stage in _STAGES}
STAND = (*BUILDS, TRAIN, BATCH, ONE, BATCH_CALL, ONE_CALL)  # the first of these that a trial has stands for it
CALLS = tuple(name for name, stage in STAGES.items() if stage.phase == "calls")
GENERATIONS = tuple(name for name, stage in STAGES.items() if stage.phase == "generate")


@dataclass(frozen=True)
class Agenda:
    name: str
    shares: Mapping[str, float]  # of a column's time, by stage: all that a trial of it may measure, in this order
    trains: bool = True
    predicts: bool = True
    usual: bool = False  # other runs are measured beside it: it is judged by parity, and leaves out what is known
    in_full: bool = False  # it runs all published epochs first, each case by itself
    sized: bool = False  # it measures steps, or predictions, alone at the size that the options name
    timeout_s: float = 300.0

    @property
    def only_predicts(self) -> bool:
        return self.predicts and not self.trains

    def of(self, trains: bool) -> "Agenda":
        """Return what is left of it for a model that is not trained."""
        return self if trains or not self.trains else UNTRAINED


TRAINED = {TRAIN: 0.5, EPOCH: 0.2, ONE: 0.1, BATCH: 0.1, ALL: 0.1}
CALLED = dict.fromkeys((ONE, BATCH, ALL, *CALLS, *GENERATIONS), 1.0)
UNTRAINED = Agenda("predictions", {ONE: 0.3, BATCH: 0.4, ALL: 0.3}, trains=False)
_AGENDAS = (
    Agenda("steady", TRAINED, usual=True),  # steps, and what an epoch costs beyond them
    Agenda("published", TRAINED, in_full=True, timeout_s=7200.0),
    Agenda("sweep", {TRAIN: 1.0}, predicts=False, sized=True),
    Agenda("calls", CALLED, trains=False),  # predicts in every way
    UNTRAINED,
    Agenda("predict_calls", dict.fromkeys(PREDICT_CALLS, 1.0), trains=False),  # `predict` alone, over and over again
    Agenda("sweep_predictions", {ONE: 1.0, BATCH: 1.0}, trains=False, sized=True),
    Agenda("builds", dict.fromkeys(BUILDS, 1.0), trains=False, predicts=False),  # makes the model again and again
)
AGENDAS: Mapping[str, Agenda] = {agenda.name: agenda for agenda in _AGENDAS}


def stage_of(way: str, batched: bool) -> str:
    """Return the stage in which a way to predict is measured."""
    return next(name for name, stage in STAGES.items() if stage.way == way and stage.batched == batched)


def text_stage(way: str) -> str:
    """Return the stage in which a way to write texts is measured."""
    return next(name for name in GENERATIONS if STAGES[name].way == way)


def standing(stages: Collection[str]) -> str | None:
    """Return the one that stands for a trial: a long block goes on in it. None: none of these does."""
    return next((stage for stage in STAND if stage in stages), None)
