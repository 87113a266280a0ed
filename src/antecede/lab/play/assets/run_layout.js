// Layout of one run: timelines, marks, arrows, bars of holds, copies in flight, labels.
// A pure function of the data and the available space. It does not depend on the current step, so
// elements keep their positions while the user steps.

import { findRoute, routeSegments } from "./arrow_routing.js";
import { LabelPlacement } from "./label_placement.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

export const LONGEST = 16; // maximum length of a name in the diagram; the details panel shows all of it
const BEFORE = 0.45; // steps between the left edge and the first

const paper = document.createElement("canvas").getContext("2d");

/** Return the width of a text, px. */
export function widthOf(text, size, weight = 400) {
  paper.font = `${weight} ${size}px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
  return paper.measureText(text).width;
}

/** Return the number (from 0) of the step at a time; -1 before the first. */
export function stepAt(columns, time) {
  let found = -1;
  columns.forEach((column, k) => column.begin <= time + 1e-6 && (found = k));
  return found;
}

export class RunLayout {
  /** `room`: {width, gap, unit}: available width and least timeline distance, px; scale of text and marks. */
  constructor(run, comparison, room) {
    this.run = run;
    this.columns = comparison.columns;
    this.end = comparison.end;
    this.unit = room.unit;
    this.placement = new LabelPlacement();
    this.rows = assignRows(run.holds);
    this.along(room.width);
    this.across(room.gap);
    this.marks = run.marks.map((mark) => ({ ...mark, x: this.x(mark.at), y: this.timelineY[mark.timeline], step: stepAt(this.columns, mark.at), arrival: this.arrivesAt(mark) }));
    this.stubs = this.stubsOf();
    this.bars = run.holds.map((held) => this.barOf(held));
    this.arrows = run.arrows.map((arrow) => this.arrowOf(arrow));
    this.tag();
    this.explain();
    this.labels = [...this.marks].sort((a, b) => b.wrong - a.wrong).map((mark) => this.labelOf(mark)).filter(Boolean);
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
    const min = Math.max(32 * unit, Math.min(0.62 * longest + 14 * unit, 110 * unit));
    const steps = this.end - BEFORE;
    this.stepWidth = Math.min(150 * unit, Math.max(min, (width - this.tail - 4) / steps));
    this.width = Math.max(width, steps * this.stepWidth + this.tail + 4);
  }

  across(gap) {
    const { unit, run } = this;
    this.top = 14 * unit;
    let y = this.top + 26 * unit;
    this.timelineY = [];
    run.timelines.forEach((_, timeline) => {
      this.timelineY.push(y);
      y += Math.max(gap, this.depth(timeline) + 36 * unit);
    });
    const last = run.timelines.length - 1;
    this.height = (this.timelineY[last] ?? y) + Math.max(28 * unit, this.depth(last) + 6 * unit);
  }

  /** Height of the bars below a timeline. */
  depth(timeline) {
    let rows = 0;
    this.run.holds.forEach((held, k) => held.timeline === timeline && (rows = Math.max(rows, this.rows[k] + 1)));
    return rows * 22 * this.unit + (rows ? 8 * this.unit : 0);
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
      this.placement.block(box);
      return { arrow, box, x: left + width / 2, y, text: shortened(arrow.label, LONGEST) };
    });
  }

  barOf(held) {
    const { unit } = this;
    const row = this.rows[this.run.holds.indexOf(held)];
    const left = this.x(held.begin);
    const right = this.x(held.end ?? this.end - 0.4);
    const top = this.timelineY[held.timeline] + (10 + row * 22) * unit;
    const box = [left, top, Math.max(left + 6, right), top + 19 * unit];
    this.placement.block(box);
    return { held, box, begin: stepAt(this.columns, held.begin), end: held.end === null ? Infinity : stepAt(this.columns, held.end) };
  }

  arrowOf(arrow) {
    const stub = this.stubs[this.run.arrows.indexOf(arrow)];
    const start = [this.x(arrow.sent), this.timelineY[arrow.source]];
    const end = stub ? [stub.box[0], stub.y] : [this.x(arrow.arrived), this.timelineY[arrow.target]];
    const route = findRoute(start, end, this.otherMarks(arrow, start, end), this.unit);
    for (const piece of routeSegments(route)) this.placement.addLine(piece);
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
    for (const mark of this.marks) this.placement.block([mark.x - 9 * unit, mark.y - 9 * unit, mark.x + 9 * unit, mark.y + 9 * unit]);
    for (const y of this.timelineY) this.placement.addLine([0, y, this.width, y], 0.4);
  }

  /** Place the missing causes of a hold in its bar, or beside it. */
  explain() {
    const { unit } = this;
    const size = 14 * unit;
    for (const bar of this.bars) {
      const [left, top, right, bottom] = bar.box;
      bar.text = null;
      for (const text of holdTexts(bar.held)) {
        const width = widthOf(text, size, 500) + 10 * unit;
        const inside = width <= right - left;
        const places = [[right + 2, top, right + width, bottom], [left - width - 2, top, left - 2, bottom]];
        const box = inside ? bar.box : this.placement.take(places.filter((place) => this.within(place)));
        if (!box) continue;
        bar.text = { text, x: box[0] + 5 * unit, y: top + 14.5 * unit, inside };
        break;
      }
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
    for (const base of [-13, 24, 24 + bars / unit, -29, 40 + bars / unit, -45]) {
      for (const shift of [0, half + 5 * unit, -half - 5 * unit]) {
        const [x, y] = [mark.x + shift, mark.y + base * unit];
        candidates.push([x - half, y - 12 * unit, x + half, y + 4 * unit]);
      }
    }
    for (const shift of [half + 11 * unit, -half - 11 * unit]) {
      candidates.push([mark.x + shift - half, mark.y - 8 * unit, mark.x + shift + half, mark.y + 8 * unit]);
    }
    const box = this.placement.take(candidates.filter((place) => this.within(place)));
    return box && { mark, text, x: (box[0] + box[2]) / 2, y: box[3] - 4 * unit, step: mark.step };
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
