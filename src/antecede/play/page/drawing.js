// A picture as elements of SVG, and which of them are still to come at a step.

import { headOf, shaftOf } from "./courses.js";
import { plain, shortened } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

export function shape(name, given = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** What is drawn is redrawn: `step` steps are done; `app.chosen` is marked. */
export function drawInto(svg, picture, step, key, chosen, cut) {
  svg.setAttribute("viewBox", `0 0 ${picture.width} ${picture.height}`);
  svg.setAttribute("width", picture.width);
  svg.setAttribute("height", picture.height);
  svg.replaceChildren(
    hatching(key, picture.unit),
    ...gridOf(picture, step, chosen),
    ...lanesOf(picture),
    ...picture.bars.flatMap((bar) => barShapes(picture, bar, step, key)),
    ...picture.arrows.map((arrow) => arrowShape(picture, arrow, step, chosen, cut)),
    ...nowOf(picture, step),
    ...picture.marks.map((mark) => markShape(picture, mark, step, chosen)),
    ...picture.arrows.filter((arrow) => !arrow.marked).map((arrow) => passedOn(picture, arrow, step)),
    ...picture.labels.map((label) => labelShape(picture, label, step)),
    ...picture.bars.filter((bar) => bar.text).map((bar) => whyShape(picture, bar, step)),
    ...picture.stubs.filter(Boolean).map((stub) => stubShape(picture, stub, step, chosen)),
    shape("g", { class: "over" }),
  );
}

function hatching(key, unit) {
  return shape("defs", {},
    shape("pattern", { id: `hatch-${key}`, width: 8 * unit, height: 8 * unit, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      shape("rect", { class: "hatch-back", width: 8 * unit, height: 8 * unit }),
      shape("rect", { class: "hatch-line", width: 2.5 * unit, height: 8 * unit })));
}

function gridOf(picture, step, chosen) {
  const { unit } = picture;
  return picture.columns.flatMap((column, k) => {
    const [left, right] = [picture.seam(k), picture.x(column.end + 0.5)];
    const now = k === step - 1 && step < picture.columns.length;
    const picked = chosen?.command === column.command;
    return [
      shape("rect", { class: `column${now ? " now" : ""}${picked ? " picked" : ""}`, x: left, y: 0, width: right - left, height: picture.height }),
      shape("text", { class: `number${k >= step ? " later" : ""}`, x: picture.x((column.begin + column.end) / 2), y: 11 * unit, "text-anchor": "middle", "font-size": 12 * unit }, String(k + 1)),
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

function barShapes(picture, bar, step, key) {
  const [left, top, right, bottom] = bar.box;
  const now = nowX(picture, step);
  const rect = (from, to, css) => to - from > 0.5 &&
    shape("rect", { class: css, x: from, y: top, width: to - from, height: bottom - top, rx: 3, fill: `url(#hatch-${key})`, "stroke-width": 1.5 * picture.unit });
  const done = bar.begin >= step ? left : Math.min(right, Math.max(left + 4, now));
  return [rect(left, done, "bar"), rect(done, right, "bar later")].filter(Boolean);
}

function nowX(picture, step) {
  return step >= picture.columns.length ? Infinity : picture.seam(step);
}

function arrowShape(picture, arrow, step, chosen, cut) {
  const crossing = cut?.crossing.has(crossKey(picture, arrow));
  const channel = cut?.channels.has(crossKey(picture, arrow));
  const css = ["flight"];
  if (arrow.begin >= step) css.push("later");
  else if (arrow.arrives >= step) css.push("flying");
  if (arrow.late && arrow.arrives < step) css.push("late");
  if (crossing) css.push("crossing");
  if (channel) css.push("channel");
  if (chosen && arrow.label === chosen.label && (chosen.kind === "send" || arrow.arrive_command === chosen.command)) css.push("chosen");
  const lanes = picture.run.lanes;
  const far = arrow.flying ? "on its way" : "";
  const short = arrow.stub ? 1 : undefined;
  return shape("g", { class: css.join(" ") },
    shape("title", {}, plain(`${arrow.label}: ${lanes[arrow.source].name} → ${lanes[arrow.target].name} ${far}`, 300)),
    shape("path", { class: "shaft", d: shaftOf(arrow.course, picture.unit, short), "stroke-width": 2 * picture.unit }),
    shape("polygon", { class: "head", points: headOf(arrow.course, picture.unit, short) }));
}

export function crossKey(picture, arrow) {
  const lanes = picture.run.lanes;
  return JSON.stringify([arrow.label, lanes[arrow.source].name, lanes[arrow.target].name]);
}

function nowOf(picture, step) {
  if (step >= picture.columns.length) return [];
  const x = nowX(picture, step);
  return [shape("line", { class: "now-line", x1: x, y1: 4, x2: x, y2: picture.height, "stroke-width": 2 * picture.unit })];
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

function markShape(picture, mark, step, chosen) {
  const css = ["mark", mark.wrong ? "wrong" : mark.kind];
  if (mark.step >= step) css.push("later");
  const picked = chosen && chosen.command === mark.command && chosen.lane === mark.lane && chosen.label === mark.label;
  return shape("g", { class: css.join(" ") },
    shape("title", {}, markWords(picture, mark)),
    picked ? shape("circle", { class: "ring", cx: mark.x, cy: mark.y, r: 14 * picture.unit, "stroke-width": 2.5 * picture.unit }) : null,
    signOf(mark.wrong ? "wrong" : mark.kind, mark.x, mark.y, picture.unit),
    shape("circle", { class: "grip", cx: mark.x, cy: mark.y, r: 18 * picture.unit }));
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

function passedOn(picture, arrow, step) {
  const [x, y] = arrow.course[3];
  return shape("g", { class: `mark passed${arrow.arrives >= step ? " later" : ""}` },
    shape("circle", { class: "sign", cx: x, cy: y, r: 4.5 * picture.unit }), shape("circle", { class: "grip", cx: x, cy: y, r: 18 * picture.unit }));
}

function labelShape(picture, label, step) {
  const css = ["label"];
  if (label.mark.wrong) css.push("bad");
  if (label.step >= step) css.push("later");
  return shape("text", { class: css.join(" "), x: label.x, y: label.y, "text-anchor": "middle", "font-size": 15 * picture.unit }, label.text);
}

function whyShape(picture, bar, step) {
  const css = ["why"];
  if (!bar.text.inside) css.push("beside");
  if (bar.begin >= step) css.push("later");
  return shape("text", { class: css.join(" "), x: bar.text.x, y: bar.text.y, "font-size": 14 * picture.unit }, bar.text.text);
}

function stubShape(picture, stub, step, chosen) {
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
