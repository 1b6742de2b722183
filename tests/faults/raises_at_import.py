raise RuntimeError("not even a scenario")
