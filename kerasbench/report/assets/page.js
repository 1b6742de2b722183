"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

const words = (cell) => cell.dataset.words ?? cell.textContent;  // as the page was written, without what is added here
const bare = (name) => name.replace(/ (?:batch|width)=\S+| \u2020/g, "");

// A click sorts upwards, the next downwards, the third restores the order of the page. Cells without a number are last.
// A column of ratios is sorted by them: the fastest, whose time is shown, is 1.
function sortable(table) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const compare = (a, b) => {
    if (a.dataset.value === undefined || b.dataset.value === undefined)
      return words(a).localeCompare(words(b), "en", { numeric: true });
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

// Charts and rows of tables whose first column is the workload are filtered by it and by the kind of its model. Bars, dots, lines, columns and rows of a configuration are filtered by its backend, whose name is the first
// word of the configuration's ("JAX, 1 thread"; on a page of several machines "Chip 9: JAX").
function filter(form) {
  const wanted = form.elements.scenario.value.trim().toLowerCase();
  const boxes = all("[name=backend]", form), away = boxes.filter((box) => !box.checked);
  const hidden = new Set(away.map((box) => box.value)), named = new Set(away.map((box) => box.dataset.name));
  const isUnwanted = (text) => named.has(text.split(": ").pop().trim().split(/[\s,]/)[0]);
  const kinds = JSON.parse(form.dataset.kinds);
  const isWanted = (name) => [name.replace(" \u2020", ""), kinds[bare(name)] ?? ""]
    .some((text) => text.toLowerCase().includes(wanted));
  const charts = all("[data-scenario]"), known = charts.map((chart) => chart.dataset.scenario);
  for (const chart of charts) chart.toggleAttribute("hidden", !isWanted(chart.dataset.scenario));
  for (const heading of all("[data-kind]")) {
    let isEmpty = true;
    for (let next = heading.nextElementSibling; next?.dataset.scenario; next = next.nextElementSibling)
      isEmpty &&= next.hasAttribute("hidden");
    heading.toggleAttribute("hidden", isEmpty);
  }
  for (const part of all("[data-backend]")) part.toggleAttribute("hidden", hidden.has(part.dataset.backend));
  for (const table of all("table")) {
    const heads = [...table.tHead.rows[0].cells], names = heads.map((head) => head.textContent.trim());
    const gone = names.map((name, index) => index > 0 && isUnwanted(name));
    const column = names.findIndex((name) => ["configuration", "candidate", "backend"].includes(name));
    heads.forEach((head, index) => { head.hidden = gone[index]; });
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, index) => { cell.hidden = gone[index]; });
      const workload = names[0] === "workload" ? words(row.cells[0]) : undefined;
      if (workload) known.push(workload);
      row.hidden = (workload && !isWanted(workload)) || (column >= 0 && isUnwanted(row.cells[column].textContent));
      relate(row, names);
    }
  }
  const models = new Set(known.map(bare));
  const shown = [...models].filter(isWanted).length;
  const stays = away.length ? "; ratios stay relative to the fastest of all" : "";
  form.elements.namedItem("told").value = wanted || away.length
    ? `${shown} of ${models.size} workloads, ${boxes.length - away.length} of ${boxes.length} backends${stays}` : "";
}

// Where the fastest of a row is hidden, the row says what its ratios are relative to.
function relate(row, names) {
  const first = row.querySelector("[data-first]"), heading = row.cells[0];
  row.querySelector("small")?.remove();
  if (!first?.hidden) return;
  const note = document.createElement("small");
  note.textContent = ` relative to ${names[first.cellIndex]}: ${first.dataset.first}`;
  heading.dataset.words ??= heading.textContent;
  heading.append(note);
}

// The filter is in the address, "#?workload=cnn&without=torch", so that it can be sent.
function addressed(form) {
  const boxes = all("[name=backend]", form);
  const read = () => {
    if (!location.hash.startsWith("#?")) return;
    const asked = new URLSearchParams(location.hash.slice(2));
    form.elements.scenario.value = asked.get("workload") ?? "";
    const without = (asked.get("without") ?? "").split(",");
    for (const box of boxes) box.checked = !without.includes(box.value);
    filter(form);
  };
  form.addEventListener("input", () => {
    const asked = new URLSearchParams();
    const wanted = form.elements.scenario.value.trim(), away = boxes.filter((box) => !box.checked);
    if (wanted) asked.set("workload", wanted);
    if (away.length) asked.set("without", away.map((box) => box.value).join(","));
    const query = asked.toString().replaceAll("%2C", ",");
    history.replaceState(null, "", query ? `#?${query}` : location.pathname + location.search);
  });
  addEventListener("hashchange", read);
  read();
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
  const show = () => { button.textContent = isDark() ? "Light colours" : "Dark colours"; };
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
  const show = () => {
    button.textContent = folded().every((one) => one.open) ? "Close all details" : "Open all details";
  };
  button.hidden = !folded().length;
  for (const one of folded()) one.addEventListener("toggle", show);
  button.addEventListener("click", () => {
    const open = folded().some((one) => !one.open);
    for (const one of folded()) one.open = open;
    show();
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
addressed(form);
form.addEventListener("submit", (event) => event.preventDefault());
themed(form.elements.theme);
opening(form.elements.details);
