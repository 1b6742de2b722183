from kerasbench.report.figures import listed, names


def test_a_device_is_named_where_there_are_several() -> None:
    jax, torch = ("jax", "cpu", ""), ("torch", "cpu", "jit=on")
    assert names([jax, torch]) == {jax: "JAX", torch: "torch with jit=on"}
    gpu = ("jax", "gpu", "")
    assert names([jax, gpu, ("tensorflow", "gpu:1", "")]) == {
        jax: "JAX on the CPU",
        gpu: "JAX on the GPU",
        ("tensorflow", "gpu:1", ""): "TensorFlow on GPU 1",
    }


def test_a_list_reads_as_a_sentence_has_it() -> None:
    assert listed([]) == ""
    assert listed(["JAX"]) == "JAX"
    assert listed(["JAX", "TensorFlow", "torch"]) == "JAX, TensorFlow and torch"


def test_the_label_of_an_interpreter_follows_the_backend() -> None:
    column = ("tensorflow", "cpu", "@keras-3.14 jit=on")
    assert names([column]) == {column: "TensorFlow @keras-3.14 with jit=on"}
    assert names([("torch", "cpu", "@old")]) == {("torch", "cpu", "@old"): "torch @old"}
