// One row per protocol: heading, member names, diagram and state table.

import { drawInto, describeMark } from "./drawing.js";
import { el } from "../../../core/pages/assets/elements.js";
import { attachPointer } from "./pointer.js";
import { RunLayout, widthOf } from "./run_layout.js";
import { memberTable } from "./panels/tables.js";
import { StateTable, stateAfter } from "./state_grid.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const LETTERS = 16; // maximum length of a displayed member name
const SUPER = "super"; // below the name of a super peer
const TEXT = 15; // font size of a label at unit 1, px
const LEAST = 38; // least distance of timelines at unit 1, px
const LARGE = [2.4, 2.1, 1.85, 1.6]; // units of the large mode; the last has text of 24 px

/** Return the arrangements to try, in order of preference; the first is the default.
 *
 * `unit`: scale of the diagrams; `columns`: diagrams side by side; `words`: maximum width of a column of
 * words, em; `under`: the tables are below the diagrams; `short`: the tables have only the fields.
 */
function arrangements(app, count) {
  const phone = window.innerWidth < 760;
  const base = phone ? [0.92] : [1, 0.9].map((part) => part * (window.innerWidth >= 1900 ? 1.2 : 1));
  const units = !app.large ? base : phone ? LARGE.slice(-1) : LARGE;
  const all = (columns, words, under, short = app.large && columns > 1) =>
    units.map((unit) => ({ unit, columns, words, under, short, scale: app.large ? 1 : unit / units[0] }));
  if (phone) return [...all(1, 11, true), ...all(1, 6, true, true)];
  const two = count > 1 && window.innerWidth >= 1000;
  return [all(1, 11, false), all(1, 6, false), two ? [...all(2, 11, false), ...all(2, 6, false)] : [], all(1, 11, true), two ? all(2, 11, true) : []].flat();
}

/** Build all rows. Return their views: {run, layout, svg, scroller, ...}. */
export function buildRows(app, holder) {
  const shared = sharedError(app.comparison.runs);
  const views = app.comparison.runs.map((run, index) => viewOf(app, run, index, shared));
  holder.replaceChildren(...(shared ? [errorParagraph(app, shared)] : []), ...views.map((view) => view.row));
  const drawn = views.filter((view) => view.run.timelines?.length);
  arrange(app, holder, drawn);
  for (const view of drawn) {
    view.layout = view.size.place();
    fillNames(app, view);
    attachPointer(app, view);
  }
  inStep(views);
  return views;
}

/** Choose the first arrangement that fits the page; else the lowest that only scrolls down; else the default. */
function arrange(app, holder, views) {
  const all = arrangements(app, views.length);
  const tables = new Map();
  let low = null;
  const found = all.find((one) => {
    const { fits, height } = apply(app, holder, views, one, tables);
    if (fits && (!low || (one.short === low.one.short && one.scale >= low.one.scale && height < low.height))) low = { one, height };
    return fits && height <= holder.parentElement.clientHeight;
  });
  if (!found) apply(app, holder, views, low?.one ?? (app.large ? all.findLast((one) => one.columns === 1) : all[0]), tables);
  fillHeight(app, holder, views);
}

/** Lay out the rows. Return {fits, height}: whether they fit the width of the page, and their height, px. */
function apply(app, holder, views, arrangement, tables) {
  const { unit, columns, words, under, short, scale } = arrangement;
  Object.assign(app, { unit, columns, under });
  const root = document.documentElement;
  root.style.fontSize = app.large ? `${TEXT * unit}px` : "";
  holder.style.setProperty("--scale", scale);
  holder.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  holder.classList.toggle("under", under);
  const rem = parseFloat(getComputedStyle(root).fontSize);
  for (const view of views) {
    const key = `${view.index} ${words} ${short}`;
    if (!tables.has(key)) tables.set(key, new StateTable(view.run, app.comparison, words, short));
    view.table = tables.get(key);
    view.table.size = parseFloat(getComputedStyle(holder).getPropertyValue("--small")) * rem * scale;
    view.names.style.width = `${namesWidth(app)}px`;
  }
  const wide = Math.max(...views.map((view) => view.table.width));
  for (const view of views) view.side.style.width = under ? "" : `${Math.min(wide, view.row.clientWidth * 0.6)}px`;
  for (const view of views) {
    reserveHead(app, view);
    measure(app, view, LEAST * unit);
  }
  const bare = document.body.classList.contains("bare");
  return {
    height: heightOf(app, views),
    fits: views.every((view) => view.size.width <= view.scroller.clientWidth && (bare || view.table.width <= view.side.clientWidth + 1)),
  };
}

function measure(app, view, gap) {
  const beside = app.under || document.body.classList.contains("bare") ? {} : { needs: view.table.needs, head: view.table.line + 2 };
  const numbers = app.large ? (view.index < app.columns ? TEXT * app.unit : 0) : 12 * app.unit;
  view.size = new RunLayout(view.run, app.comparison, { width: view.scroller.clientWidth, gap, unit: app.unit, numbers, head: 0, ...beside });
}

/** Return the height of the rows, px, without those that have no diagram. */
function heightOf(app, views) {
  const around = (view) => view.row.offsetHeight - view.body.offsetHeight - view.side.offsetHeight * (app.under ? 1 : 0);
  const table = (view) => (app.under && !document.body.classList.contains("bare") ? view.table.needs.reduce((sum, need) => sum + need, 2 * view.table.line) : 0);
  const heights = views.map((view) => view.size.height + around(view) + table(view));
  return heights.reduce((sum, _, k) => sum + (k % app.columns ? 0 : Math.max(...heights.slice(k, k + app.columns))), 0);
}

/** Spread the timelines over the height that is left. */
function fillHeight(app, holder, views) {
  if (!views.length) return;
  const free = holder.parentElement.clientHeight - heightOf(app, views) - 4;
  const gaps = views.reduce((sum, view, k) => sum + (k % app.columns ? 0 : Math.max(1, view.run.timelines.length - 1)), 0);
  if (free > 0) for (const view of views) measure(app, view, Math.min(120, LEAST + free / gaps / app.unit) * app.unit);
}

/** Reserve the height of the longest heading of all steps; stepping then moves nothing. */
function reserveHead(app, view) {
  const steps = Array.from({ length: app.comparison.columns.length + 1 }, (_, k) => headAt(app, view.run, k));
  const length = ({ verdict, sentence }) => widthOf(verdict?.text ?? "", 16, 700) + widthOf(sentence, 16);
  const longest = steps.reduce((best, one) => (length(one) > length(best) ? one : best), steps[0]);
  view.caption.style.minHeight = "";
  showHead(view, longest);
  view.caption.style.minHeight = `${Math.ceil(view.caption.getBoundingClientRect().height)}px`;
}

/** Return the width of the member names, px; names beyond the maximum wrap. */
function namesWidth(app) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const names = app.comparison.members.flatMap((one) => (one.role === "super" ? [one.name, SUPER] : [one.name]));
  const longest = Math.max(0, ...names.map((name) => widthOf(shortened(name, LETTERS), rem, 700)));
  const most = window.innerWidth < 760 ? 4.6 : 8.5;
  return Math.min(most * rem, Math.max(2.4 * rem, longest + 1.4 * rem));
}

function viewOf(app, run, index, shared) {
  const view = { run, index, layout: null };
  view.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  view.svg.setAttribute("class", "diagram");
  view.svg.setAttribute("role", "img");
  view.scroller = el("div", { class: "scroller" }, view.svg);
  view.names = el("div", { class: "names" });
  view.side = el("div", { class: "beside" });
  view.verdict = el("span", { class: "verdict" });
  view.sentence = el("span", {});
  view.caption = el("p", { class: "caption" }, view.verdict, " ", view.sentence);
  view.body = el("div", { class: "body" }, run.timelines?.length ? [el("div", { class: "plane" }, view.names, view.scroller)] : []);
  view.row = el("section", { class: "run", "aria-label": plain(run.title, 60) }, runHead(app, view), el("div", { class: "notes" }, errorOf(app, run, shared)), view.body, view.side);
  return view;
}

function runHead(app, view) {
  const { run, index } = view;
  const count = app.comparison.runs.length;
  const name = el("h2", {}, protocolName(app, run, index));
  name.title = run.title;
  return el("header", { class: "run-head" }, name, view.caption,
    el("span", { class: "moves" },
      index > 0 ? el("button", { type: "button", class: "small", title: "Move up", "aria-label": `Move ${run.title} up`, onclick: () => app.swapProtocols(index, index - 1) }, "↑") : null,
      count > 1 ? el("button", { type: "button", class: "small", title: "Remove", "aria-label": `Remove ${run.title}`, onclick: () => app.removeProtocol(index) }, "✕") : null));
}

/** Return the protocol's name as scenarios write it, or a menu of its variants. */
function protocolName(app, run, index) {
  const variants = run.variants ?? [];
  if (!variants.length) return plain(run.protocol, 80);
  const plainly = run.name ?? run.protocol;
  const known = [plainly, ...variants.map((one) => one.protocol)];
  const made = el("select", { class: "variant", "aria-label": `Variant of ${run.title}`, onchange: (event) => app.setProtocol(index, event.target.value) },
    el("option", { value: plainly }, plainly), variants.map((one) => el("option", { value: one.protocol }, `${plain(one.protocol, 60)}${one.defective ? " (defective)" : ""}`)),
    known.includes(run.protocol) ? null : el("option", { value: run.protocol }, plain(run.protocol, 80)));
  made.value = run.protocol;
  return made;
}

/** Return the error that all runs have in common, or false. It is shown once. */
function sharedError(runs) {
  const [first] = runs;
  const same = runs.length > 1 && first.error && runs.every((run) => run.error?.message === first.error.message && run.error.command === first.error.command);
  return same ? first.error : null;
}

function errorParagraph(app, error) {
  const k = error.command === null ? -1 : app.columnOf(error.command);
  const where = k >= 0 ? `At step ${k + 1}: ` : "";
  return el("p", { class: "error", role: "note" }, `⚠ ${where}${plain(error.message, 600)}`);
}

function errorOf(app, run, shared) {
  const remarks = (run.remarks ?? []).map((one) => el("p", { class: "soft remark" }, plain(one, 300)));
  return run.error && !shared ? [...remarks, errorParagraph(app, run.error)] : remarks;
}

function fillNames(app, view) {
  const { layout, run, names } = view;
  names.style.height = `${layout.height}px`;
  names.replaceChildren(...run.timelines.map((timeline, k) => {
    const button = el("button", { type: "button", class: "name", title: `${plain(timeline.name, 60)}: drag up or down; click for more`, onclick: () => button.dataset.moved || app.memberForm(timeline.name) }, shortened(timeline.name, LETTERS),
      timeline.forwards ? el("small", {}, SUPER) : null);
    button.style.top = `${layout.timelineY[k]}px`;
    dragName(app, view, button, k);
    return button;
  }));
}

/** Let a name be dragged up and down, which reorders the members. */
function dragName(app, view, button, timeline) {
  let from = null;
  button.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    from = event.clientY;
    delete button.dataset.moved;
    button.setPointerCapture(event.pointerId);
  });
  button.addEventListener("pointermove", (event) => {
    if (from === null || (Math.abs(event.clientY - from) < 5 && !button.dataset.moved)) return;
    button.dataset.moved = "yes";
    button.style.top = `${view.layout.timelineY[timeline] + event.clientY - from}px`;
  });
  const end = (event) => {
    if (from === null) return;
    const y = view.layout.timelineY[timeline] + event.clientY - from;
    from = null;
    button.style.top = `${view.layout.timelineY[timeline]}px`;
    if (!button.dataset.moved || event.type === "pointercancel") return;
    const order = view.run.timelines.map((one) => one.name);
    const to = view.layout.timelineAt(y);
    if (to === timeline) return;
    order.splice(to, 0, ...order.splice(timeline, 1));
    app.edit({ kind: "member", order });
  };
  button.addEventListener("pointerup", end);
  button.addEventListener("pointercancel", end);
}

/** Scroll all diagrams together. */
function inStep(views) {
  for (const view of views) {
    view.scroller.addEventListener("scroll", () => {
      for (const other of views) if (other !== view && Math.abs(other.scroller.scrollLeft - view.scroller.scrollLeft) > 1) other.scroller.scrollLeft = view.scroller.scrollLeft;
    });
  }
}

/** Draw the parts that depend on the step, the chosen action and the cut. */
export function drawRow(app, view) {
  const { run, layout } = view;
  showHead(view, headAt(app, run, app.step));
  if (!layout) return;
  const cut = app.cut.stateFor(run);
  if (!view.show || view.chosen !== app.chosen || view.cut !== cut) redrawDiagram(app, view, cut);
  view.show(app.step);
  view.svg.classList.toggle("stepping", app.step < layout.columns.length);
  view.svg.classList.toggle("hide-outcomes", app.hidesOutcomes);
  if (!document.body.classList.contains("bare")) view.side.replaceChildren(memberTable(app, view));
}

/** Redraw a diagram after a change of the chosen action or the cut. */
function redrawDiagram(app, view, cut) {
  const { run, layout, svg } = view;
  const handle = svg.contains(document.activeElement) ? document.activeElement.closest(".cut-handle")?.dataset.member : undefined;
  Object.assign(view, { chosen: app.chosen, cut });
  view.show = drawInto(svg, layout, view.index, app.chosen, app.cut.marksFor(run));
  svg.setAttribute("role", cut ? "group" : "img"); // screen readers skip the content of an image, but handles of a cut must be read
  svg.setAttribute("aria-label", `${run.title}: ${layout.marks.map((mark) => describeMark(layout, mark)).join("; ")}`);
  app.cut.draw(view);
  if (handle !== undefined) app.cut.focus(view, handle);
}

/** Return the heading of a run after a step: {verdict: {text, css, title} or null, sentence}. */
function headAt(app, run, step) {
  if (!run.timelines?.length) return { verdict: null, sentence: "" };
  const { columns } = app.comparison;
  if (step === 0) return { verdict: null, sentence: "before the first step" };
  const verdict = verdictAt(run, columns, step);
  if (step >= columns.length) return { verdict, sentence: shortSummary(run) };
  const done = run.steps.find((one) => one.command === columns[step - 1].command);
  return { verdict, sentence: done ? done.sentences.join(" ") : "did not get this far" };
}

function showHead(view, { verdict, sentence }) {
  view.sentence.textContent = plain(sentence, 600);
  view.verdict.hidden = verdict === null;
  if (!verdict) return;
  view.verdict.className = `verdict ${verdict.css}`;
  view.verdict.textContent = verdict.text;
  view.verdict.title = verdict.title;
}

// Numbers of messages sent, held back and delivered too early; the details panel has the channels.
function shortSummary(run) {
  const [first] = (run.summary ?? "").split(". ");
  return first && !first.endsWith(".") ? `${first}.` : first;
}

const ORDERS = { delivery: "causal order", receipt: "order by receipt", reply: "replies after their messages", fifo: "FIFO order", total: "total order", topic: "order by topic" };

function verdictAt(run, columns, step) {
  const done = new Set(columns.slice(0, step).map((column) => column.command));
  const wrong = run.violations.filter((one) => done.has(one.command));
  const atEnd = step >= columns.length;
  const order = ORDERS[run.checked_relation];
  if (wrong.length) {
    const more = wrong.length > 1 ? ` (and ${wrong.length - 1} more)` : "";
    const text = `✗ ${atEnd || !order ? plain(wrong.at(-1).sentence, 200) : `${order} violated`}${more}`;
    return { css: "bad", text, title: wrong.map((one) => plain(one.sentence, 200)).join("\n") };
  }
  const title = `promised: ${run.promise}`;
  const came = run.steps.length;
  if (run.error && step > came) return { css: "soft", text: came ? `no violation up to step ${came}, where it stopped` : "not run", title };
  if (!order) return { css: "soft", text: run.checked_relation === "none" ? "promises no order" : "✓ no violation", title };
  const held = Object.values(stateAfter(run, columns, step).held).flat().length;
  return { css: "good", text: `✓ ${order}${atEnd && !held ? "" : " so far"}${held ? `, ${held} held` : ""}`, title };
}
