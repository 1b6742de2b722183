from kerasbench.protocol.columns import CaseKey, Column, Options, Size
from kerasbench.report.figures import case_name, listed, names


def test_a_device_is_named_where_there_are_several() -> None:
    jax, torch = Column("jax", "cpu"), Column("torch", "cpu", Options(jit=True))
    assert names([jax, torch]) == {jax: "JAX", torch: "torch with jit=on"}
    gpu = Column("jax", "gpu")
    assert names([jax, gpu, Column("tensorflow", "gpu:1")]) == {
        jax: "JAX on the CPU",
        gpu: "JAX on the GPU",
        Column("tensorflow", "gpu:1"): "TensorFlow on GPU 1",
    }


def test_the_name_of_a_case_holds_what_differs() -> None:
    assert case_name(CaseKey("dense", "default", Column("torch", "cpu"))) == "dense torch cpu"
    threads = CaseKey("mnist", "tiny", Column("jax", "gpu", Options(threads=1)), Size(8))
    assert case_name(threads) == "mnist/tiny jax gpu threads=1 batch=8"


def test_a_list_reads_as_a_sentence_has_it() -> None:
    assert listed([]) == ""
    assert listed(["JAX"]) == "JAX"
    assert listed(["JAX", "TensorFlow", "torch"]) == "JAX, TensorFlow and torch"


def test_the_label_of_an_interpreter_follows_the_backend() -> None:
    column = Column("tensorflow", "cpu", Options(environment="keras-3.14", jit=True))
    assert names([column]) == {column: "TensorFlow @keras-3.14 with jit=on"}
    old = Column("torch", "cpu", Options(environment="old"))
    assert names([old]) == {old: "torch @old"}
