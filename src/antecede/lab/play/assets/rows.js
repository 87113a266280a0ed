// One row per protocol: heading, member names, diagram and state table.

import { drawInto, describeMark } from "./drawing.js";
import { el } from "../../../core/pages/assets/elements.js";
import { attachPointer } from "./pointer.js";
import { RunLayout, widthOf } from "./run_layout.js";
import { memberTable, stateAfter } from "./panels/tables.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const LETTERS = 16; // maximum length of a displayed member name

/** Return the distance of timelines, px, with which all diagrams fit the height. */
function gapFor(app, high) {
  const { unit } = app;
  const runs = app.comparison.runs.filter((run) => run.timelines?.length);
  const gaps = runs.reduce((sum, run) => sum + Math.max(1, run.timelines?.length - 1), 0);
  const fixed = runs.length * 104 * unit;
  return Math.min(120 * unit, Math.max(46 * unit, (high - fixed) / Math.max(1, gaps)));
}

/** Build all rows. Return their views: {run, layout, svg, scroller, ...}. */
export function buildRows(app, holder) {
  const high = holder.parentElement.clientHeight;
  const gap = gapFor(app, high);
  const shared = sharedError(app.comparison.runs);
  const wide = namesWidth(app);
  const views = app.comparison.runs.map((run, index) => viewOf(app, run, index, shared));
  holder.replaceChildren(...(shared ? [errorParagraph(app, shared)] : []), ...views.map((view) => view.row));
  for (const view of views) view.names.style.width = `${wide}px`;
  for (const view of views) {
    if (!view.run.timelines?.length) continue;
    view.layout = new RunLayout(view.run, app.comparison, { width: view.scroller.clientWidth, gap, unit: app.unit });
    fillNames(app, view);
    attachPointer(app, view);
  }
  inStep(views);
  return views;
}

/** Return the width of the member names, px; names beyond the maximum wrap. */
function namesWidth(app) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const longest = Math.max(0, ...app.comparison.members.map((one) => widthOf(shortened(one.name, LETTERS), rem, 700)));
  const most = window.innerWidth < 760 ? 4.6 : 8.5;
  return Math.min(most * rem, Math.max(3 * rem, longest + 2 * rem));
}

function viewOf(app, run, index, shared) {
  const view = { run, index, layout: null };
  view.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  view.svg.setAttribute("class", "diagram");
  view.svg.setAttribute("role", "img");
  view.scroller = el("div", { class: "scroller" }, view.svg);
  view.names = el("div", { class: "names" });
  view.side = el("div", { class: "beside" });
  view.caption = el("p", { class: "caption" });
  view.verdict = el("span", { class: "verdict" });
  const drawn = run.timelines?.length ? [el("div", { class: "plane" }, view.names, view.scroller), view.side] : [];
  view.row = el("section", { class: "run", "aria-label": plain(run.title, 60) }, runHead(app, view), errorOf(app, run, shared), el("div", { class: "body" }, drawn));
  return view;
}

function runHead(app, view) {
  const { run, index } = view;
  const count = app.comparison.runs.length;
  return el("header", { class: "run-head" },
    el("h2", {}, protocolName(app, run, index)),
    run.title === run.name ? null : el("span", { class: "called soft", title: run.title }, plain(run.title, 90)),
    view.verdict, view.caption,
    el("span", { class: "moves" },
      index > 0 ? el("button", { type: "button", class: "small", title: "Higher", "aria-label": `${run.title} higher`, onclick: () => app.swapProtocols(index, index - 1) }, "↑") : null,
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
      timeline.forwards ? el("small", {}, " super") : null);
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
  view.caption.textContent = plain(captionOf(app, run), 600);
  showVerdict(app, view);
  if (!layout) return;
  const cut = app.cut.stateFor(run);
  if (!view.show || view.chosen !== app.chosen || view.cut !== cut) redrawDiagram(app, view, cut);
  view.show(app.step);
  view.svg.classList.toggle("stepping", app.step < layout.columns.length);
  view.svg.classList.toggle("hide-outcomes", app.hidesOutcomes);
  view.side.replaceChildren(memberTable(app, view));
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

function captionOf(app, run) {
  if (!run.timelines?.length) return "";
  if (app.atEnd) return shortSummary(run);
  if (app.step === 0) return "before the first step";
  const done = run.steps.find((one) => one.command === app.comparison.columns[app.step - 1].command);
  return done ? done.sentences.join(" ") : "did not get this far";
}

// Numbers of messages sent, held back and delivered too early; the details panel has the channels.
function shortSummary(run) {
  const [first] = (run.summary ?? "").split(". ");
  return first && !first.endsWith(".") ? `${first}.` : first;
}

const ORDERS = { delivery: "causal order", receipt: "order by receipt", reply: "replies after their messages", fifo: "FIFO order", total: "total order", topic: "order by topic" };

function showVerdict(app, view) {
  const { run, verdict } = view;
  verdict.hidden = !run.timelines?.length || app.step === 0;
  if (verdict.hidden) return;
  const done = new Set(app.comparison.columns.slice(0, app.step).map((column) => column.command));
  const wrong = run.violations.filter((one) => done.has(one.command));
  const held = Object.values(stateAfter(run, app.comparison.columns, app.step).held).flat().length;
  const order = ORDERS[run.checked_relation];
  verdict.className = `verdict ${wrong.length ? "bad" : order ? "good" : "soft"}`;
  const more = wrong.length > 1 ? ` (and ${wrong.length - 1} more)` : "";
  const came = run.steps.length;
  const stopped = run.error && app.step > came;
  if (stopped && !wrong.length) verdict.className = "verdict soft";
  if (wrong.length) verdict.textContent = `✗ ${app.atEnd || !order ? plain(wrong.at(-1).sentence, 200) : `${order} violated`}${more}`;
  else if (stopped) verdict.textContent = came ? `no violation up to step ${came}, where it stopped` : "not run";
  else if (!order) verdict.textContent = run.checked_relation === "none" ? "promises no order" : `✓ no violation`;
  else verdict.textContent = `✓ ${order}${app.atEnd && !held ? "" : " so far"}${held ? `, ${held} held` : ""}`;
  verdict.title = wrong.length ? wrong.map((one) => plain(one.sentence, 200)).join("\n") : `promised: ${run.promise}`;
}
