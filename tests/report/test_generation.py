"""The table of new tokens."""

import dataclasses

from kerasbench.analysis.findings import findings
from kerasbench.protocol.columns import Options
from kerasbench.protocol.measurement import Generation
from kerasbench.protocol.requests import Protocol
from kerasbench.report.generation import new_tokens
from kerasbench.report.tables import what_keras_costs
from kerasbench.results.record import Record
from tests import made
from tests.report import table
from tests.report.table import drawn

NATIVE = Options(native=True)


def wrote(columns: dict[Options, list[Generation]]) -> Record:
    """Three rounds of calls, in which each column's texts grew so."""
    trials = [
        made.in_block(
            index,
            dataclasses.replace(made.predicting(), generations=found),
            options=options,
        )
        for index in (1, 2, 3)
        for options, found in columns.items()
    ]
    record = made.record(*trials, rounds=3)
    effort = dataclasses.replace(record.config.effort, protocol=Protocol("calls"))
    return dataclasses.replace(record, config=dataclasses.replace(record.config, effort=effort))


def test_each_way_has_its_first_token_its_later_ones_their_rate_and_the_residual() -> None:
    quick = dataclasses.replace(made.growing([2.0] * 6), way="compiled_call")
    found = findings(wrote({Options(): [made.growing([4.0] * 6, prompt_ms=50), quick]}))
    text = table.section(drawn(new_tokens(found)), "New tokens")
    _, *lines = table.rows(text)
    assert [line[1:] for line in lines] == [
        ["model(x), TTFT (ms)", "54.0 ±0.0 %"],
        ["model(x), TPOT (ms)", "4.00 ±0.0 %"],
        ["model(x), tokens/s", "1,000 ±0.0 %"],
        ["model(x), residual (%)", lines[3][2]],
        ["model(x) compiled, TTFT (ms)", "2.00 ±0.0 %"],
        ["model(x) compiled, TPOT (ms)", "2.00 ±0.0 %"],
        ["model(x) compiled, tokens/s", "2,000 ±0.0 %"],
        ["model(x) compiled, residual (%)", lines[7][2]],
    ]
    assert "⚠" not in lines[3][2] + lines[7][2]
    assert "dense: all wrote the same 32 new tokens of 2 texts." in text
    assert "tokens/s = batch / TPOT" in text and "without a cache" in text
    assert new_tokens(findings(made.record(made.trial()))) is None


def test_what_is_no_line_is_marked_and_who_wrote_something_else_is_named() -> None:
    bent = dataclasses.replace(made.growing([1.0]), times_ns=[[1, 64, 256, 1024]])
    other = dataclasses.replace(made.growing([1.0]), tokens=[[7] * 32, [7] * 31 + [8]], way="own")
    text = drawn(new_tokens(findings(wrote({Options(): [bent], Options(jit=True): [other]}))))
    residual = next(cells for cells in table.rows(text) if cells[1] == "model(x), residual (%)")
    assert "⚠" in residual[2]
    assert residual[3] == "–"
    said = "dense: torch cpu jit=on by generate differs from torch cpu by model(x), first at token 32 of text 2."
    assert said in text
    assert "the scenario's own function" in text


def test_keras_costs_something_for_each_token() -> None:
    record = wrote({Options(): [made.growing([6.0] * 6)], NATIVE: [made.growing([2.0] * 6)]})
    _, *lines = table.rows(drawn(what_keras_costs(findings(record))))
    ways = [line[2:] for line in lines if "T" in line[2]]
    assert [line[:3] + line[4:] for line in ways] == [
        ["model(x), TTFT", "6.00 ms ±0.0 %", "2.00 ms ±0.0 %", "slower"],
        ["model(x), TPOT", "6.00 ms ±0.0 %", "2.00 ms ±0.0 %", "slower"],
    ]
    assert {line[3].split(" ±")[0] for line in ways} == {"3.00"}
