// Pointer input on a diagram: marks, copies in flight, timelines, handles of a cut.

import { shape, signOf } from "./drawing.js";
import { listen } from "../../../core/pages/assets/gestures.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const NEAR = 19;

/** Handle drags and clicks on the diagram of `view` ({svg, scroller, layout, run}). */
export function attachPointer(app, view) {
  let held = null;
  const over = () => view.svg.querySelector(".over");
  const clear = () => {
    over()?.replaceChildren();
    view.svg.classList.remove("dragging");
    held = null;
  };
  // A touch on a draggable shape must not scroll. In some browsers touch-action has no effect on
  // shapes inside an SVG.
  view.svg.addEventListener("touchstart", (event) => {
    if (event.touches.length > 1) return;
    const box = view.svg.getBoundingClientRect();
    const found = findTarget(app, view, event.touches[0].clientX - box.left, event.touches[0].clientY - box.top);
    if (found && found.what !== "timeline") event.preventDefault();
  }, { passive: false });
  listen(view.svg, {
    grab: (x, y) => {
      held = findTarget(app, view, x, y);
      return held !== null;
    },
    drag: (x, y) => {
      if (!held) return;
      view.svg.classList.add("dragging");
      scrollAtEdge(view, x);
      drawPreview(app, view, held, x, y);
    },
    drop: (x, y) => {
      const taken = held;
      clear();
      if (taken) drop(app, view, taken, x, y);
    },
    cancelled: () => {
      clear();
      app.cut.dragged = null;
      app.redraw();
    },
    click: (x, y) => {
      clear();
      click(app, view, x, y);
    },
    double: (x, y) => {
      const found = findTarget(app, view, x, y);
      if (found?.what === "timeline") app.sendForm({ from: timelineName(view, found.timeline), at: view.layout.slotAt(x) });
    },
    hover: (x, y) => {
      const found = findTarget(app, view, x, y);
      view.svg.style.cursor = !found ? "default" : found.what === "timeline" ? "crosshair" : "grab";
    },
    done: clear,
  });
}

function timelineName(view, timeline) {
  return view.run.timelines[timeline].name;
}

/** Return the target at a point: {what: "cut" | "stub" | "mark" | "timeline", ...}, or null. */
function findTarget(app, view, x, y) {
  const { layout } = view;
  const near = NEAR * layout.unit;
  const handle = app.cut.handleAt(view, x, y);
  if (handle !== null) return { what: "cut", timeline: handle };
  for (const stub of layout.stubs) {
    if (stub && x >= stub.box[0] - 4 && x <= stub.box[2] + 4 && y >= stub.box[1] - 4 && y <= stub.box[3] + 4) return { what: "stub", stub };
  }
  const ends = layout.arrows.filter((arrow) => !arrow.marked).map((arrow) => ({
    x: arrow.route[3][0], y: arrow.route[3][1], timeline: arrow.target, label: arrow.label, kind: "passed", command: arrow.arrive_command, at: arrow.arrived,
  }));
  let best = null;
  let min = near;
  for (const mark of [...layout.marks, ...ends]) {
    const far = Math.hypot(mark.x - x, mark.y - y);
    if (far < min) [best, min] = [mark, far];
  }
  if (best) return { what: "mark", mark: best };
  const timeline = layout.timelineAt(y);
  if (Math.abs(layout.timelineY[timeline] - y) < 12 * layout.unit) return { what: "timeline", timeline, x };
  return null;
}

/** Return whether a mark belongs to its action. A delivery that another arrival released does not. */
export function isOwn(layout, mark) {
  if (mark.command === null || mark.command === undefined) return false;
  if (mark.kind === "deliver" || mark.kind === "release") {
    return layout.arrows.some((arrow) => arrow.target === mark.timeline && arrow.arrived === mark.at && arrow.label === mark.label && !arrow.in_flight);
  }
  return true;
}

function click(app, view, x, y) {
  const found = findTarget(app, view, x, y);
  if (found?.what === "stub") {
    const { arrow } = found.stub;
    return app.choose({ kind: "stub", label: arrow.label, timeline: arrow.target, source: timelineName(view, arrow.source), target: timelineName(view, arrow.target) });
  }
  if (found?.what === "mark") {
    const { mark } = found;
    return app.choose({ kind: mark.kind, command: mark.command, timeline: mark.timeline, label: mark.label, member: timelineName(view, mark.timeline), run: view.run.protocol });
  }
  if (found?.what === "cut") return undefined;
  const slot = view.layout.slotAt(x);
  const column = view.layout.columns.findIndex((one) => Math.abs(view.layout.time(x) - (one.begin + one.end) / 2) <= (one.end - one.begin) / 2 + 0.5);
  app.choose(null);
  return app.goTo(column >= 0 ? column + 1 : slot);
}

/** Show where a drop would insert the dragged action. */
function drawPreview(app, view, held, x, y) {
  const { layout } = view;
  const { unit } = layout;
  const over = view.svg.querySelector(".over");
  if (held.what === "cut") {
    app.cut.drag(view, held.timeline, x);
    return;
  }
  if (held.what === "timeline") {
    const to = layout.timelineAt(y);
    const other = to !== held.timeline;
    const end = other ? layout.timelineY[to] : layout.timelineY[held.timeline];
    over.replaceChildren(
      shape("line", { class: "ghost-line", x1: held.x, y1: layout.timelineY[held.timeline], x2: x, y2: end, "stroke-width": 3 * unit }),
      signOf("send", held.x, layout.timelineY[held.timeline], unit),
      ...caption(layout, x, Math.min(y, end), other ? `${timelineName(view, held.timeline)} sends, arrival at ${timelineName(view, to)}` : `${timelineName(view, held.timeline)} sends here: drop, or drag on to the receiver`),
    );
    return;
  }
  const slot = layout.slotAt(x);
  const timeline = held.what === "stub" ? held.stub.arrow.target : held.mark.timeline;
  const label = held.what === "stub" ? held.stub.arrow.label : held.mark.label;
  const seam = layout.seam(slot);
  const own = held.what === "stub" || isOwn(layout, held.mark);
  const where = slot >= layout.columns.length ? "at the end" : `before step ${slot + 1}`;
  over.replaceChildren(
    shape("line", { class: "seam", x1: seam, y1: 2, x2: seam, y2: layout.height, "stroke-width": 3 * unit }),
    shape("g", { class: "ghost" }, signOf(held.what === "stub" ? "deliver" : held.mark.kind, x, layout.timelineY[timeline], unit * 1.3)),
    ...caption(layout, x, layout.timelineY[timeline] - 26 * unit, own ? `${shortened(label, 16)}: ${where}` : "decided by the protocol: drag its arrival"),
  );
}

function caption(layout, x, y, text) {
  const { unit } = layout;
  const left = x > layout.width / 2;
  return [shape("text", { class: "ghost-words", x: x + (left ? -14 : 14) * unit, y: Math.max(16 * unit, y), "text-anchor": left ? "end" : "start", "font-size": 15 * unit }, plain(text))];
}

function scrollAtEdge(view, x) {
  const { scroller } = view;
  const at = x - scroller.scrollLeft;
  if (at < 30) scroller.scrollLeft -= 14;
  else if (at > scroller.clientWidth - 30) scroller.scrollLeft += 14;
}

function drop(app, view, held, x, y) {
  const { layout } = view;
  const slot = layout.slotAt(x);
  if (held.what === "cut") return app.cut.drop(view, held.timeline, x);
  if (held.what === "timeline") {
    const to = layout.timelineAt(y);
    const given = { from: timelineName(view, held.timeline), at: layout.slotAt(held.x) };
    return app.sendForm(to === held.timeline ? given : { ...given, arrives: timelineName(view, to), arrivesAt: Math.max(slot, given.at) });
  }
  if (held.what === "stub") {
    const { arrow } = held.stub;
    return app.arrive(timelineName(view, arrow.target), arrow.label, slot);
  }
  const { mark } = held;
  if (!isOwn(layout, mark)) {
    return app.say(`${timelineName(view, mark.timeline)} delivers ${mark.label} when its causes are delivered: the protocol decides when. Drag the arrival instead.`, "rejected");
  }
  return app.moveTo(mark.command, slot);
}
