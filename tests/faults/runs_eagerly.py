import base


def build(regime):
    model = base.build(regime)
    model.compile(optimizer="sgd", loss="mse", run_eagerly=True)
    return model


spoiled = base.scenario(build=build)
