// Beside each picture: what its members have delivered, hold, and keep, after the step shown.

import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

const LINE = 0.86 * 1.25; // rem a line of the table takes (playground.css)

/** What a run is like after so many steps: {states, held, delivered, flying}. */
export function stateAfter(run, columns, step) {
  const empty = { states: run.start?.states ?? {}, held: {}, delivered: {}, flying: [] };
  if (step === 0) return empty;
  const done = new Map(run.steps.map((one) => [one.command, one]));
  for (let k = step - 1; k >= 0; k--) {
    const found = done.get(columns[k]?.command);
    if (found) return found;
  }
  return empty;
}

export function memberTable(app, view) {
  const { run, picture } = view;
  const now = stateAfter(run, app.bench.columns, app.step);
  const before = app.step ? stateAfter(run, app.bench.columns, app.step - 1) : now;
  const silent = constantFields(run);
  const lineHigh = LINE * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const rows = run.lanes.map((lane, k) => {
    const next = picture.laneY[k + 1] ?? picture.height;
    const top = k === 0 ? picture.laneY[0] - 24 * picture.unit : picture.laneY[k] - 22 * picture.unit;
    const high = (k + 1 < run.lanes.length ? next - 22 * picture.unit : picture.height) - top;
    return rowOf(lane, now, before, high, silent, lineHigh);
  });
  const head = el("tr", {}, ["", "delivered", "holds", "keeps"].map((text) => el("th", { scope: "col" }, text)));
  const table = el("table", { class: "members" }, el("thead", {}, head), el("tbody", {}, rows));
  table.tHead.rows[0].style.height = `${picture.laneY[0] - 24 * picture.unit}px`;
  return table;
}

function rowOf(lane, now, before, high, silent, lineHigh) {
  const delivered = now.delivered[lane.name] ?? [];
  const fresh = delivered.length - (before.delivered[lane.name] ?? []).length;
  const row = el("tr", {},
    el("th", { scope: "row" }, plain(lane.name, 24)),
    el("td", { class: "delivered" }, cell(high, lineHigh, lane.forwards ? "forwards" : deliveredWords(delivered, fresh))),
    el("td", { class: "holds" }, cell(high, lineHigh, heldWords(now.held[lane.name] ?? []))),
    el("td", { class: "keeps" }, cell(high, lineHigh, fieldWords(now.states[lane.name] ?? {}, before.states[lane.name] ?? {}, silent))));
  row.style.height = `${high}px`;
  return row;
}

function cell(high, lineHigh, inner) {
  const made = el("div", { class: "cell" }, inner);
  made.title = made.textContent;
  made.style.webkitLineClamp = String(Math.max(1, Math.floor((high - 2) / lineHigh)));
  return made;
}

function deliveredWords(labels, fresh) {
  if (!labels.length) return el("span", { class: "soft" }, "–");
  return labels.flatMap((label, k) => [
    k ? ", " : "",
    k >= labels.length - fresh ? el("b", { class: "fresh" }, plain(label, 40)) : plain(label, 40),
  ]);
}

function heldWords(held) {
  if (!held.length) return el("span", { class: "soft" }, "–");
  return held.flatMap(({ label, waits_for: waits }, k) => [k ? "; " : "", el("span", { class: "waits" }, el("b", {}, plain(label, 40)), waits.length ? ` for ${plain(waits.join(", "), 80)}` : "")]);
}

/** Fields that are the same for every member all the time: the table leaves them to the details. */
export function constantFields(run) {
  const values = new Map();
  for (const { states } of [run.start ?? { states: {} }, ...run.steps]) {
    for (const fields of Object.values(states)) {
      for (const [name, value] of Object.entries(fields)) values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  return new Set([...values].filter(([, of]) => of.size === 1).map(([name]) => name));
}

/** Fields of a state, but for those not to be said; what the step changed is marked. */
function fieldWords(fields, before, silent = new Set()) {
  const names = Object.keys(fields).filter((name) => !silent.has(name));
  if (!names.length) return el("span", { class: "soft" }, "–");
  return names.flatMap((name, k) => {
    const changed = before[name] !== undefined && before[name] !== fields[name];
    return [k ? " · " : "", el("span", { class: changed ? "kept changed" : "kept" },
      el("span", { class: "soft" }, `${plain(name, 30)} `), el("code", {}, plain(fields[name], 400)))];
  });
}
