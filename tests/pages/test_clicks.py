"""The page in a browser, as wide as a phone: what its script does when somebody clicks and types."""

import html as entities
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kerasbench.analysis.summary import summarize
from kerasbench.pages import html
from kerasbench.results.store import load
from tests import made
from tests.repository import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(NAMES)} is installed"),
]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900", "--virtual-time-budget=2000")

# It clicks, and leaves what it saw in place of the page.
VISITOR = """
const seen = {}, form = document.querySelector(".controls"), root = document.documentElement;
const shows = (element) => element.getClientRects().length > 0;
const table = document.querySelector("table"), rows = () => [...table.tBodies[0].rows].filter(shows);
const firsts = () => rows().map((row) => row.cells[0].textContent);
const heads = () => [...table.tHead.rows[0].cells].filter(shows).map((head) => head.textContent);
const shades = () => all(".shade").filter(shows).map((shade) => shade.textContent);
const told = (name) => [...document.querySelectorAll(`[data-${name}]`)].filter(shows).map((bar) => bar.dataset[name]);
const luminance = (colour) => {
  const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255);
  const [r, g, b] = parts.map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
};
const paper = () => luminance(getComputedStyle(document.body).backgroundColor);
const contrast = (selector) => {
  const style = getComputedStyle(document.querySelector(selector));
  const text = luminance(selector.startsWith("text") ? style.fill : style.color);
  return (Math.max(text, paper()) + .05) / (Math.min(text, paper()) + .05);
};

seen.controls = shows(form);
seen.wide = root.scrollWidth > innerWidth;
const button = table.tHead.rows[0].cells[3].querySelector("button");
seen.sorted = [0, 1, 2].map(() => {
  button.click();
  return [button.parentElement.getAttribute("aria-sort"), firsts()];
});
form.elements.scenario.value = "CON";
form.elements.scenario.dispatchEvent(new Event("input", { bubbles: true }));
seen.named = [firsts(), told("scenario"), form.elements.told.value, location.hash];
form.elements.scenario.value = "cnn";
form.elements.scenario.dispatchEvent(new Event("input", { bubbles: true }));
seen.of_kind = [firsts(), told("scenario")];
form.elements.scenario.value = "";
form.querySelector("[value=jax]").click();
seen.relative = [firsts(), shades()];
form.querySelector("[value=jax]").click();
form.querySelector("[value=torch]").click();
seen.without = [heads(), told("scenario"), told("backend"), form.elements.told.value, location.hash];
form.querySelector("[value=torch]").click();
seen.all = [heads(), told("backend"), form.elements.told.value, location.hash];
location.hash = "#?workload=con&without=torch";
setTimeout(() => {
seen.sent = [firsts(), form.querySelector("[value=torch]").checked];
form.elements.details.click();
const folded = [...document.querySelectorAll("main > details")];
seen.opened = [folded.length, folded.filter((section) => section.open).length, form.elements.details.textContent];
seen.themes = [0, 1].map(() => {
  form.elements.theme.click();
  const readable = Math.min(...["h1", "figcaption", ".notes", "td", "a", "text"].map(contrast));
  return [form.elements.theme.textContent, paper() < .1 ? "dark" : "light", readable];
});
document.body.textContent = JSON.stringify(seen);
}, 100);
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two scenarios with both backends, and one of which JAX failed."""
    steps_ms = {
        ("dense", "jax"): 3.0, ("dense", "torch"): 12.0, ("conv", "jax"): 1.0, ("conv", "torch"): 5.0,
        ("lost", "torch"): 2.0,
    }  # fmt: skip
    trials = [
        made.trial(index, *names, found=made.measurement(step_ms + index / 100, overhead_ms=0))
        for index in (1, 2, 3)
        for names, step_ms in steps_ms.items()
    ]
    failed = made.trial(1, "lost", "jax", failure=made.FAILURE)
    record = made.record(*trials, failed, rounds=3)
    kinds = {"conv": "cnn1d", "dense": "dense", "lost": "dense"}
    described = [facts.description for facts in record.scenarios]
    described = [replace(description, kind=kinds[description.name]) for description in described]
    facts = [replace(old, description=new) for old, new in zip(record.scenarios, described, strict=True)]
    page = html.document([("here", summarize(replace(record, scenarios=facts)))])
    return visited(tmp_path_factory.mktemp("browser"), page, VISITOR)


def visited(folder: Path, page: str, visitor: str) -> dict[str, Any]:
    """Return what a script that visits the page leaves in its place."""
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{{{visitor}}}</script></body>"), "utf-8")
    assert BROWSER is not None
    command = [BROWSER, *FLAGS, f"--user-data-dir={folder}/me", "--dump-dom", file.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    said = re.search(r"<body>(\{.*\})\s*</body>", shown.stdout, re.DOTALL)
    assert said is not None, shown.stderr[-2000:]
    result: dict[str, Any] = json.loads(entities.unescape(said[1]))
    return result


PHONE = """
document.documentElement.style.width = "390px";  // no window of this browser is narrower than 500
const table = document.querySelector("table"), box = table.parentElement;
const seen = { rows: table.tBodies[0].rows.length, wide: box.scrollWidth - box.clientWidth };
document.body.textContent = JSON.stringify({ ...seen, screen: document.documentElement.offsetWidth });
"""


def test_a_phone_shows_all_ratios_of_twelve_workloads_without_a_swipe(tmp_path: Path) -> None:
    page = html.document([("here", summarize(load(ROOT / "results" / "2026-11-27T203953.json")))])
    assert visited(tmp_path, page, PHONE) == {"rows": 12, "wide": 0, "screen": 390}


def test_a_click_on_a_heading_sorts_and_the_third_restores(seen: dict[str, Any]) -> None:
    assert seen["sorted"] == [
        ["ascending", ["dense", "conv", "lost"]],  # 4x and 5x, of 12 and 5 ms
        ["descending", ["conv", "dense", "lost"]],  # what has no ratio stays last
        ["none", ["conv", "dense", "lost"]],
    ]


def test_rows_columns_and_bars_are_filtered_and_come_back(seen: dict[str, Any]) -> None:
    assert seen["controls"]
    assert seen["named"] == [["conv"], ["conv"], "1 of 3 workloads, 2 of 2 backends", "#?workload=CON"]
    assert seen["without"] == [
        ["workload", "batch", "JAX"],
        ["conv", "dense"],
        ["jax", "jax"],
        "3 of 3 workloads, 1 of 2 backends; ratios stay relative to the fastest of all",
        "#?without=torch",
    ]
    assert seen["all"] == [["workload", "batch", "JAX", "PyTorch"], ["jax", "torch"] * 2, "", ""]
    assert seen["sent"] == [["conv"], False]  # an address with a filter


def test_a_search_finds_the_kind_of_a_model(seen: dict[str, Any]) -> None:
    assert seen["of_kind"] == [["conv"], ["conv"]]  # a 1-D CNN, and its part of the chart


def test_ratios_to_a_backend_that_is_hidden_say_so_and_shades_say_what_they_mean(seen: dict[str, Any]) -> None:
    rows, shades = seen["relative"]
    assert rows == ["conv relative to JAX: 1.02 ms", "dense relative to JAX: 3.02 ms", "lost"]
    assert shades[:4] == ["from 1.03×", "from 1.50×", "from 3.0×", "from 8.0×"]


def test_light_and_dark_change_and_can_both_be_read(seen: dict[str, Any]) -> None:
    assert sorted(theme for _, theme, _ in seen["themes"]) == ["dark", "light"]
    for button, theme, contrast in seen["themes"]:
        assert button == ("Light colours" if theme == "dark" else "Dark colours")  # what it does
        assert contrast >= 4.5  # WCAG's, level AA


def test_details_open_and_a_phone_scrolls_tables_and_charts_and_not_the_page(seen: dict[str, Any]) -> None:
    folded, opened, button = seen["opened"]
    assert opened == folded > 3 and button == "Close all details"
    assert not seen["wide"]
