import dataclasses
import io
import os
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from kerasbench.cli.main import main
from kerasbench.errors import ResultsError, UsageError
from kerasbench.modes import explain, versus
from kerasbench.pages.files import INDEX, default_places, machines, made_from, quoted, save_report, slug, stale, write
from kerasbench.protocol.columns import DEFAULT, Options
from kerasbench.results.run import INTERRUPTED, SWEEP, RunConfig, exactly
from kerasbench.results.store import Store
from tests import made
from tests.conftest import Shell
from tests.records import CROSSING, swept

PLAIN = RunConfig()
OTHER = dataclasses.replace(made.MACHINE, chip="Chip 10 <b>")


def test_a_folder_has_pages_for_runs_and_machines_and_an_index_and_those_that_differ_are_named(
    tmp_path: Path, shell: Shell
) -> None:
    kept = made.stored(tmp_path)
    made.stored(tmp_path, made.changed(made.record(made.trial()), machine=OTHER, started="2026-01-03T00:00:00Z"))
    written = shell.out("report", str(tmp_path)).split()
    assert sorted(written) == sorted(str(page) for page in tmp_path.glob("*.md"))
    assert len(written) == 3
    assert "2.10 ms" in kept.tables.read_text()
    index = (tmp_path / "README.md").read_text()
    assert "## Chip 9, 2 logical CPUs, 8 GiB, machine without an identifier (perhaps several)\n" in index
    assert "## Chip 10 &lt;b&gt;, 2 logical CPUs" in index
    assert "[2026-01-03T000000](2026-01-03T000000.md)" in index
    shell.out("report", str(tmp_path), "--check")
    differs = f"kerasbench: {kept.tables}: differs from its data; python -m kerasbench report updates it\n"
    for change in (lambda: kept.tables.write_text("2.11 ms"), kept.tables.unlink):
        change()
        assert shell("report", str(tmp_path), "--check") == (1, "", differs)


def test_the_index_links_each_row_to_the_newest_run_that_measured_it_with_default_columns(tmp_path: Path) -> None:
    def of(day: int, name: str, options: Options = DEFAULT, config: RunConfig = PLAIN) -> None:
        trials = [
            made.trial(1, name, backend, found=made.measurement(step, 0.0), options=options)
            for backend, step in (("jax", 1.0), ("torch", 2.0 * day))
        ]
        started = f"2026-01-0{day}T00:00:00Z"
        made.stored(tmp_path, dataclasses.replace(made.record(*trials), config=config, started=started))

    of(1, "dense")
    of(2, "dense")
    of(3, "dense", Options(jit=False))
    of(4, "dense", Options(batch=8), explain.MODE.configured(PLAIN))  # an explanation's size says nothing of sizes
    of(5, "iris")
    of(6, "dense", config=versus.MODE.configured(PLAIN, versus.VersusConfig("old", ["new"], 0.03)))
    index = made_from([tmp_path])[tmp_path / INDEX]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in index.splitlines() if line[:1] == "|"]
    assert lines[[line[0] for line in lines].index("workload") + 2 :] == [
        ["dense", "undecided (JAX first)", "PyTorch 4.0×", "[2026-01-02T000000](2026-01-02T000000.md)"],
        ["iris", "undecided (JAX first)", "PyTorch 10×", "[2026-01-05T000000](2026-01-05T000000.md)"],
    ]
    assert "All runs: [2026-01-01T000000](2026-01-01T000000.md), " in index and "2026-01-06T000000.md" in index


def test_a_file_of_any_name_is_linked(tmp_path: Path) -> None:
    made.stored(tmp_path, made.record(made.trial()))
    (file,) = tmp_path.glob("*.json")
    file.rename(tmp_path / "my lap|top.json")
    assert "[my lap\\|top](my%20lap%7Ctop.md)" in made_from([tmp_path])[tmp_path / INDEX]


@pytest.mark.parametrize(
    ("command", "written_in", "holds"),
    [
        ("report {} --format html", "utf-8", "Chip 9™"),
        ("report {} --format csv", "utf-8", "Chip 9™"),
        ("compare {} {}", "ascii", "| dense on PyTorch"),
    ],
)
def test_a_stdout_that_is_not_utf_8_ends_nothing(
    tmp_path: Path, command: str, written_in: str, holds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made.record(*made.in_rounds(2.01, 2.02, 2.03), rounds=3)
    # Its name and intervals are not all ASCII.
    made.stored(tmp_path, made.changed(run, machine={"chip": "Chip 9™"}))
    written = io.BytesIO()
    stdout = io.TextIOWrapper(written, encoding="ascii", write_through=True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stdout)
        assert main(command.format(tmp_path, tmp_path).split()) == 0
    assert holds in written.getvalue().decode(written_in)


@pytest.mark.parametrize(("name", "code"), [("package.json", 0), ("rows.jsonl", 0), ("2026-01-09T000000.json", 1)])
def test_what_is_no_result_in_a_folder_is_named_and_ends_nothing(shell: Shell, name: str, code: int) -> None:
    kept, foreign = made.stored(Path("results")), Path("results", name)
    foreign.write_text('{"name": "mine"}\n')
    for words in ("--format csv", "--format json", "--format html", ""):
        ended, out, err = shell("report", "results", *words.split())
        assert ended == code
        assert err.startswith(f"kerasbench: {foreign}: not a kerasbench result file: ")
        assert err.endswith("; skipped\n") and err.count("\n") == 1
        assert out
        assert kept.tables.exists() is (words == "")
    assert not foreign.with_suffix(".md").exists()
    assert shell("report", "results", "--check")[0] == code


def test_a_result_file_that_is_named_must_be_one(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert "not a kerasbench result file" in shell.refused("report", "x.json")
    assert shell("report", ".")[0] == 2
    assert "'--format': 'pdf' is not one of 'markdown', 'csv'" in shell.refused("report", ".", "--format", "pdf")
    assert "give it no other --format" in shell.refused("report", ".", "--check", "--format", "html")
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


QUOTING = (
    "# Mine\n\nSee:\n\n<!-- tables of results/x.json: answer, starting -->\nold\n<!-- /tables -->\n\nThat was it.\n"
)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    kept = made.stored(tmp_path / "results")
    kept.data.rename(tmp_path / "results" / "x.json")
    (tmp_path / "README.md").write_text(QUOTING)
    return tmp_path / "README.md"


def test_a_quotation_is_made_anew_in_place_and_nothing_else_is_touched(page: Path) -> None:
    assert default_places(page.parent) == [page.parent / "results", page]
    pages = made_from([page])
    assert stale(pages) == [page]
    assert write(pages) == [page]
    text = page.read_text()
    assert text.startswith("# Mine\n\nSee:\n\n<!-- tables of results/x.json: answer, starting -->\n|")
    assert text.endswith("<!-- /tables -->\n\nThat was it.\n")
    assert "| start-up + build" in text and "##" not in text  # the page has headings of its own
    assert "old" not in text.split("\n")
    assert write(made_from([page])) == []


def test_a_machine_is_quoted_as_its_index_has_it_from_all_of_its_plain_runs(page: Path) -> None:
    folder = page.parent / "results"
    trials = [
        made.in_block(1, made.measurement(step_ms), backend=backend, name=name)
        for name in ("conv", "lost")
        for backend, step_ms in (("jax", 1.0), ("torch", 2.0))
    ]
    record = made.record(*trials)
    conv = dataclasses.replace(record.scenarios[0].description, kind="cnn")  # another kind than the other one
    scenarios = [dataclasses.replace(record.scenarios[0], description=conv), *record.scenarios[1:]]
    newer = made.changed(record, scenarios=scenarios, started="2026-01-09T00:00:00Z")
    made.stored(folder, newer)
    made.stored(folder, made.changed(newer, machine=OTHER, started="2026-01-10T00:00:00Z"))
    page.write_text(QUOTING.replace("x.json: answer, starting", f"{slug(made.MACHINE)}: machine, kinds"))
    pages = made_from(default_places(page.parent))
    table = [line for line in pages[page].splitlines() if line.startswith("|")]
    assert "2 runs, the last of 2026-01-09" in pages[page] and "image CNNs (1)" in table[2]
    assert set(table) <= set(pages[folder / INDEX].splitlines())
    page.write_text(QUOTING.replace("x.json", "chip-12-abcdef"))
    with pytest.raises(UsageError, match="no plain run of the machine chip-12-abcdef"):
        made_from([page])


def test_a_marker_that_names_nothing_is_an_error(page: Path) -> None:
    page.write_text(QUOTING.replace("answer,", "answers,"))
    with pytest.raises(UsageError, match=r"a marker asks for the section 'answers'; there are: .*answer, kinds, "):
        made_from([page])
    page.write_text(QUOTING.replace("x.json", "gone.json"))
    with pytest.raises(ResultsError, match=r"gone.json: cannot be read"):
        made_from([page])
    with pytest.raises(ResultsError, match=r"GONE.md: No such file or directory"):
        made_from([page.parent / "GONE.md"])
    page.write_bytes("Größe".encode("latin-1"))
    with pytest.raises(ResultsError, match="not a page in UTF-8"):
        made_from([page])


def test_machines_have_names_of_their_own(tmp_path: Path) -> None:
    assert slug(made.MACHINE).startswith("chip-9-")
    assert slug(OTHER).startswith("chip-10-b-")
    assert slug(dataclasses.replace(made.MACHINE, identifier="abc")) != slug(made.MACHINE)
    assert slug(dataclasses.replace(made.MACHINE, chip="../../x|")).startswith("x-")
    assert slug(dataclasses.replace(made.MACHINE, chip="  ")).startswith("machine-")
    kept = made.stored(tmp_path)
    assert [name for name, _ in machines([kept.data])] == ["Chip 9"]
    twin = made.changed(made.record(made.trial()), machine={"identifier": "abc"}, started="2026-01-03T00:00:00Z")
    made.stored(tmp_path, twin)
    names = [f"Chip 9 {slug(machine).rpartition('-')[2]}" for machine in (made.MACHINE, twin.machine)]
    assert [name for name, _ in machines([tmp_path])] == names


def test_a_quotation_of_published_sizes_leaves_out_what_was_measured_at_others(tmp_path: Path) -> None:
    record = made.record(made.trial(), made.trial(options=Options(batch=128), found=made.measurement(9)))
    kept = made.stored(tmp_path, record)
    page = tmp_path / "mine.md"
    page.write_text(f"<!-- tables of {kept.data.name}: answer -->\n<!-- /tables -->\n")
    assert "| dense " in quoted(page)
    assert "batch=128" not in quoted(page)


def test_a_place_that_is_named_twice_is_one_machine(tmp_path: Path, shell: Shell) -> None:
    made.stored(tmp_path)
    assert "machines" not in shell.out("report", ".", ".")


def test_pages_of_one_s_own_and_links_are_left_as_they_are_and_the_others_are_written(
    tmp_path: Path, shell: Shell
) -> None:
    kept = made.stored(tmp_path)
    index = tmp_path / "README.md"
    index.write_text("# My project\n")
    kept.tables.write_text("# My notes\n")
    with pytest.raises(ResultsError) as caught:
        write(made_from([tmp_path]))
    assert all(f"{file}: left as it is" in str(caught.value) for file in (index, kept.tables))
    assert (index.read_text(), kept.tables.read_text()) == ("# My project\n", "# My notes\n")
    index.unlink()
    kept.tables.unlink()
    kept.tables.symlink_to(tmp_path / "zz.pth")
    assert f"{kept.tables}: left as it is, because it is a link" in shell("report", str(tmp_path))[2]
    assert index.exists() and not (tmp_path / "zz.pth").exists()


def test_a_page_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    page = made.stored(tmp_path).tables
    for put in (os.mkfifo, lambda place: place.symlink_to("/dev/zero")):
        put(page)
        for use in (lambda: write(made_from([tmp_path])), lambda: quoted(page)):
            with pytest.raises(ResultsError, match=r"\.md: not a file"):
                use()
        page.unlink()


def test_a_link_from_one_page_of_the_project_to_another_is_that_page(tmp_path: Path, page: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").symlink_to("../README.md")
    assert default_places(tmp_path) == [tmp_path / "results", page]
    page.rename(tmp_path / "START.md")
    page.symlink_to("START.md")
    with pytest.raises(ResultsError, match=r"README\.md: left as it is, because it is a link"):
        write(made_from([page]))


def test_the_tables_and_the_chart_of_a_sweep_are_saved_beside_the_data(store: Store) -> None:
    drawn = save_report(made.record(made.trial()), store)
    assert "# A training step of dense takes 2.10 ms on PyTorch" in drawn.tables.read_text()
    assert (drawn.data, drawn.plot, drawn.unsaved, drawn.interrupted) == (store.data, None, "", False)
    assert save_report(made.changed(made.record(made.trial()), stopped_because=INTERRUPTED), store).interrupted
    sweep = made.changed(swept(**CROSSING), config=RunConfig(effort=exactly(3, SWEEP)))
    saved = save_report(sweep, store)
    assert saved.plot == store.data.with_suffix(".svg") and saved.plot.read_text().startswith("<svg")
    assert f"]({saved.plot.name})" in saved.tables.read_text()


def test_tables_that_cannot_be_saved_can_still_be_shown(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert save_report(made.record(made.trial()), store, "there are no data").unsaved == "there are no data"
    assert not store.tables.exists()
    monkeypatch.setattr("kerasbench.pages.files.replace", Mock(side_effect=ResultsError("no space left")))
    drawn = save_report(made.record(made.trial()), store)
    assert (drawn.unsaved, drawn.summary.record) == ("no space left", made.record(made.trial()))
