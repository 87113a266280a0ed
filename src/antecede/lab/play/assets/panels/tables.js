// State table of a run: deliveries, held messages and fields of each member after the current step.

import { el } from "../../../../core/pages/assets/elements.js";
import { EMPTY } from "../state_grid.js";
import { plain } from "../../../../core/pages/assets/text.js";

/** Return the table of a view; each row stands beside its timeline. */
export function memberTable(app, view) {
  const { layout, run, table } = view;
  const rows = table.rowsAfter(app.step).map((cells, k) => {
    const made = el("div", { role: "row", class: "member-row" },
      el("span", { role: "rowheader", class: "member" }, plain(run.timelines[k].name, 200)),
      cells.map((lines, j) => cell(table, table.columns[j], run.timelines[k].forwards && table.columns[j].css === "delivered" ? [[{ text: "forwards", css: "soft" }]] : lines)));
    made.style.top = `${layout.timelineY[k]}px`;
    made.style.height = `${table.needs[k]}px`;
    return made;
  });
  const head = el("div", { role: "row", class: "member-row head" }, el("span", { role: "columnheader", class: "member" }), table.columns.map((column) => headCell(table, column)));
  head.style.top = `${layout.timelineY[0] - table.needs[0] / 2}px`;
  const made = el("div", { role: "table", class: "members", "aria-label": `State under ${plain(run.title, 60)}` }, head, rows);
  made.style.gap = `${table.gap}px`;
  made.style.width = `${table.width}px`;
  if (!app.under) made.style.height = `${layout.height}px`;
  return made;
}

function headCell(table, column) {
  const title = plain(column.title, 60);
  const made = el("div", { role: "columnheader" }, column.heads ? gridLine(table, column, column.heads.map((text) => ({ text, css: "" })), title) : title);
  made.style.width = `${column.width * table.size}px`;
  return made;
}

function cell(table, column, lines) {
  const made = el("div", { role: "cell", class: column.css },
    lines.map((line, k) => (column.rows && lines !== EMPTY ? gridLine(table, column, line, column.rowHeads?.[k] ?? "") : wordLine(line))));
  made.style.width = `${column.width * table.size}px`;
  return made;
}

const wordLine = (line) => el("div", {}, line.flatMap(({ text, css }, k) => [k ? " " : "", el("span", { class: css }, text)]));

function gridLine(table, column, line, name) {
  const cells = line.map(({ text, css }) => {
    const made = el("span", { class: `value ${css}` }, text);
    made.style.width = `${column.cell * table.size}px`;
    return made;
  });
  if (!column.rowHead) return el("div", { class: "grid-line" }, cells);
  const head = el("span", { class: "soft" }, name);
  head.style.width = `${column.rowHead * table.size}px`;
  return el("div", { class: "grid-line" }, head, cells);
}
