// SVG elements of a run's layout, and updates that show a step.

import { headPoints, shaftPath } from "./arrow_routing.js";
import { LONGEST } from "./run_layout.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const SVG = "http://www.w3.org/2000/svg";

export function shape(name, given = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Draw a layout. Return a function (steps done) that shows another step.
 *
 * `chosen`: highlighted action; `cut`: arrows that cross the cut.
 */
export function drawInto(svg, layout, key, chosen, cut) {
  const live = [];
  svg.setAttribute("viewBox", `0 0 ${layout.width} ${layout.height}`);
  svg.setAttribute("width", layout.width);
  svg.setAttribute("height", layout.height);
  svg.replaceChildren(
    hatching(key, layout.unit),
    ...drawColumns(layout, chosen, live),
    ...drawTimelines(layout),
    ...layout.bars.flatMap((bar) => barShapes(layout, bar, key, live)),
    ...layout.arrows.map((arrow) => arrowShape(layout, arrow, chosen, cut, live)),
    nowLine(layout, live),
    ...layout.marks.map((mark) => markShape(layout, mark, chosen, live)),
    ...layout.marks.filter((mark) => mark.arrival).map((mark) => pendingArrival(layout, mark, live)),
    ...layout.arrows.filter((arrow) => !arrow.hasSend).map((arrow) => relayMark(layout, arrow.route[0], arrow.begin, live)),
    ...layout.arrows.filter((arrow) => !arrow.marked).map((arrow) => relayMark(layout, arrow.route[3], arrow.arrives, live)),
    ...layout.labels.map((label) => labelShape(layout, label, live)),
    ...layout.bars.filter((bar) => bar.text).map((bar) => whyShape(layout, bar, live)),
    ...layout.stubs.filter(Boolean).map((stub) => stubShape(layout, stub, chosen)),
    shape("g", { class: "over" }),
  );
  return (step) => live.forEach((change) => change(step));
}

/** Update the class of an element at each step; stepping lays out nothing else. */
function trackStep(live, element, css) {
  let last = null;
  live.push((step) => {
    const now = css(step);
    if (now !== last) element.setAttribute("class", now);
    last = now;
  });
  return element;
}

/** Return `base`, dimmed for elements of step `begin` or later. */
const faint = (base, begin) => (step) => (begin >= step ? `${base} later` : base);

function hatching(key, unit) {
  return shape("defs", {},
    shape("pattern", { id: `hatch-${key}`, width: 8 * unit, height: 8 * unit, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      shape("rect", { class: "hatch-back", width: 8 * unit, height: 8 * unit }),
      shape("rect", { class: "hatch-line", width: 2.5 * unit, height: 8 * unit })));
}

function drawColumns(layout, chosen, live) {
  return layout.columns.flatMap((column, k) => {
    const [left, right] = [layout.seam(k), layout.x(column.end + 0.5)];
    const picked = chosen?.command === column.command ? "column picked" : "column";
    const band = shape("rect", { x: left, y: 0, width: right - left, height: layout.height });
    const shown = trackStep(live, band, (step) => (k === step - 1 && step < layout.columns.length ? `${picked} now` : picked));
    if (!layout.numbers) return [shown];
    const number = shape("text", { x: layout.x((column.begin + column.end) / 2), y: layout.numbers * 0.92, "text-anchor": "middle", "font-size": layout.numbers }, String(k + 1));
    return [shown, trackStep(live, number, faint("number", k))];
  });
}

function drawTimelines(layout) {
  return layout.run.timelines.map((timeline, k) => {
    const y = layout.timelineY[k];
    const from = timeline.begin === null ? 0 : layout.x(timeline.begin);
    const to = timeline.end === null ? layout.width : layout.x(timeline.end);
    return shape("g", {}, shape("line", { class: "timeline", x1: from, y1: y, x2: to, y2: y, "stroke-width": 2 * layout.unit }),
      shape("line", { class: "timeline-grip", "data-timeline": k, x1: from, y1: y, x2: to, y2: y, "stroke-width": 22 * layout.unit }));
  });
}

/** Draw the bar of a hold: solid up to the current step, dimmed after it. */
function barShapes(layout, bar, key, live) {
  const [left, top, right, bottom] = bar.box;
  const rect = (css) => shape("rect", { class: css, y: top, height: bottom - top, rx: 3, fill: `url(#hatch-${key})`, "stroke-width": 1.5 * layout.unit });
  const [held, ahead] = [rect("bar"), rect("bar outcome later")];
  const set = (made, from, to) => {
    made.setAttribute("x", from);
    made.setAttribute("width", Math.max(0, to - from));
    made.setAttribute("visibility", to - from > 0.5 ? "visible" : "hidden");
  };
  live.push((step) => {
    const done = bar.begin >= step ? left : Math.min(right, Math.max(left + 4, nowX(layout, step)));
    set(held, left, done);
    set(ahead, done, right);
  });
  return [held, ahead];
}

function nowX(layout, step) {
  return step >= layout.columns.length ? Infinity : layout.seam(step);
}

function arrowShape(layout, arrow, chosen, cut, live) {
  const crossing = cut?.crossing.has(crossKey(layout, arrow));
  const channel = cut?.channels.has(crossKey(layout, arrow));
  const css = ["flight"];
  if (crossing) css.push("crossing");
  if (channel) css.push("channel");
  if (chosen && arrow.label === chosen.label && (chosen.kind === "send" || arrow.arrive_command === chosen.command)) css.push("chosen");
  const timelines = layout.run.timelines;
  const far = arrow.in_flight ? "in flight" : "";
  const short = arrow.stub ? 1 : undefined;
  const base = css.join(" ");
  const state = (step) => {
    if (arrow.begin >= step) return `${base} later`;
    if (arrow.arrives >= step) return `${base} in-flight`;
    return arrow.late ? `${base} late` : base;
  };
  const made = shape("g", {},
    shape("title", {}, plain(`${arrow.label}: ${timelines[arrow.source].name} → ${timelines[arrow.target].name} ${far}`, 300)),
    shape("path", { class: "shaft", d: shaftPath(arrow.route, layout.unit, short), "stroke-width": 2 * layout.unit }),
    shape("polygon", { class: "head", points: headPoints(arrow.route, layout.unit, short) }));
  return trackStep(live, made, state);
}

export function crossKey(layout, arrow) {
  const timelines = layout.run.timelines;
  return JSON.stringify([arrow.label, timelines[arrow.source].name, timelines[arrow.target].name]);
}

function nowLine(layout, live) {
  const made = shape("line", { class: "now-line", y1: 4, y2: layout.height, "stroke-width": 2 * layout.unit });
  live.push((step) => {
    const x = nowX(layout, step);
    made.setAttribute("visibility", x === Infinity ? "hidden" : "visible");
    if (x !== Infinity) for (const end of ["x1", "x2"]) made.setAttribute(end, x);
  });
  return made;
}

const VERBS = {
  send: "sent", deliver: "delivered", hold: "arrives and is held back", release: "released", discard: "discarded",
  lose: "lost on the way", join: "joins", leave: "leaves", record: "records its state", local: "",
};

export function describeMark(layout, mark) {
  const name = layout.run.timelines[mark.timeline].name;
  if (mark.kind === "join" || mark.kind === "leave") return plain(`${name} ${VERBS[mark.kind]}`);
  return plain(`${name}: ${mark.label} ${VERBS[mark.kind] ?? ""} ${mark.note}`.trim(), 300);
}

function markShape(layout, mark, chosen, live) {
  const picked = chosen && chosen.command === mark.command && chosen.timeline === mark.timeline && chosen.label === mark.label;
  const made = shape("g", {},
    shape("title", {}, describeMark(layout, mark)),
    picked ? shape("circle", { class: "ring", cx: mark.x, cy: mark.y, r: 14 * layout.unit, "stroke-width": 2.5 * layout.unit }) : null,
    signOf(mark.wrong ? "wrong" : mark.kind, mark.x, mark.y, layout.unit),
    shape("circle", { class: "grip", cx: mark.x, cy: mark.y, r: 18 * layout.unit }));
  return trackStep(live, made, faint(`mark ${mark.wrong ? "wrong" : mark.kind}${isOutcome(mark) ? " outcome" : ""}`, mark.step));
}

/** Return whether a mark shows a protocol's decision, not only an action of the scenario. */
const isOutcome = (mark) => !["send", "lose", "join", "leave", "local", "record"].includes(mark.kind);

/** Draw a later arrival whose outcome is hidden. */
function pendingArrival(layout, mark, live) {
  const { unit } = layout;
  const made = shape("g", {},
    shape("circle", { class: "sign", cx: mark.x, cy: mark.y, r: 4 * unit, "stroke-width": 2 * unit }),
    shape("text", { class: "what", x: mark.x, y: mark.y - 13 * unit, "text-anchor": "middle", "font-size": 15 * unit }, shortened(mark.label, LONGEST)));
  return trackStep(live, made, faint("pending", mark.step));
}

/** Return the symbol of a kind of mark around a point. */
export function signOf(kind, x, y, unit) {
  const at = (dx, dy) => `${(x + dx * unit).toFixed(1)} ${(y + dy * unit).toFixed(1)}`;
  const width = { "stroke-width": 2.5 * unit };
  switch (kind) {
    case "send":
      return shape("circle", { class: "sign", cx: x, cy: y, r: 6.5 * unit });
    case "local":
      return shape("circle", { class: "sign", cx: x, cy: y, r: 4.5 * unit });
    case "hold":
      return shape("circle", { class: "sign", cx: x, cy: y, r: 6 * unit, ...width });
    case "deliver":
    case "release":
      return shape("path", { class: "sign", d: `M${at(0, -8)}L${at(8, 0)}L${at(0, 8)}L${at(-8, 0)}z`, ...width });
    case "wrong":
      return shape("g", {},
        shape("path", { class: "sign-back", d: `M${at(-10, -10)}h${20 * unit}v${20 * unit}h${-20 * unit}z` }),
        shape("path", { class: "sign", d: `M${at(-7, -7)}L${at(7, 7)}M${at(7, -7)}L${at(-7, 7)}`, "stroke-width": 4 * unit }));
    case "discard":
    case "lose":
      return shape("path", { class: "sign", d: `M${at(-5, -5)}L${at(5, 5)}M${at(5, -5)}L${at(-5, 5)}`, ...width });
    case "record":
      return shape("rect", { class: "sign", x: x - 6 * unit, y: y - 6 * unit, width: 12 * unit, height: 12 * unit });
  }
  return shape("path", { class: "sign", d: `M${at(0, -11)}L${at(0, 11)}`, ...width });
}

/** Draw the relay of a copy by a super peer, or the start of a control message. */
function relayMark(layout, [x, y], begin, live) {
  const made = shape("g", {},
    shape("circle", { class: "sign", cx: x, cy: y, r: 4.5 * layout.unit }), shape("circle", { class: "grip", cx: x, cy: y, r: 18 * layout.unit }));
  return trackStep(live, made, faint("mark passed", begin));
}

function labelShape(layout, label, live) {
  const made = shape("text", { x: label.x, y: label.y, "text-anchor": "middle", "font-size": 15 * layout.unit }, label.text);
  return trackStep(live, made, faint(`${label.mark.wrong ? "label bad" : "label"}${isOutcome(label.mark) ? " outcome" : ""}`, label.step));
}

function whyShape(layout, bar, live) {
  const made = shape("text", { x: bar.text.x, y: bar.text.y, "font-size": 15 * layout.unit }, bar.text.text);
  return trackStep(live, made, faint(`${bar.text.inside ? "why" : "why beside"} outcome`, bar.begin));
}

function stubShape(layout, stub, chosen) {
  const [left, top, right, bottom] = stub.box;
  const { unit } = layout;
  const names = layout.run.timelines;
  const picked = chosen?.kind === "stub" && chosen.label === stub.arrow.label && chosen.timeline === stub.arrow.target;
  return shape("g", { class: `stub${picked ? " chosen" : ""}` },
    shape("title", {}, plain(`${stub.arrow.label} is in flight from ${names[stub.arrow.source].name} to ${names[stub.arrow.target].name}: drag it to its arrival`, 300)),
    shape("rect", { class: "stub-box", x: left, y: top, width: right - left, height: bottom - top, rx: 6 * unit, "stroke-width": 1.6 * unit }),
    shape("path", { class: "stub-dots", d: dots(left + 8 * unit, stub.y, unit) }),
    shape("text", { class: "label", x: left + 20 * unit, y: stub.y + 5 * unit, "font-size": 15 * unit }, shortened(stub.text, 16)));
}

// Six dots: a drag handle.
function dots(x, y, unit) {
  const one = (dx, dy) => `M${(x + dx * unit).toFixed(1)} ${(y + dy * unit).toFixed(1)}h0.01`;
  return [0, 5].flatMap((dx) => [-5, 0, 5].map((dy) => one(dx, dy))).join("");
}
