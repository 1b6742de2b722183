"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// A click sorts upwards, the next downwards, the third restores the order of the page. Cells without a number are last.
function sortable(table) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const compare = (a, b) => {
    if (a.dataset.value === undefined || b.dataset.value === undefined)
      return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
    return a.dataset.value - b.dataset.value;
  };
  const sort = (head, index) => {
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    const order = next[head.getAttribute("aria-sort")];
    for (const other of heads) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const rows = [...original];
    const isLast = (row) => head.className === "number" && row.cells[index].dataset.value === undefined;
    if (order !== "none")
      rows.sort((a, b) => isLast(a) - isLast(b)
        || (order === "ascending" ? 1 : -1) * compare(a.cells[index], b.cells[index]));
    body.append(...rows);
  };
  heads.forEach((head, index) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, index));
    head.append(button);
    head.setAttribute("aria-sort", "none");
  });
}

// Charts, rows of tables whose first column is the scenario, sentences ("dense: ...") and parts ("dense, jax
// cpu") are filtered by the scenario. Bars, lines, columns, rows and parts of a column are filtered by its backend, which is
// the first word of the column's name ("jax cpu", on a page of several machines "Chip 9: jax cpu"). A row belongs
// to the column named in its cell under "column", "candidate" or "against", or under "CPU" where it is compared with a GPU.
function filter(form) {
  const wanted = form.elements.scenario.value.trim().toLowerCase();
  const boxes = all("[name=backend]", form);
  const unwanted = new Set(boxes.filter((box) => !box.checked).map((box) => box.value.toLowerCase()));
  const isUnwanted = (text) => unwanted.has(text.split(": ").pop().trim().split(/\s/)[0].toLowerCase());
  const isWanted = (name) => name.toLowerCase().includes(wanted);
  const charts = all("[data-scenario]"), known = charts.map((chart) => chart.dataset.scenario);
  for (const chart of charts) chart.toggleAttribute("hidden", !isWanted(chart.dataset.scenario));
  for (const one of all("[data-backend]")) one.toggleAttribute("hidden", unwanted.has(one.dataset.backend.toLowerCase()));
  for (const table of all("table")) {
    const heads = [...table.tHead.rows[0].cells], names = heads.map((head) => head.textContent.trim());
    const away = names.map((name, index) => index > 0 && isUnwanted(name));
    const column = names.findIndex((name) => ["column", "CPU", "candidate", "against"].includes(name));
    heads.forEach((head, index) => { head.hidden = away[index]; });
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, index) => { cell.hidden = away[index]; });
      const scenario = names[0] === "scenario" ? row.cells[0].textContent : undefined;
      if (scenario && scenario !== "all") known.push(scenario);
      const isOther = scenario && scenario !== "all" && !isWanted(scenario);
      row.hidden = isOther || (column >= 0 && row.cells[column].textContent.split(", ").every(isUnwanted));
    }
  }
  const scenarios = [...new Set(known)];
  const named = (text, sign) => scenarios.find((scenario) => text.startsWith(scenario + sign));
  for (const line of all(".lines > li")) line.hidden = !isWanted(named(line.textContent, ":") ?? wanted);
  for (const part of all("main > details")) {
    const title = part.querySelector("summary").textContent, scenario = named(title, ", ");
    part.hidden = scenario !== undefined && (!isWanted(scenario) || isUnwanted(title.slice(scenario.length + 2)));
  }
  const models = (names) => new Set(names.map((name) => name.replace(/ (?:batch|width)=\S+/g, ""))).size;
  form.elements.namedItem("told").value =
    wanted || unwanted.size
      ? `${models(scenarios.filter(isWanted))} of ${models(scenarios)} scenarios, ${boxes.length - unwanted.size} of ${boxes.length} backends` : "";
}

function remembered(name, value) {
  try {  // a page that was opened as a file may have no storage
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch { return null; }
}

function themed(button) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const show = () => button.setAttribute("aria-pressed", isDark());
  const known = remembered("theme");
  if (known === "light" || known === "dark") root.dataset.theme = known;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remembered("theme", root.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  show();
}

function opening(button) {
  const folded = () => all("main > details");
  button.hidden = !folded().length;
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    for (const one of folded()) one.open = open;
    button.setAttribute("aria-pressed", open);
  });
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = folded().filter((one) => !one.open);
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
  const unfold = () => {
    const place = document.getElementById(location.hash.slice(1))?.closest("details");
    if (place) place.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
}

all("table").forEach(sortable);
const form = document.querySelector(".controls");
form.hidden = false;
form.addEventListener("input", () => filter(form));
form.addEventListener("submit", (event) => event.preventDefault());
themed(form.elements.theme);
opening(form.elements.details);
