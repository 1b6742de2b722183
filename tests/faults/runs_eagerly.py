import base


def build(workload):
    model = base.build(workload)
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return model


spoiled = base.scenario(build=build)
