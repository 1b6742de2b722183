"""A recurrent layer uses cuDNN only as its defaults are: each other choice has it loop over time."""

from kerasbench import facts
from kerasbench.facts import recurrent
from kerasbench.protocol.columns import CUDA, Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.variants.causes.cause import Cause


class SlowRecurrence(Cause):
    name = "without_slow_recurrence"
    backends = ("jax", "tensorflow", "torch")
    says = "recurrent layers do not use cuDNN"
    upstream = "Keras issues 22561 and 23154 are about it"
    today = "Leave out recurrent_dropout and unroll, keep the default activations, and pad sequences on the right alone"

    def noticed(self, device: Device, measurement: Measurement, epoch_cost: float) -> str:
        if device.platform != CUDA:
            return ""
        slow = recurrent.slow(facts.of(measurement).get(recurrent.Recurrent.name, facts.NOTHING))
        return f"They ran as {', '.join(slow)}" if slow else ""
