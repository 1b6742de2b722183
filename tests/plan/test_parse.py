from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kerasbench.errors import UsageError
from kerasbench.plan import parse
from kerasbench.protocol.requests import Input

share = partial(parse.share, option="--threshold")
duration_s = partial(parse.duration_s, option="--budget")


@pytest.mark.parametrize(
    ("understand", "given", "meant"),
    [
        (share, "5%", 0.05),
        (share, "2.5 %", 0.025),
        (share, "7", 0.07),
        (share, 0.1, 0.1),
        (duration_s, "90", 90),
        (duration_s, "1.5h", 5400),
        (duration_s, " 2m ", 120),
        (parse.size_bytes, "4G", 4 << 30),
        (parse.size_bytes, "500m", 500 << 20),
        (parse.size_bytes, "1.5GiB", 3 << 29),
        (parse.inputs, ["96x96x3"], [Input("", [96, 96, 3])]),
        (parse.inputs, ["tokens=1x128:int32"], [Input("tokens", [1, 128], "int32")]),
        (parse.inputs, [" a/b:0=7 "], [Input("a/b:0", [7])]),
        (parse.widths, ["2", "0.5", "1", "2.0"], [0.5, 1.0, 2.0]),
        (parse.batches, ["1..8"], [1, 2, 4, 8]),
        (parse.batches, ["3..100"], [3, 6, 12, 24, 48, 96]),
        (parse.batches, ["48", "1..4", "4"], [1, 2, 4, 48]),
        (parse.backend_names, ["torch", "jax", "torch"], ["torch", "jax"]),
        (parse.device_labels, ["gpu:0", "gpu", "gpu:00", "gpu:01", "cpu:0"], ["gpu", "gpu:1", "cpu"]),
    ],
)
def test_words_are_understood(understand: Callable[[Any], object], given: Any, meant: object) -> None:
    assert understand(given) == meant


@pytest.mark.parametrize(
    ("understand", "given", "complaint"),
    [
        (share, ["100%", "many", "-1%", "", 1.0, -0.1], "--threshold takes a share below 100%"),
        (duration_s, ["", "m", "10 minutes", "-5m", "0", "1e9", "soon"], "--budget takes a time such as 90s, 10m or"),
        (duration_s, [0, -1.0, float("inf"), float("nan")], "--budget takes a number of seconds above 0"),
        (
            parse.size_bytes,
            ["", "4", "g", "-1g", "0g", "4t", "4g4", "1e3m", "٤g"],
            "--memory-limit takes a size of memory",
        ),
        (parse.size_bytes, [0, -1, 0.5, 4.5, float("inf"), float("nan")], "--memory-limit takes a whole number"),
        (parse.inputs, [["tokens"], ["tokens="], ["96x"], ["96x0"], ["x=3:string"]], "--input takes NAME=SIZE such as"),
        (parse.inputs, [["=3"], ["3x-1"], [""]], "--input takes NAME=SIZE such as tokens=128:int32, or 96x96x3, not"),
        (parse.inputs, [["a=1", "a=2"], ["1", "2"]], "give each input once"),
        (parse.widths, [["0"], ["-1"], ["nan"], ["inf"], ["wide"], ["1..4"]], "--width takes factors"),
        (parse.batches, [["8..1"]], "put the smaller number first"),
        (parse.batches, [["0..8"], ["1..2097152"]], "from 1 to 1,048,576"),
        (parse.batches, [["0"], ["2097152"]], "whole numbers from 1"),
        (parse.batches, [["-1"], ["1.5"], ["1...8"], ["²"], ["all"]], "doubled from 1 on"),
    ],
)
def test_what_means_nothing_is_refused(understand: Callable[[Any], object], given: list[Any], complaint: str) -> None:
    for word in given:
        with pytest.raises(UsageError, match=complaint):
            understand(word)
