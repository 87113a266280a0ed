// Beside each picture: what its members have delivered, hold, and keep, after the step shown.

import { el } from "./elements.js";
import { plain } from "./words.js";

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
  const rows = run.lanes.map((lane, k) => {
    const next = picture.laneY[k + 1] ?? picture.height;
    const top = k === 0 ? picture.laneY[0] - 24 * picture.unit : picture.laneY[k] - 22 * picture.unit;
    const high = (k + 1 < run.lanes.length ? next - 22 * picture.unit : picture.height) - top;
    return rowOf(lane, now, before, high, silent);
  });
  const head = el("tr", {}, ["", "delivered", "holds", "keeps"].map((text) => el("th", { scope: "col" }, text)));
  const table = el("table", { class: "members" }, el("thead", {}, head), el("tbody", {}, rows));
  table.tHead.rows[0].style.height = `${picture.laneY[0] - 24 * picture.unit}px`;
  return table;
}

function rowOf(lane, now, before, high, silent) {
  const delivered = now.delivered[lane.name] ?? [];
  const fresh = delivered.length - (before.delivered[lane.name] ?? []).length;
  const row = el("tr", {},
    el("th", { scope: "row" }, plain(lane.name, 24)),
    el("td", { class: "delivered" }, cell(high, lane.forwards ? "forwards" : deliveredWords(delivered, fresh))),
    el("td", { class: "holds" }, cell(high, heldWords(now.held[lane.name] ?? []))),
    el("td", { class: "keeps" }, cell(high, fieldWords(now.states[lane.name] ?? {}, before.states[lane.name] ?? {}, silent))));
  row.style.height = `${high}px`;
  return row;
}

function cell(high, inner) {
  const made = el("div", { class: "cell" }, inner);
  made.style.maxHeight = `${high}px`;
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
  return held.map(({ label, waits_for: waits }) => el("div", { class: "waits" }, el("b", {}, plain(label, 40)), waits.length ? ` for ${plain(waits.join(", "), 80)}` : ""));
}

/** Fields that are the same for every member all the time: the table leaves them to the details. */
function constantFields(run) {
  const values = new Map();
  for (const { states } of [run.start ?? { states: {} }, ...run.steps]) {
    for (const fields of Object.values(states)) {
      for (const [name, value] of Object.entries(fields)) values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  return new Set([...values].filter(([, of]) => of.size === 1).map(([name]) => name));
}

/** Fields of a state, each on its line, but for those not to be said; what the step changed is marked. */
export function fieldWords(fields, before, silent = new Set()) {
  const names = Object.keys(fields).filter((name) => !silent.has(name));
  if (!names.length) return el("span", { class: "soft" }, "–");
  return names.map((name) => {
    const changed = before[name] !== undefined && before[name] !== fields[name];
    return el("div", { class: changed ? "field changed" : "field" },
      el("span", { class: "soft" }, `${plain(name, 30)} `), el("code", {}, plain(fields[name], 400)),
      changed ? el("span", { class: "unseen" }, ` (was ${plain(before[name], 200)})`) : null);
  });
}
