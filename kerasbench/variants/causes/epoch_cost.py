"""What an epoch costs once weighs much where epochs are short."""

from kerasbench.protocol.columns import Device
from kerasbench.protocol.measurement import Measurement
from kerasbench.variants.causes.cause import Cause

LEAST = 0.03  # of an epoch: what costs less is no cause


class EpochCost(Cause):
    name = "without_epoch_cost"
    says = "each epoch costs something once, whatever its steps"
    today = "Make fewer and longer epochs, and validate less often"

    def noticed(self, device: Device, measurement: Measurement, epoch_cost: float) -> str:
        return "Its share stands above, as the fixed cost" if epoch_cost >= LEAST else ""
