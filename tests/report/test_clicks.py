"""The page in a browser: what its script does when somebody clicks, types, or looks at it on a phone."""

import html as entities
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.findings import Findings, findings
from kerasbench.protocol.columns import Device
from kerasbench.report import html, plot
from tests import made

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(NAMES)} is installed"),
]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr")

GPU = Device("cuda", 0, "H200")

# It clicks, and leaves what it saw in place of the page.
VISITOR = """
const seen = {}, form = document.querySelector(".controls"), root = document.documentElement;
const shows = (one) => one.offsetParent !== null;
const table = document.querySelector("table"), rows = () => [...table.tBodies[0].rows].filter(shows);
const firsts = () => rows().map((row) => row.cases[0].textContent);
const heads = () => [...table.tHead.rows[0].cells].filter(shows).map((head) => head.textContent);
const told = (selector, name) => [...document.querySelectorAll(selector)].filter(shows).map((one) => one.dataset[name]);
const answers = () => [...document.querySelectorAll("nav + h2 + .lines li")].filter(shows)
  .map((line) => line.textContent.split(":")[0]);
const below = (head) => [...document.querySelectorAll("table")].flatMap((one) => {
  const column = [...one.tHead.rows[0].cells].findIndex((cell) => cell.textContent === head);
  return column < 0 ? [] : [...one.tBodies[0].rows].filter((row) => !row.hidden)
    .map((row) => row.cases[column].textContent);
});
const type = (text) => {
  form.elements.scenario.value = text;
  form.elements.scenario.dispatchEvent(new Event("input", { bubbles: true }));
};
const luminance = (colour) => {
  const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255);
  const [r, g, b] = parts.map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const contrast = (selector) => {
  const text = luminance(getComputedStyle(document.querySelector(selector)).color);
  const paper = luminance(getComputedStyle(document.body).backgroundColor);
  return (Math.max(text, paper) + .05) / (Math.min(text, paper) + .05);
};
const readable = () => Math.min(...["h1", "figcaption", ".notes", "td", "a"].map(contrast));

seen.controls = shows(form);
seen.width = innerWidth;
seen.wide = root.scrollWidth > innerWidth;
const button = table.tHead.rows[0].cells[1].querySelector("button");
button.focus();
seen.focused = document.activeElement === button;
seen.sorted = [0, 1, 2].map(() => {
  button.click();
  return [button.parentElement.getAttribute("aria-sort"), firsts()];
});
type("CON");
seen.named = [firsts(), told(".group", "scenario"), answers(), form.elements.told.value];
type("");
const torch = form.querySelector("[value=torch]");
torch.click();
seen.rowsWithout = [...new Set([...below("column"), ...below("CPU")])];
seen.without = [heads(), told("li.bar", "backend"), form.elements.told.value];
torch.click();
seen.rows = [...new Set(below("CPU"))];
seen.all = [heads(), told("li.bar", "backend"), form.elements.told.value];
seen.folded = document.querySelectorAll("main > details").length;
form.elements.details.click();
seen.opened = document.querySelectorAll("main > details[open]").length;
seen.themes = [0, 1].map(() => {
  form.elements.theme.click();
  const paper = luminance(getComputedStyle(document.body).backgroundColor);
  return [form.elements.theme.getAttribute("aria-pressed"), paper < .1 ? "dark" : "light", readable()];
});
document.body.textContent = JSON.stringify(seen);
"""


def run() -> Findings:
    """Two scenarios with both backends, and one of which JAX failed."""
    trials = [
        made.trial(index, name, backend, found=made.measurement(step_ms + index / 100, overhead_ms=0))
        for index in (1, 2, 3)
        for name, backend, step_ms in (
            ("dense", "jax", 3.0),
            ("dense", "torch", 12.0),
            ("conv", "jax", 1.0),
            ("conv", "torch", 4.0),
            ("lost", "torch", 2.0),
        )
    ]
    on_gpu = [
        made.trial(index, "conv", backend, found=made.measurement(0.5 + index / 100, overhead_ms=0), device=GPU)
        for index in (1, 2, 3)
        for backend in ("jax", "torch")
    ]
    failed = made.trial(1, "lost", "jax", failure=made.FAILURE)
    return findings(made.record(*trials, *on_gpu, failed, rounds=3))


def visit(folder: Path, width: int) -> dict[str, Any]:
    page = html.document([("here", run())]).replace("</body>", f"<script>{{{VISITOR}}}</script></body>")
    file = folder / "page.html"
    file.write_text(page, "utf-8")
    flags = [*FLAGS, f"--window-size={width},900", f"--user-data-dir={folder}/me"]
    assert BROWSER is not None
    command = [BROWSER, *flags, "--dump-dom", file.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said = re.search(r"<body>(\{.*\})\s*</body>", shown.stdout, re.DOTALL)
    assert said is not None, shown.stderr[-2000:]
    seen: dict[str, Any] = json.loads(entities.unescape(said[1]))
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plot, "is_available", lambda: False)
        return visit(tmp_path_factory.mktemp("desktop"), 1280)


def test_a_click_on_a_heading_sorts_and_the_third_restores(seen: dict[str, Any]) -> None:
    assert seen["focused"]
    assert seen["sorted"] == [
        ["ascending", ["conv", "dense", "lost"]],
        ["descending", ["dense", "conv", "lost"]],  # what has no number stays last
        ["none", ["dense", "conv", "lost"]],
    ]


def test_typing_shows_the_scenarios_of_that_name(seen: dict[str, Any]) -> None:
    assert seen["controls"]
    assert seen["named"] == [["conv"], ["conv"], ["conv"], "1 of 3 scenarios, 2 of 2 backends"]


def test_a_backend_is_hidden_everywhere_and_comes_back(seen: dict[str, Any]) -> None:
    on_jax, on_torch = ["jax cpu", "jax gpu"], ["torch cpu", "torch gpu"]
    assert seen["without"] == [["scenario", *on_jax], ["jax"] * 3, "3 of 3 scenarios, 1 of 2 backends"]
    assert {name.split()[0] for name in seen["rowsWithout"]} == {"jax"}
    assert seen["all"] == [["scenario", *on_jax, *on_torch], ["jax", "torch", "jax", "jax", "torch", "torch"], ""]
    assert seen["rows"] == ["jax cpu", "torch cpu"]


def test_details_are_folded_until_all_are_opened(seen: dict[str, Any]) -> None:
    assert seen["opened"] == seen["folded"] > 3


def test_light_and_dark_change_and_can_both_be_read(seen: dict[str, Any]) -> None:
    assert sorted(theme for _, theme, _ in seen["themes"]) == ["dark", "light"]
    for pressed, theme, contrast in seen["themes"]:
        assert pressed == ("true" if theme == "dark" else "false")
        assert contrast >= 4.5  # WCAG's, level AA


def test_a_phone_scrolls_tables_and_not_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "is_available", lambda: False)
    seen = visit(tmp_path, 390)
    assert seen["width"] <= 500  # some versions have no narrower window
    assert not seen["wide"]
