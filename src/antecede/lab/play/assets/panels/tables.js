// State table of a run: deliveries, held messages and fields of each member after the current step.

import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

const LINE = 0.86 * 1.25; // line height of the table, rem (playground.css)

/** Return the state of a run after a number of steps: {states, held, delivered, in_flight}. */
export function stateAfter(run, columns, step) {
  const empty = { states: run.start?.states ?? {}, held: {}, delivered: {}, in_flight: [] };
  if (step === 0) return empty;
  const done = new Map(run.steps.map((one) => [one.command, one]));
  for (let k = step - 1; k >= 0; k--) {
    const found = done.get(columns[k]?.command);
    if (found) return found;
  }
  return empty;
}

export function memberTable(app, view) {
  const { run, layout } = view;
  const now = stateAfter(run, app.comparison.columns, app.step);
  const before = app.step ? stateAfter(run, app.comparison.columns, app.step - 1) : now;
  const silent = constantFields(run);
  const lineHigh = LINE * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const rows = run.timelines.map((timeline, k) => {
    const next = layout.timelineY[k + 1] ?? layout.height;
    const top = k === 0 ? layout.timelineY[0] - 24 * layout.unit : layout.timelineY[k] - 22 * layout.unit;
    const high = (k + 1 < run.timelines.length ? next - 22 * layout.unit : layout.height) - top;
    return rowOf(timeline, now, before, high, silent, lineHigh);
  });
  const head = el("tr", {}, ["", "delivered", "held back", "state"].map((text) => el("th", { scope: "col" }, text)));
  const table = el("table", { class: "members" }, el("thead", {}, head), el("tbody", {}, rows));
  table.tHead.rows[0].style.height = `${layout.timelineY[0] - 24 * layout.unit}px`;
  return table;
}

function rowOf(timeline, now, before, high, silent, lineHigh) {
  const delivered = now.delivered[timeline.name] ?? [];
  const fresh = delivered.length - (before.delivered[timeline.name] ?? []).length;
  const row = el("tr", {},
    el("th", { scope: "row" }, plain(timeline.name, 24)),
    el("td", { class: "delivered" }, cell(high, lineHigh, timeline.forwards ? "forwards" : deliveredWords(delivered, fresh))),
    el("td", { class: "holds" }, cell(high, lineHigh, heldWords(now.held[timeline.name] ?? []))),
    el("td", { class: "keeps" }, cell(high, lineHigh, fieldWords(now.states[timeline.name] ?? {}, before.states[timeline.name] ?? {}, silent))));
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

/** Return the fields with one value for all members and steps; only the details panel shows them. */
export function constantFields(run) {
  const values = new Map();
  for (const { states } of [run.start ?? { states: {} }, ...run.steps]) {
    for (const fields of Object.values(states)) {
      for (const [name, value] of Object.entries(fields)) values.set(name, (values.get(name) ?? new Set()).add(value));
    }
  }
  return new Set([...values].filter(([, of]) => of.size === 1).map(([name]) => name));
}

/** Return the fields of a state without the constant ones; changed fields are marked. */
function fieldWords(fields, before, silent = new Set()) {
  const names = Object.keys(fields).filter((name) => !silent.has(name));
  if (!names.length) return el("span", { class: "soft" }, "–");
  return names.flatMap((name, k) => {
    const changed = before[name] !== undefined && before[name] !== fields[name];
    return [k ? " · " : "", el("span", { class: changed ? "kept changed" : "kept" },
      el("span", { class: "soft" }, `${plain(name, 30)} `), el("code", {}, plain(fields[name], 400)))];
  });
}
