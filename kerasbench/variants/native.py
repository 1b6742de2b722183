"""``--native``: the scenario's native baseline, in the backend's own framework, without Keras."""

from kerasbench.runners import Predictor
from kerasbench.variants.variant import CaseFacts, Refusal, Variant, VariantTable


class Native(Variant[bool]):
    name = "native"
    help = "Also measure the native baseline, in plain TensorFlow, PyTorch or JAX: what does Keras cost?"
    added, replaces = True, True
    files = ("native/__init__.py", "native/{backend}.py")
    # Its loop and its layout are its own, and it is not exported.
    drops = ("layout", "steps_per_execution", "unrolled_steps", "feed", "workers", "runtime")
    beside = VariantTable(
        "What does Keras cost?",
        ("steady_step_ms", "epoch_s"),
        (),
        "without Keras",
        "with Keras takes",
        "The same model with the same weights, in Keras and in the plain framework. Bold: clearly different, by more "
        "than {effect}. The native baseline differs in more than Keras: its data are on the device.",
        inverse=True,
    )

    def describe(self, value: bool, backend: str) -> str:
        return "without Keras"

    def runner(self, value: bool) -> type[Predictor]:
        from kerasbench.runners.baseline import BaselineRunner

        return BaselineRunner

    def is_there(self, facts: CaseFacts) -> bool:
        return not facts.workload.keras_only and facts.name in facts.baselines

    def refusal(self, value: bool, facts: CaseFacts) -> Refusal:
        if facts.workload.keras_only:
            cause = f"{facts.label} has {facts.workload.keras_only}, which a native baseline cannot have"
            return cause, "leave out --native for this scenario"
        scenario = facts.label.partition("/")[0]
        if facts.name not in facts.baselines:
            remedy = f"write native/{scenario}_{facts.name}.py as kerasbench docs your-model shows"
            return f"{scenario} has no native baseline for {facts.name}", remedy
        compiles = "jit" in facts.options and not facts.plan.agenda.only_predicts
        if compiles or facts.options.get("dtype", "float32") != "float32":
            cause = "a native baseline is compiled as its framework does by default, and computes in float32"
            return cause, "leave out --jit and --dtype with --native"
        return None
