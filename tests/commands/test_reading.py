"""Commands that read what there is, from their words to what a user reads and the exit code."""

import json

import pytest

from kerasbench import cli


def test_list_shows_every_builtin_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    table = capsys.readouterr().out
    assert cli.main(["list", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"cifar10_cnn", "iris_mlp", "mnist_dense"} <= {one["name"] for one in data}
    assert all(one["name"] in table for one in data)
