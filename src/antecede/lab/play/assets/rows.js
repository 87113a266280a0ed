// A row a protocol: its heading, the members' names, its picture, and the table beside it.

import { drawInto, markWords } from "./drawing.js";
import { el } from "../../../core/pages/assets/elements.js";
import { takeInHand } from "./pointer.js";
import { Picture, widthOf } from "./run_layout.js";
import { memberTable, stateAfter } from "./panels/tables.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const LETTERS = 16; // of a member's name on its lane

/** px between lanes so that all pictures fit the height there is. */
function gapFor(app, high) {
  const { unit } = app;
  const runs = app.bench.runs.filter((run) => run.lanes?.length);
  const gaps = runs.reduce((sum, run) => sum + Math.max(1, run.lanes?.length - 1), 0);
  const fixed = runs.length * 104 * unit;
  return Math.min(120 * unit, Math.max(46 * unit, (high - fixed) / Math.max(1, gaps)));
}

/** All rows anew; returns their views: {run, picture, svg, scroller, ...}. */
export function buildRows(app, holder) {
  const high = holder.parentElement.clientHeight;
  const gap = gapFor(app, high);
  const shared = sharedError(app.bench.runs);
  const wide = namesWidth(app);
  const views = app.bench.runs.map((run, index) => viewOf(app, run, index, shared));
  holder.replaceChildren(...(shared ? [errorParagraph(app, shared)] : []), ...views.map((view) => view.row));
  for (const view of views) view.names.style.width = `${wide}px`;
  for (const view of views) {
    if (!view.run.lanes?.length) continue;
    view.picture = new Picture(view.run, app.bench, { width: view.scroller.clientWidth, gap, unit: app.unit });
    fillNames(app, view);
    takeInHand(app, view);
  }
  inStep(views);
  return views;
}

/** px for the names of members: as the longest needs, within reason; longer ones are broken. */
function namesWidth(app) {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const longest = Math.max(0, ...app.bench.members.map((one) => widthOf(shortened(one.name, LETTERS), rem, 700)));
  const most = window.innerWidth < 760 ? 4.6 : 8.5;
  return Math.min(most * rem, Math.max(3 * rem, longest + 2 * rem));
}

function viewOf(app, run, index, shared) {
  const view = { run, index, picture: null };
  view.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  view.svg.setAttribute("class", "picture");
  view.svg.setAttribute("role", "img");
  view.scroller = el("div", { class: "scroller" }, view.svg);
  view.names = el("div", { class: "names" });
  view.side = el("div", { class: "beside" });
  view.caption = el("p", { class: "caption" });
  view.verdict = el("span", { class: "verdict" });
  const drawn = run.lanes?.length ? [el("div", { class: "plane" }, view.names, view.scroller), view.side] : [];
  view.row = el("section", { class: "run", "aria-label": plain(run.title, 60) }, runHead(app, view), errorOf(app, run, shared), el("div", { class: "body" }, drawn));
  return view;
}

function runHead(app, view) {
  const { run, index } = view;
  const count = app.bench.runs.length;
  return el("header", { class: "run-head" },
    el("h2", {}, protocolName(app, run, index)),
    run.title === run.name ? null : el("span", { class: "called soft", title: run.title }, plain(run.title, 90)),
    view.verdict, view.caption,
    el("span", { class: "moves" },
      index > 0 ? el("button", { type: "button", class: "small", title: "Higher", "aria-label": `${run.title} higher`, onclick: () => app.swapProtocols(index, index - 1) }, "↑") : null,
      count > 1 ? el("button", { type: "button", class: "small", title: "Take away", "aria-label": `Take ${run.title} away`, onclick: () => app.removeProtocol(index) }, "✕") : null));
}

/** The name of the protocol as scripts write it; a menu where it has variants. */
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

/** What is wrong under every protocol alike is the scene's fault, and said once. */
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
  const { picture, run, names } = view;
  names.style.height = `${picture.height}px`;
  names.replaceChildren(...run.lanes.map((lane, k) => {
    const button = el("button", { type: "button", class: "name", title: `${plain(lane.name, 60)}: drag up or down; click for more`, onclick: () => button.dataset.moved || app.memberForm(lane.name) }, shortened(lane.name, LETTERS),
      lane.forwards ? el("small", {}, " super") : null);
    button.style.top = `${picture.laneY[k]}px`;
    dragName(app, view, button, k);
    return button;
  }));
}

/** Names are dragged up and down: members in another order. */
function dragName(app, view, button, lane) {
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
    button.style.top = `${view.picture.laneY[lane] + event.clientY - from}px`;
  });
  const end = (event) => {
    if (from === null) return;
    const y = view.picture.laneY[lane] + event.clientY - from;
    from = null;
    button.style.top = `${view.picture.laneY[lane]}px`;
    if (!button.dataset.moved || event.type === "pointercancel") return;
    const order = view.run.lanes.map((one) => one.name);
    const to = view.picture.laneAt(y);
    if (to === lane) return;
    order.splice(to, 0, ...order.splice(lane, 1));
    app.edit({ kind: "member", order });
  };
  button.addEventListener("pointerup", end);
  button.addEventListener("pointercancel", end);
}

/** One axis: what is scrolled in one picture is scrolled in all. */
function inStep(views) {
  for (const view of views) {
    view.scroller.addEventListener("scroll", () => {
      for (const other of views) if (other !== view && Math.abs(other.scroller.scrollLeft - view.scroller.scrollLeft) > 1) other.scroller.scrollLeft = view.scroller.scrollLeft;
    });
  }
}

/** What depends on the step, what is chosen and the cut. */
export function drawRow(app, view) {
  const { run, picture } = view;
  view.caption.textContent = plain(captionOf(app, run), 600);
  showVerdict(app, view);
  if (!picture) return;
  const cut = app.cut.stateFor(run);
  if (!view.show || view.chosen !== app.chosen || view.cut !== cut) redrawPicture(app, view, cut);
  view.show(app.step);
  view.svg.classList.toggle("stepping", app.step < picture.columns.length);
  view.svg.classList.toggle("hush", app.hush);
  view.side.replaceChildren(memberTable(app, view));
}

/** The picture is made anew only where what is chosen or the cut has changed. */
function redrawPicture(app, view, cut) {
  const { run, picture, svg } = view;
  const handle = svg.contains(document.activeElement) ? document.activeElement.closest(".cut-handle")?.dataset.member : undefined;
  Object.assign(view, { chosen: app.chosen, cut });
  view.show = drawInto(svg, picture, view.index, app.chosen, app.cut.marksFor(run));
  svg.setAttribute("role", cut ? "group" : "img"); // what is inside an image is not read out: handles of a cut are
  svg.setAttribute("aria-label", `${run.title}: ${picture.marks.map((mark) => markWords(picture, mark)).join("; ")}`);
  app.cut.draw(view);
  if (handle !== undefined) app.cut.focus(view, handle);
}

function captionOf(app, run) {
  if (!run.lanes?.length) return "";
  if (app.atEnd) return shortSummary(run);
  if (app.step === 0) return "before the first step";
  const done = run.steps.find((one) => one.command === app.bench.columns[app.step - 1].command);
  return done ? done.sentences.join(" ") : "did not come so far";
}

// How much was sent, held and early; what the channels were like stands in the details.
function shortSummary(run) {
  const [first] = (run.summary ?? "").split(". ");
  return first && !first.endsWith(".") ? `${first}.` : first;
}

const ORDERS = { delivery: "causal order", receipt: "order by receipt", reply: "answers after their questions", fifo: "FIFO order", total: "total order", topic: "order by topic" };

function showVerdict(app, view) {
  const { run, verdict } = view;
  verdict.hidden = !run.lanes?.length || app.step === 0; // of nothing nothing is said
  if (verdict.hidden) return;
  const done = new Set(app.bench.columns.slice(0, app.step).map((column) => column.command));
  const wrong = run.violations.filter((one) => done.has(one.command));
  const held = Object.values(stateAfter(run, app.bench.columns, app.step).held).flat().length;
  const judged = ORDERS[run.judged_by];
  verdict.className = `verdict ${wrong.length ? "bad" : judged ? "good" : "soft"}`;
  const more = wrong.length > 1 ? ` (and ${wrong.length - 1} more)` : "";
  const came = run.steps.length;
  const stopped = run.error && app.step > came;
  if (stopped && !wrong.length) verdict.className = "verdict soft";
  if (wrong.length) verdict.textContent = `✗ ${app.atEnd || !judged ? plain(wrong.at(-1).sentence, 200) : `${judged} violated`}${more}`;
  else if (stopped) verdict.textContent = came ? `nothing out of order as far as it came (step ${came})` : "not played";
  else if (!judged) verdict.textContent = run.judged_by === "none" ? "promises no order" : `✓ nothing out of order`;
  else verdict.textContent = `✓ ${judged}${app.atEnd && !held ? "" : " so far"}${held ? `, ${held} held` : ""}`;
  verdict.title = wrong.length ? wrong.map((one) => plain(one.sentence, 200)).join("\n") : `promised: ${run.promise}`;
}
