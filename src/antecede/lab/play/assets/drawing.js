// A picture as elements of SVG, and which of them are still to come at a step.

import { headOf, shaftOf } from "./arrow_routing.js";
import { LONGEST } from "./run_layout.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const SVG = "http://www.w3.org/2000/svg";

export function shape(name, given = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Draw a picture; returns what shows another step in it: a function of the steps done.
 *
 * `chosen` is marked, and what `cut` says crosses it.
 */
export function drawInto(svg, picture, key, chosen, cut) {
  const live = [];
  svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
  svg.setAttribute("width", picture.width);
  svg.setAttribute("height", picture.height);
  svg.replaceChildren(
    hatching(key, picture.unit),
    ...gridOf(picture, chosen, live),
    ...lanesOf(picture),
    ...picture.bars.flatMap((bar) => barShapes(picture, bar, key, live)),
    ...picture.arrows.map((arrow) => arrowShape(picture, arrow, chosen, cut, live)),
    nowLine(picture, live),
    ...picture.marks.map((mark) => markShape(picture, mark, chosen, live)),
    ...picture.marks.filter((mark) => mark.arrival).map((mark) => foretold(picture, mark, live)),
    ...picture.arrows.filter((arrow) => !arrow.told).map((arrow) => passedOn(picture, arrow.course[0], arrow.begin, live)),
    ...picture.arrows.filter((arrow) => !arrow.marked).map((arrow) => passedOn(picture, arrow.course[3], arrow.arrives, live)),
    ...picture.labels.map((label) => labelShape(picture, label, live)),
    ...picture.bars.filter((bar) => bar.text).map((bar) => whyShape(picture, bar, live)),
    ...picture.stubs.filter(Boolean).map((stub) => stubShape(picture, stub, chosen)),
    shape("g", { class: "over" }),
  );
  return (step) => live.forEach((change) => change(step));
}

/** An element whose class follows the step: nothing else is laid out anew while one steps. */
function following(live, element, css) {
  let last = null;
  live.push((step) => {
    const now = css(step);
    if (now !== last) element.setAttribute("class", now);
    last = now;
  });
  return element;
}

/** `base`, and faint where it happens in step `begin` or later. */
const faint = (base, begin) => (step) => (begin >= step ? `${base} later` : base);

function hatching(key, unit) {
  return shape("defs", {},
    shape("pattern", { id: `hatch-${key}`, width: 8 * unit, height: 8 * unit, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      shape("rect", { class: "hatch-back", width: 8 * unit, height: 8 * unit }),
      shape("rect", { class: "hatch-line", width: 2.5 * unit, height: 8 * unit })));
}

function gridOf(picture, chosen, live) {
  const { unit } = picture;
  return picture.columns.flatMap((column, k) => {
    const [left, right] = [picture.seam(k), picture.x(column.end + 0.5)];
    const picked = chosen?.command === column.command ? "column picked" : "column";
    const band = shape("rect", { x: left, y: 0, width: right - left, height: picture.height });
    const number = shape("text", { x: picture.x((column.begin + column.end) / 2), y: 11 * unit, "text-anchor": "middle", "font-size": 12 * unit }, String(k + 1));
    return [
      following(live, band, (step) => (k === step - 1 && step < picture.columns.length ? `${picked} now` : picked)),
      following(live, number, faint("number", k)),
    ];
  });
}

function lanesOf(picture) {
  return picture.run.lanes.map((lane, k) => {
    const y = picture.laneY[k];
    const from = lane.begin === null ? 0 : picture.x(lane.begin);
    const to = lane.end === null ? picture.width : picture.x(lane.end);
    return shape("g", {}, shape("line", { class: "lane", x1: from, y1: y, x2: to, y2: y, "stroke-width": 2 * picture.unit }),
      shape("line", { class: "lane-grip", "data-lane": k, x1: from, y1: y, x2: to, y2: y, "stroke-width": 22 * picture.unit }));
  });
}

/** What is held so far, and fainter for how long it will be. */
function barShapes(picture, bar, key, live) {
  const [left, top, right, bottom] = bar.box;
  const rect = (css) => shape("rect", { class: css, y: top, height: bottom - top, rx: 3, fill: `url(#hatch-${key})`, "stroke-width": 1.5 * picture.unit });
  const [held, ahead] = [rect("bar"), rect("bar outcome later")];
  const set = (made, from, to) => {
    made.setAttribute("x", from);
    made.setAttribute("width", Math.max(0, to - from));
    made.setAttribute("visibility", to - from > 0.5 ? "visible" : "hidden");
  };
  live.push((step) => {
    const done = bar.begin >= step ? left : Math.min(right, Math.max(left + 4, nowX(picture, step)));
    set(held, left, done);
    set(ahead, done, right);
  });
  return [held, ahead];
}

function nowX(picture, step) {
  return step >= picture.columns.length ? Infinity : picture.seam(step);
}

function arrowShape(picture, arrow, chosen, cut, live) {
  const crossing = cut?.crossing.has(crossKey(picture, arrow));
  const channel = cut?.channels.has(crossKey(picture, arrow));
  const css = ["flight"];
  if (crossing) css.push("crossing");
  if (channel) css.push("channel");
  if (chosen && arrow.label === chosen.label && (chosen.kind === "send" || arrow.arrive_command === chosen.command)) css.push("chosen");
  const lanes = picture.run.lanes;
  const far = arrow.flying ? "on its way" : "";
  const short = arrow.stub ? 1 : undefined;
  const base = css.join(" ");
  const state = (step) => {
    if (arrow.begin >= step) return `${base} later`;
    if (arrow.arrives >= step) return `${base} flying`;
    return arrow.late ? `${base} late` : base;
  };
  const made = shape("g", {},
    shape("title", {}, plain(`${arrow.label}: ${lanes[arrow.source].name} → ${lanes[arrow.target].name} ${far}`, 300)),
    shape("path", { class: "shaft", d: shaftOf(arrow.course, picture.unit, short), "stroke-width": 2 * picture.unit }),
    shape("polygon", { class: "head", points: headOf(arrow.course, picture.unit, short) }));
  return following(live, made, state);
}

export function crossKey(picture, arrow) {
  const lanes = picture.run.lanes;
  return JSON.stringify([arrow.label, lanes[arrow.source].name, lanes[arrow.target].name]);
}

function nowLine(picture, live) {
  const made = shape("line", { class: "now-line", y1: 4, y2: picture.height, "stroke-width": 2 * picture.unit });
  live.push((step) => {
    const x = nowX(picture, step);
    made.setAttribute("visibility", x === Infinity ? "hidden" : "visible");
    if (x !== Infinity) for (const end of ["x1", "x2"]) made.setAttribute(end, x);
  });
  return made;
}

const VERBS = {
  send: "sent", deliver: "delivered", hold: "arrives and is held", release: "released", discard: "discarded",
  lose: "lost on the way", join: "joins", leave: "leaves", record: "records its state", local: "",
};

export function markWords(picture, mark) {
  const name = picture.run.lanes[mark.lane].name;
  if (mark.kind === "join" || mark.kind === "leave") return plain(`${name} ${VERBS[mark.kind]}`);
  return plain(`${name}: ${mark.label} ${VERBS[mark.kind] ?? ""} ${mark.note}`.trim(), 300);
}

function markShape(picture, mark, chosen, live) {
  const picked = chosen && chosen.command === mark.command && chosen.lane === mark.lane && chosen.label === mark.label;
  const made = shape("g", {},
    shape("title", {}, markWords(picture, mark)),
    picked ? shape("circle", { class: "ring", cx: mark.x, cy: mark.y, r: 14 * picture.unit, "stroke-width": 2.5 * picture.unit }) : null,
    signOf(mark.wrong ? "wrong" : mark.kind, mark.x, mark.y, picture.unit),
    shape("circle", { class: "grip", cx: mark.x, cy: mark.y, r: 18 * picture.unit }));
  return following(live, made, faint(`mark ${mark.wrong ? "wrong" : mark.kind}${tells(mark) ? " outcome" : ""}`, mark.step));
}

/** Whether a mark says what a protocol does, and not only what is played. */
const tells = (mark) => !["send", "lose", "join", "leave", "local", "record"].includes(mark.kind);

/** An arrival that is still to come, where what the protocol will do with it is hidden. */
function foretold(picture, mark, live) {
  const { unit } = picture;
  const made = shape("g", {},
    shape("circle", { class: "sign", cx: mark.x, cy: mark.y, r: 4 * unit, "stroke-width": 2 * unit }),
    shape("text", { class: "what", x: mark.x, y: mark.y - 13 * unit, "text-anchor": "middle", "font-size": 15 * unit }, shortened(mark.label, LONGEST)));
  return following(live, made, faint("foretold", mark.step));
}

/** The sign of a kind of mark around a point. */
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

/** Where a copy is handed on by a super peer, or begins of its sender's own accord. */
function passedOn(picture, [x, y], begin, live) {
  const made = shape("g", {},
    shape("circle", { class: "sign", cx: x, cy: y, r: 4.5 * picture.unit }), shape("circle", { class: "grip", cx: x, cy: y, r: 18 * picture.unit }));
  return following(live, made, faint("mark passed", begin));
}

function labelShape(picture, label, live) {
  const made = shape("text", { x: label.x, y: label.y, "text-anchor": "middle", "font-size": 15 * picture.unit }, label.text);
  return following(live, made, faint(`${label.mark.wrong ? "label bad" : "label"}${tells(label.mark) ? " outcome" : ""}`, label.step));
}

function whyShape(picture, bar, live) {
  const made = shape("text", { x: bar.text.x, y: bar.text.y, "font-size": 14 * picture.unit }, bar.text.text);
  return following(live, made, faint(`${bar.text.inside ? "why" : "why beside"} outcome`, bar.begin));
}

function stubShape(picture, stub, chosen) {
  const [left, top, right, bottom] = stub.box;
  const { unit } = picture;
  const names = picture.run.lanes;
  const picked = chosen?.kind === "stub" && chosen.label === stub.arrow.label && chosen.lane === stub.arrow.target;
  return shape("g", { class: `stub${picked ? " chosen" : ""}` },
    shape("title", {}, plain(`${stub.arrow.label} is on its way from ${names[stub.arrow.source].name} to ${names[stub.arrow.target].name}: drag it to where it arrives`, 300)),
    shape("rect", { class: "stub-box", x: left, y: top, width: right - left, height: bottom - top, rx: 6 * unit, "stroke-width": 1.6 * unit }),
    shape("path", { class: "stub-dots", d: dots(left + 8 * unit, stub.y, unit) }),
    shape("text", { class: "label", x: left + 20 * unit, y: stub.y + 5 * unit, "font-size": 15 * unit }, shortened(stub.text, 16)));
}

// Six dots: what can be taken up.
function dots(x, y, unit) {
  const one = (dx, dy) => `M${(x + dx * unit).toFixed(1)} ${(y + dy * unit).toFixed(1)}h0.01`;
  return [0, 5].flatMap((dx) => [-5, 0, 5].map((dy) => one(dx, dy))).join("");
}
