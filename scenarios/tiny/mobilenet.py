"""MobileNet at a quarter of its width: is there a person in the image?

The person detector of MLPerf Tiny, on images of 96 x 96, in batches of 50 and with Adam. It is the MobileNet of
keras.applications, without its dropout, which MLPerf's has not either. There is no validation pass here: the images
of MLPerf's would fill a gigabyte.
"""

import keras

from kerasbench import Scenario, Workload, datasets


def build(workload):
    model = keras.applications.MobileNet((96, 96, 3), alpha=0.25, dropout=0.0, weights=None, classes=2)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


scenario = Scenario(
    kind="cnn",
    build=build,
    data=datasets.images((96, 96, 3), classes=2),
    parameters=219_058,
    operations=14_979_328,
    workloads=(Workload(train=98_650, test=500, batch=50, epochs=50),),
    source="MLPerf Tiny, person detection (github.com/mlcommons/tiny)",
)
