// Layout of one run: timelines, marks, arrows, bars of holds, copies in flight, labels.
// A pure function of the data and the available space. It does not depend on the current step, so
// elements keep their positions while the user steps.

import { findRoute, routeSegments } from "./arrow_routing.js";
import { LabelPlacement, crosses } from "./label_placement.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

export const LONGEST = 16; // maximum length of a name in the diagram; the details panel shows all of it
const BAR = 23; // distance of the bars below a timeline, px
const PIECES = 16; // straight segments of an arrow
const BEFORE = 0.45; // steps between the left edge and the first

const paper = document.createElement("canvas").getContext("2d");
const widths = new Map();

/** Return the width of a text, px. */
export function widthOf(text, size, weight = 400) {
  const key = `${weight} ${text}`;
  if (!widths.has(key)) {
    if (widths.size > 50_000) widths.clear();
    paper.font = `${weight} 100px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
    widths.set(key, paper.measureText(text).width);
  }
  return (widths.get(key) * size) / 100;
}

/** Return the number (from 0) of the step at a time; -1 before the first. */
export function stepAt(columns, time) {
  let found = -1;
  columns.forEach((column, k) => column.begin <= time + 1e-6 && (found = k));
  return found;
}

export class RunLayout {
  /** Compute the size; `place` computes the rest.
   *
   * `room`: {width, gap, unit, needs, head, numbers}: available width and least timeline distance, px;
   * scale of text and marks; heights beside the timelines and above the first, px; font size of the
   * numbers of the steps, 0: no numbers.
   */
  constructor(run, comparison, room) {
    this.run = run;
    this.columns = comparison.columns;
    this.end = comparison.end;
    this.unit = room.unit;
    this.numbers = room.numbers;
    this.rows = assignRows(run.holds);
    this.along(room.width);
    this.across(room);
  }

  place() {
    const { run } = this;
    this.marks = run.marks.map((mark) => ({ ...mark, x: this.x(mark.at), y: this.timelineY[mark.timeline], step: stepAt(this.columns, mark.at), arrival: this.arrivesAt(mark) }));
    this.stubs = this.stubsOf();
    this.bars = run.holds.map((held) => this.barOf(held));
    this.arrows = run.arrows.map((arrow) => this.arrowOf(arrow));
    this.placeTexts();
    this.bendArrows();
    return this;
  }

  placeTexts() {
    this.placement = new LabelPlacement(3.5 * this.unit);
    for (const { box } of [...this.bars, ...this.stubs.filter(Boolean)]) this.placement.block(box);
    for (const arrow of this.arrows) for (const piece of routeSegments(arrow.route, PIECES)) this.placement.addLine(piece);
    this.tag();
    this.explain();
    this.labels = [...this.marks].sort((a, b) => b.wrong - a.wrong).map((mark) => this.labelOf(mark)).filter(Boolean);
  }

  /** Bend arrows that cross a text, where another route crosses none. */
  bendArrows() {
    const texts = [...this.labels, ...this.bars.map((bar) => bar.text).filter(Boolean)].map((one) => one.box);
    const isFree = (route) => !routeSegments(route, PIECES).some((piece) => texts.some((box) => crosses(box, piece)));
    for (const arrow of this.arrows.filter((one) => !isFree(one.route))) {
      const [start, , , end] = arrow.route;
      arrow.route = findRoute(start, end, this.otherMarks(arrow, start, end), this.unit, isFree) ?? arrow.route;
    }
  }

  /** Return whether a mark is an arrival, not a delivery that another arrival released. */
  arrivesAt(mark) {
    return this.run.arrows.some((arrow) => !arrow.in_flight && arrow.target === mark.timeline && arrow.arrived === mark.at && arrow.label === mark.label);
  }

  along(width) {
    const { unit, run } = this;
    const stubs = new Map();
    for (const arrow of run.arrows.filter((one) => one.in_flight)) {
      stubs.set(arrow.target, (stubs.get(arrow.target) ?? 0) + stubWidth(arrow.label, unit) + 6 * unit);
    }
    this.tail = (stubs.size ? Math.max(...stubs.values()) : 0) + 16 * unit;
    const longest = Math.max(0, ...run.marks.map((mark) => widthOf(shortened(mark.label, LONGEST), 15 * unit, 600)));
    const min = Math.max(25 * unit, Math.min(0.62 * longest + 14 * unit, 110 * unit));
    const steps = this.end - BEFORE;
    this.stepWidth = Math.min(150 * unit, Math.max(min, (width - this.tail - 4) / steps));
    this.width = Math.max(width, steps * this.stepWidth + this.tail + 4);
  }

  across({ gap, needs, head }) {
    const { unit, run } = this;
    this.top = this.numbers * 1.2;
    const need = (timeline) => needs?.[timeline] ?? 0;
    let y = Math.max(this.top + 26 * unit, head + need(0) / 2);
    this.timelineY = [];
    run.timelines.forEach((_, timeline) => {
      this.timelineY.push(y);
      y += Math.max(gap, this.depth(timeline) + 36 * unit, (need(timeline) + need(timeline + 1)) / 2);
    });
    const last = run.timelines.length - 1;
    this.height = (this.timelineY[last] ?? y) + Math.max((run.marks.some((mark) => mark.wrong && mark.timeline === last) ? 28 : 17) * unit, this.depth(last) + 6 * unit, need(last) / 2);
  }

  /** Height of the bars below a timeline. */
  depth(timeline) {
    let rows = 0;
    this.run.holds.forEach((held, k) => held.timeline === timeline && (rows = Math.max(rows, this.rows[k] + 1)));
    return rows * BAR * this.unit + (rows ? 8 * this.unit : 0);
  }

  x(time) {
    return 2 + (time - BEFORE) * this.stepWidth;
  }

  time(x) {
    return (x - 2) / this.stepWidth + BEFORE;
  }

  /** Return the timeline nearest to a y coordinate. */
  timelineAt(y) {
    let found = 0;
    this.timelineY.forEach((at, timeline) => Math.abs(at - y) < Math.abs(this.timelineY[found] - y) && (found = timeline));
    return found;
  }

  /** Return the step before which a drop at x inserts; the number of steps means the end. */
  slotAt(x) {
    const time = this.time(x);
    const found = this.columns.findIndex((column) => time < (column.begin + column.end) / 2);
    return found < 0 ? this.columns.length : found;
  }

  /** Return the x between a step and the step before it. */
  seam(slot) {
    if (slot >= this.columns.length) return this.x((this.columns.at(-1)?.end ?? 0) + 0.5);
    return this.x(this.columns[slot].begin - 0.5);
  }

  // Copies in flight are drawn at the right end, next to the timeline of their receiver.
  stubsOf() {
    const { unit } = this;
    const next = new Map();
    return this.run.arrows.map((arrow) => {
      if (!arrow.in_flight) return null;
      const above = arrow.source < arrow.target;
      const key = `${arrow.target} ${above}`;
      const width = stubWidth(arrow.label, unit);
      const left = next.get(key) ?? this.x(this.end - 0.35);
      next.set(key, left + width + 6 * unit);
      const y = this.timelineY[arrow.target] + (above ? -21 : 21) * unit;
      const box = [left, y - 12 * unit, left + width, y + 12 * unit];
      return { arrow, box, x: left + width / 2, y, text: shortened(arrow.label, LONGEST) };
    });
  }

  barOf(held) {
    const { unit } = this;
    const row = this.rows[this.run.holds.indexOf(held)];
    const left = this.x(held.begin);
    const right = this.x(held.end ?? this.end - 0.4);
    const top = this.timelineY[held.timeline] + (10 + row * BAR) * unit;
    const box = [left, top, Math.max(left + 6, right), top + 20 * unit];
    return { held, box, begin: stepAt(this.columns, held.begin), end: held.end === null ? Infinity : stepAt(this.columns, held.end) };
  }

  arrowOf(arrow) {
    const stub = this.stubs[this.run.arrows.indexOf(arrow)];
    const start = [this.x(arrow.sent), this.timelineY[arrow.source]];
    const end = stub ? [stub.box[0], stub.y] : [this.x(arrow.arrived), this.timelineY[arrow.target]];
    const route = findRoute(start, end, this.otherMarks(arrow, start, end), this.unit);
    return {
      ...arrow,
      route,
      stub,
      begin: stepAt(this.columns, arrow.sent),
      arrives: arrow.in_flight ? Infinity : stepAt(this.columns, arrow.arrived),
      marked: arrow.in_flight || this.run.marks.some((mark) => mark.timeline === arrow.target && mark.at === arrow.arrived),
      hasSend: this.run.marks.some((mark) => mark.timeline === arrow.source && mark.at === arrow.sent),
      late: this.run.marks.some((mark) => mark.wrong && mark.timeline === arrow.target && mark.label === arrow.label),
    };
  }

  /** Return the marks on and between an arrow's timelines, without its own ends. */
  otherMarks(arrow, start, end) {
    const [low, high] = [arrow.source, arrow.target].sort((a, b) => a - b);
    const own = ([x, y]) => [start, end].some((one) => Math.abs(one[0] - x) < 4 && Math.abs(one[1] - y) < 4);
    return this.marks.filter((mark) => mark.timeline >= low && mark.timeline <= high).map((mark) => [mark.x, mark.y]).filter((point) => !own(point));
  }

  /** Reserve the space of timelines and marks before labels are placed. */
  tag() {
    const { unit } = this;
    for (const mark of this.marks) this.placement.block([mark.x - 9 * unit, mark.y - 8.9 * unit, mark.x + 9 * unit, mark.y + 8.9 * unit]);
    for (const y of this.timelineY) this.placement.addLine([0, y, this.width, y], 0.4);
  }

  /** Place the missing causes of a hold where no arrow crosses them: in its bar, or beside it. */
  explain() {
    const { unit } = this;
    for (const bar of this.bars) {
      const [left, top, right, bottom] = bar.box;
      let min = Infinity;
      bar.text = null;
      for (const text of holdTexts(bar.held)) {
        const width = widthOf(text, 15 * unit, 500) + 10 * unit;
        const boxes = [];
        for (let x = left; x + width <= right; x += 4) boxes.push([x, top, x + width, bottom]);
        const inside = boxes.length;
        for (const [x, y] of [[right + 2, top], [left - width - 2, top]]) boxes.push([x, y, x + width, y + bottom - top]);
        boxes.forEach((box, k) => {
          if (min === 0 || (k >= inside && (!this.within(box) || this.placement.isTaken(box)))) return;
          const crossed = this.placement.crossed(box, min);
          if (crossed < min) [min, bar.text] = [crossed, { text, box, x: box[0] + 5 * unit, y: top + 15.5 * unit, inside: k < inside }];
        });
      }
      if (bar.text && !bar.text.inside) this.placement.block(bar.text.box);
    }
  }

  within([left, top, right, bottom]) {
    return left >= 0 && right <= this.width && top >= this.top - 6 * this.unit && bottom <= this.height;
  }

  labelOf(mark) {
    const { unit } = this;
    const text = labelText(mark);
    const size = 15 * unit;
    const half = widthOf(text, size, 600) / 2 + 2 * unit;
    const bars = this.depth(mark.timeline);
    const candidates = [];
    const add = (x, y, cost) => {
      const place = [x - half, y - 12 * unit, x + half, y + 4 * unit];
      if (this.within(place)) candidates.push([place, cost]);
    };
    for (const [base, cost] of [[-13, 0], [24, 0.03], [24 + bars / unit, 0.2], [-29, 0.7], [40 + bars / unit, 0.7], [-45, 1.2]]) {
      for (const [shift, more] of [[0, 0], [half + 5 * unit, 0.05], [-half - 5 * unit, 0.05], [half / 2, 0.1], [-half / 2, 0.1]]) add(mark.x + shift, mark.y + base * unit, cost + more);
    }
    for (const shift of [half + 11 * unit, -half - 11 * unit]) add(mark.x + shift, mark.y + 4 * unit, 0.5);
    const box = this.placement.take(candidates.map(([place]) => place), candidates.map(([, cost]) => cost));
    return box && { mark, text, box, x: (box[0] + box[2]) / 2, y: box[3] - 4 * unit, step: mark.step };
  }
}

function stubWidth(label, unit) {
  return widthOf(shortened(label, LONGEST), 15 * unit, 600) + 34 * unit;
}

/** Return the label of a mark. */
function labelText(mark) {
  const name = shortened(mark.label, LONGEST);
  if (mark.wrong) return plain(`${name} ${mark.note}`, 60);
  if (mark.kind === "join") return "joins";
  if (mark.kind === "leave") return "leaves";
  if (mark.kind === "lose") return `${name} lost`;
  if (mark.kind === "discard") return plain(`${name}: ${mark.note || "discarded"}`, 40);
  if (mark.kind === "release") return plain(`${name} ${mark.note}`, 40);
  return name;
}

/** Return the text of a hold, longest first. */
function holdTexts(held) {
  const name = shortened(held.label, LONGEST);
  const waits = held.waits_for.map((one) => shortened(one, 24)).join(", ");
  return waits ? [`${name} waits for ${waits}`, `waits for ${waits}`, `for ${waits}`] : [`${name} is held back`, "held back"];
}

/** Return a row below the timeline for each hold; bars at the same time get different rows. */
function assignRows(holds) {
  const free = new Map();
  const rows = new Array(holds.length).fill(0);
  const order = holds.map((_, k) => k).sort((a, b) => holds[a].begin - holds[b].begin);
  for (const k of order) {
    const held = holds[k];
    let row = 0;
    while ((free.get(`${held.timeline} ${row}`) ?? -Infinity) > held.begin) row++;
    rows[k] = row;
    free.set(`${held.timeline} ${row}`, held.end ?? Infinity);
  }
  return rows;
}
