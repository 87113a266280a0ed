// State of the members as a table: its columns, and the content of a cell after each step.
//
// Vectors, matrices and lists of named values are grids, all other values are lines of words. Widths
// and heights are those of the largest content over all steps: stepping moves nothing, and no value is
// cut.

import { LONGEST, widthOf } from "./run_layout.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const MAX_CELLS = 4000; // cells of a field, summed over the members; a larger field is shown as words
const LINE = 1.25; // line height
export const EMPTY = [[{ text: "–", css: "soft" }]];

/** Return the state after a step: {states, held, delivered, in_flight}. */
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

/** Return the fields with one value for all members and steps; only the details panel shows them. */
export function constantFields(run) {
  const values = new Map();
  for (const fields of allStates(run).flatMap((state) => Object.values(state.states))) {
    for (const [name, value] of Object.entries(fields)) values.set(name, (values.get(name) ?? new Set()).add(value));
  }
  return new Set([...values].filter(([, of]) => of.size === 1).map(([name]) => name));
}

function allStates(run) {
  return [{ states: run.start?.states ?? {}, held: {}, delivered: {} }, ...run.steps];
}

/** Return the parts of a text between commas and semicolons outside brackets. */
function split(text) {
  const parts = [""];
  let depth = 0;
  for (const letter of text) {
    if ("([<{".includes(letter)) depth++;
    if (")]>}".includes(letter)) depth--;
    if (depth === 0 && ",;".includes(letter)) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim());
}

/** Return the items of a text in one pair of brackets, or null. */
function itemsOf(text) {
  const bracketed = /^\(.*\)$|^\[.*\]$/s.test(text) && split(text).length === 1;
  return bracketed ? split(text.slice(1, -1)) : null;
}

const cellsOf = (items) => items.map((item, k) => [k, item]);

/** Return the rows of a value, [name, [[column, text], ...]], or null. Names are texts, or numbers from 0. */
function parseGrid(value) {
  const items = itemsOf(value);
  if (items?.some(itemsOf)) return items.map((item, k) => [k, itemsOf(item) ? cellsOf(itemsOf(item)) : [[null, item]]]);
  if (items) return [[0, cellsOf(items)]];
  const pairs = split(value).map((part) => /^([^:()<>[\]{}]+): (.+)$/.exec(part)?.slice(1));
  if (!pairs.every(Boolean)) return null;
  if (pairs.some(([, text]) => itemsOf(text))) return pairs.map(([name, text]) => [name, cellsOf(itemsOf(text) ?? [text])]);
  return pairs.some(([, text]) => /[<>()]/.test(text)) ? null : [[0, pairs]];
}

const isEmpty = (value) => value === undefined || ["", "?", "Ø", "none"].includes(value);

/** Return the fields of a run: {title, names, rows, columns}; no rows: words. */
function fieldsOf(run, members) {
  const constant = constantFields(run);
  const groups = new Map(); // fields such as mt[A], mt[B] are the rows of one grid
  const states = allStates(run).flatMap((state) => Object.values(state.states));
  for (const name of new Set(states.flatMap(Object.keys))) {
    const title = /^(.+)\[.+\]$/.exec(name)?.[1] ?? name;
    groups.set(title, [...(groups.get(title) ?? []), name]);
  }
  return [...groups].filter(([, names]) => names.some((name) => !constant.has(name))).map(([title, names]) => {
    const rows = new Set();
    const columns = new Set();
    const values = new Set(states.flatMap((state) => names.map((name) => state[name])).filter((value) => !isEmpty(value)));
    const grids = names.length > 1 || values.size ? [...values].map(parseGrid) : [null];
    for (const [row, cells] of grids.flatMap((grid) => grid ?? [])) {
      rows.add(row);
      for (const [column] of cells) if (column !== null) columns.add(column);
    }
    if (names.length > 1) names.forEach((name) => rows.add(name.slice(title.length + 1, -1)) && rows.delete(0));
    const large = rows.size * columns.size * members.length > MAX_CELLS;
    if (large || grids.includes(null)) return { title, names, rows: null };
    return { title, names, rows: inOrder(rows, members), columns: inOrder(columns, members) };
  });
}

/** Return names in the order of the members, numbers ascending. */
function inOrder(names, members) {
  const place = (name) => (typeof name === "number" ? name : (members.indexOf(name) + members.length + 1) % (members.length + 1));
  return [...names].sort((a, b) => place(a) - place(b));
}

/** Return the headings of rows or columns: names, or the members if there is one number for each. */
function headings(keys, members) {
  if (keys.every((key) => typeof key === "string")) return keys.map((key) => shortened(key, LONGEST));
  return keys.length === members.length ? members.map((name) => shortened(name, LONGEST)) : null;
}

export class StateTable {
  /** `most`: maximum width of a column of words, em.
   *
   * `short`: only the fields, and no names of columns that are the members in order.
   */
  constructor(run, comparison, most, short) {
    this.run = run;
    this.steps = comparison.columns;
    const members = comparison.members.map((one) => one.name);
    const words = (title, css) => ({ title, css, rows: null });
    const holds = run.steps.some((step) => Object.values(step.held).some((held) => held.length));
    const shown = short ? [] : [words("delivered", "delivered"), ...(holds ? [words("held back", "holds")] : [])];
    this.columns = [...shown, ...fieldsOf(run, members).map((field) => ({ ...field, css: "keeps" }))];
    for (const column of this.columns.filter((one) => one.rows)) {
      column.heads = short && column.columns.length === members.length ? null : headings(column.columns, members);
      column.rowHeads = column.rows.length > 1 ? headings(column.rows, members) : null;
    }
    this.measure(most);
    this.size = 16; // font size, px
  }

  get line() {
    return Math.ceil(this.size * LINE);
  }

  /** Heights of the members' rows, px. */
  get needs() {
    return this.lines.map((count) => count * this.line + 4);
  }

  get gap() {
    return this.size * 0.8;
  }

  get width() {
    return this.columns.reduce((sum, column) => sum + column.width * this.size + this.gap, this.gap / 2);
  }

  get names() {
    return this.run.timelines.map((timeline) => timeline.name);
  }

  /** Compute widths, em, and numbers of lines. */
  measure(most) {
    const states = allStates(this.run);
    const widest = (texts) => Math.max(0, ...[...texts].map(emsOf));
    for (const column of this.columns) {
      const title = emsOf(column.title);
      const cells = states.flatMap((state) => this.names.map((name) => this.content(column, name, state, state)));
      const texts = new Set(cells.flatMap((lines) => lines.flatMap((line) => line.map(({ text }) => text))));
      if (column.rows) {
        column.cell = widest([...texts, ...(column.heads ?? [])]) + 0.5;
        const names = widest(column.rowHeads ?? []);
        column.rowHead = column.heads || names ? Math.max(names, column.heads ? title : 0) + 0.4 : 0;
        column.width = Math.max(column.heads ? 0 : title, column.rowHead + column.cell * column.columns.length) + 0.15;
      } else {
        const whole = widest(new Set(cells.flatMap((lines) => lines.map((line) => line.map(({ text }) => text).join(" ")))));
        column.width = Math.max(title, widest(texts), Math.min(most, whole)) + 0.1;
      }
    }
    const counts = states.map((state) => this.names.map((name) => Math.max(1, ...this.columns.map((column) => this.content(column, name, state, state).length))));
    this.lines = this.names.map((_, k) => Math.max(...counts.map((of) => of[k])));
  }

  /** Return the content of a cell: lines of {text, css}; those of a grid have one item a cell. */
  content(column, name, state, before) {
    if (!column.rows) return wrap(tokensOf(column, name, state, before), column.width ?? Infinity);
    if (column.names.every((field) => state.states[name]?.[field] === undefined)) return EMPTY;
    const [now, earlier] = [state, before].map((one) => gridOf(column, one.states[name] ?? {}));
    return now.map((row, k) => row.map((text, j) => ({ text, css: earlier[k][j] === text ? "" : "changed" })));
  }

  rowsAfter(step) {
    const now = stateAfter(this.run, this.steps, step);
    const before = step ? stateAfter(this.run, this.steps, step - 1) : now;
    return this.names.map((name) => this.columns.map((column) => this.content(column, name, now, before)));
  }
}

const emsOf = (text) => widthOf(text, 1, 700);

function gridOf(field, state) {
  const parsed = new Map();
  for (const name of field.names) {
    const own = field.names.length > 1 ? name.slice(field.title.length + 1, -1) : null;
    let rows = isEmpty(state[name]) ? [] : parseGrid(state[name]);
    // A matrix whose rows are all unknown: (?, ?, ?).
    if (!own && field.rows.length > 1 && rows.length === 1) rows = rows[0][1].map(([row, text]) => [row, [[null, text]]]);
    for (const [row, cells] of rows) parsed.set(own ?? row, new Map(cells));
  }
  return field.rows.map((row) => field.columns.map((column) => plain(parsed.get(row)?.get(column) ?? parsed.get(row)?.get(null) ?? "", 4000).replace(/^none$/, "–")));
}

/** Return the words of a cell, {text, css}. */
function tokensOf(column, name, state, before) {
  if (column.css === "delivered") return deliveredWords(state.delivered[name] ?? [], (before.delivered[name] ?? []).length);
  if (column.css === "holds") return (state.held[name] ?? []).flatMap(({ label, waits_for: waits }, k, all) => heldWords(label, waits, k + 1 < all.length));
  const [field] = column.names;
  const [value, earlier] = [state, before].map((one) => one.states[name]?.[field] ?? "");
  return plain(value, 4000).split(" ").filter(Boolean).map((text) => ({ text, css: value === earlier ? "" : "changed" }));
}

function deliveredWords(labels, before) {
  return labels.map((label, k) => ({ text: `${plain(label, 200)}${k + 1 < labels.length ? "," : ""}`, css: k >= before ? "changed" : "" }));
}

function heldWords(label, waits, more) {
  const causes = waits.flatMap((one, k) => `${plain(one, 200)}${k + 1 < waits.length ? "," : ""}`.split(" "));
  const words = [plain(label, 200), ...(causes.length ? ["for", ...causes] : [])];
  return words.map((text, k) => ({ text: more && k + 1 === words.length ? `${text};` : text, css: k ? "waits" : "waits label" }));
}

/** Return tokens as lines of at most `width`, em. */
function wrap(tokens, width) {
  if (!tokens.length) return EMPTY;
  const lines = [[]];
  for (const token of tokens) {
    const line = lines.at(-1);
    const tooLong = () => emsOf([...line, token].map((one) => one.text).join(" ")) > width;
    if (line.length && width < Infinity && tooLong()) lines.push([token]);
    else line.push(token);
  }
  return lines;
}
