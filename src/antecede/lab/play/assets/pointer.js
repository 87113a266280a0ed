// What is dragged and clicked on a picture: marks, copies on their way, lanes, the handles of a cut.

import { shape, signOf } from "./drawing.js";
import { listen } from "../../../core/pages/assets/gestures.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

const NEAR = 19;

/** Let the picture of `view` ({svg, scroller, picture, run}) be taken in hand. */
export function takeInHand(app, view) {
  let held = null;
  const over = () => view.svg.querySelector(".over");
  const clear = () => {
    over()?.replaceChildren();
    view.svg.classList.remove("dragging");
    held = null;
  };
  // A finger on something that can be taken up does not scroll; touch-action alone does not reach
  // shapes inside a picture in every browser.
  view.svg.addEventListener("touchstart", (event) => {
    if (event.touches.length > 1) return;
    const box = view.svg.getBoundingClientRect();
    const found = hit(app, view, event.touches[0].clientX - box.left, event.touches[0].clientY - box.top);
    if (found && found.what !== "lane") event.preventDefault();
  }, { passive: false });
  listen(view.svg, {
    grab: (x, y) => {
      held = hit(app, view, x, y);
      return held !== null;
    },
    drag: (x, y) => {
      if (!held) return;
      view.svg.classList.add("dragging");
      scrollNear(view, x);
      ghost(app, view, held, x, y);
    },
    drop: (x, y) => {
      const taken = held;
      clear();
      if (taken) put(app, view, taken, x, y);
    },
    cancelled: () => {
      clear();
      app.cut.dragged = null;
      app.redraw();
    },
    click: (x, y) => {
      clear();
      clicked(app, view, x, y);
    },
    double: (x, y) => {
      const found = hit(app, view, x, y);
      if (found?.what === "lane") app.sendForm({ from: laneName(view, found.lane), at: view.picture.slotAt(x) });
    },
    hover: (x, y) => {
      const found = hit(app, view, x, y);
      view.svg.style.cursor = !found ? "default" : found.what === "lane" ? "crosshair" : "grab";
    },
    done: clear,
  });
}

function laneName(view, lane) {
  return view.run.lanes[lane].name;
}

/** What is at a point: {what: "cut" | "stub" | "mark" | "lane", ...}, or null. */
function hit(app, view, x, y) {
  const { picture } = view;
  const near = NEAR * picture.unit;
  const handle = app.cut.handleAt(view, x, y);
  if (handle !== null) return { what: "cut", lane: handle };
  for (const stub of picture.stubs) {
    if (stub && x >= stub.box[0] - 4 && x <= stub.box[2] + 4 && y >= stub.box[1] - 4 && y <= stub.box[3] + 4) return { what: "stub", stub };
  }
  const ends = picture.arrows.filter((arrow) => !arrow.marked).map((arrow) => ({
    x: arrow.course[3][0], y: arrow.course[3][1], lane: arrow.target, label: arrow.label, kind: "passed", command: arrow.arrive_command, at: arrow.arrived,
  }));
  let best = null;
  let least = near;
  for (const mark of [...picture.marks, ...ends]) {
    const far = Math.hypot(mark.x - x, mark.y - y);
    if (far < least) [best, least] = [mark, far];
  }
  if (best) return { what: "mark", mark: best };
  const lane = picture.laneAt(y);
  if (Math.abs(picture.laneY[lane] - y) < 12 * picture.unit) return { what: "lane", lane, x };
  return null;
}

/** Whether a mark is what its action does first: what an arrival sets free can not be moved by itself. */
export function isOwn(picture, mark) {
  if (mark.command === null || mark.command === undefined) return false;
  if (mark.kind === "deliver" || mark.kind === "release") {
    return picture.arrows.some((arrow) => arrow.target === mark.lane && arrow.arrived === mark.at && arrow.label === mark.label && !arrow.flying);
  }
  return true;
}

function clicked(app, view, x, y) {
  const found = hit(app, view, x, y);
  if (found?.what === "stub") {
    const { arrow } = found.stub;
    return app.choose({ kind: "stub", label: arrow.label, lane: arrow.target, source: laneName(view, arrow.source), target: laneName(view, arrow.target) });
  }
  if (found?.what === "mark") {
    const { mark } = found;
    return app.choose({ kind: mark.kind, command: mark.command, lane: mark.lane, label: mark.label, member: laneName(view, mark.lane), run: view.run.protocol });
  }
  if (found?.what === "cut") return undefined;
  const slot = view.picture.slotAt(x);
  const column = view.picture.columns.findIndex((one) => Math.abs(view.picture.time(x) - (one.begin + one.end) / 2) <= (one.end - one.begin) / 2 + 0.5);
  app.choose(null);
  return app.goTo(column >= 0 ? column + 1 : slot);
}

/** Show where what is dragged would come to stand. */
function ghost(app, view, held, x, y) {
  const { picture } = view;
  const { unit } = picture;
  const over = view.svg.querySelector(".over");
  if (held.what === "cut") {
    app.cut.drag(view, held.lane, x);
    return;
  }
  if (held.what === "lane") {
    const to = picture.laneAt(y);
    const other = to !== held.lane;
    const end = other ? picture.laneY[to] : picture.laneY[held.lane];
    over.replaceChildren(
      shape("line", { class: "ghost-line", x1: held.x, y1: picture.laneY[held.lane], x2: x, y2: end, "stroke-width": 3 * unit }),
      signOf("send", held.x, picture.laneY[held.lane], unit),
      ...caption(picture, x, Math.min(y, end), other ? `${laneName(view, held.lane)} sends, it arrives at ${laneName(view, to)}` : `${laneName(view, held.lane)} sends here: let go, or go on to who receives`),
    );
    return;
  }
  const slot = picture.slotAt(x);
  const lane = held.what === "stub" ? held.stub.arrow.target : held.mark.lane;
  const label = held.what === "stub" ? held.stub.arrow.label : held.mark.label;
  const seam = picture.seam(slot);
  const own = held.what === "stub" || isOwn(picture, held.mark);
  const where = slot >= picture.columns.length ? "last of all" : `before step ${slot + 1}`;
  over.replaceChildren(
    shape("line", { class: "seam", x1: seam, y1: 2, x2: seam, y2: picture.height, "stroke-width": 3 * unit }),
    shape("g", { class: "ghost" }, signOf(held.what === "stub" ? "deliver" : held.mark.kind, x, picture.laneY[lane], unit * 1.3)),
    ...caption(picture, x, picture.laneY[lane] - 26 * unit, own ? `${shortened(label, 16)}: ${where}` : "the protocol decides: drag its arrival"),
  );
}

function caption(picture, x, y, text) {
  const { unit } = picture;
  const left = x > picture.width / 2;
  return [shape("text", { class: "ghost-words", x: x + (left ? -14 : 14) * unit, y: Math.max(16 * unit, y), "text-anchor": left ? "end" : "start", "font-size": 15 * unit }, plain(text))];
}

function scrollNear(view, x) {
  const { scroller } = view;
  const at = x - scroller.scrollLeft;
  if (at < 30) scroller.scrollLeft -= 14;
  else if (at > scroller.clientWidth - 30) scroller.scrollLeft += 14;
}

function put(app, view, held, x, y) {
  const { picture } = view;
  const slot = picture.slotAt(x);
  if (held.what === "cut") return app.cut.drop(view, held.lane, x);
  if (held.what === "lane") {
    const to = picture.laneAt(y);
    const given = { from: laneName(view, held.lane), at: picture.slotAt(held.x) };
    return app.sendForm(to === held.lane ? given : { ...given, arrives: laneName(view, to), arrivesAt: Math.max(slot, given.at) });
  }
  if (held.what === "stub") {
    const { arrow } = held.stub;
    return app.arrive(laneName(view, arrow.target), arrow.label, slot);
  }
  const { mark } = held;
  if (!isOwn(picture, mark)) {
    return app.say(`${laneName(view, mark.lane)} delivers ${mark.label} when what it waits for is there: the protocol decides when. Drag its arrival instead.`, "refused");
  }
  return app.moveTo(mark.command, slot);
}
