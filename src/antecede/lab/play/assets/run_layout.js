// Where everything of one run stands: lanes, marks, arrows, held bars, copies on their way, labels.
// Pure: data and a room to fill go in, positions come out; nothing here depends on the step shown,
// so that nothing jumps while one steps.

import { courseOf, piecesOf } from "./arrow_routing.js";
import { Placing } from "./label_placement.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

export const LONGEST = 16; // letters of a name on the picture; the whole is in the details
const BEFORE = 0.45; // steps between the left edge and the first

const paper = document.createElement("canvas").getContext("2d");

/** Width in px of a text. */
export function widthOf(text, size, weight = 400) {
  paper.font = `${weight} ${size}px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif`;
  return paper.measureText(text).width;
}

/** Number (from 0) of the step in which a time lies; -1 before the first. */
export function stepAt(columns, time) {
  let found = -1;
  columns.forEach((column, k) => column.begin <= time + 1e-6 && (found = k));
  return found;
}

export class Picture {
  /** `room`: {width, gap, unit}: px to fill, px between lanes at least, size of letters and marks. */
  constructor(run, bench, room) {
    this.run = run;
    this.columns = bench.columns;
    this.end = bench.end;
    this.unit = room.unit;
    this.taken = new Placing();
    this.rows = rowsOf(run.holds);
    this.along(room.width);
    this.across(room.gap);
    this.marks = run.marks.map((mark) => ({ ...mark, x: this.x(mark.at), y: this.laneY[mark.lane], step: stepAt(this.columns, mark.at), arrival: this.arrivesAt(mark) }));
    this.stubs = this.stubsOf();
    this.bars = run.holds.map((held) => this.barOf(held));
    this.arrows = run.arrows.map((arrow) => this.arrowOf(arrow));
    this.tag();
    this.explain();
    this.labels = [...this.marks].sort((a, b) => b.wrong - a.wrong).map((mark) => this.labelOf(mark)).filter(Boolean);
  }

  /** Whether a mark is of an arrival, and not of what an arrival sets free. */
  arrivesAt(mark) {
    return this.run.arrows.some((arrow) => !arrow.flying && arrow.target === mark.lane && arrow.arrived === mark.at && arrow.label === mark.label);
  }

  along(width) {
    const { unit, run } = this;
    const stubs = new Map();
    for (const arrow of run.arrows.filter((one) => one.flying)) {
      stubs.set(arrow.target, (stubs.get(arrow.target) ?? 0) + stubWidth(arrow.label, unit) + 6 * unit);
    }
    this.tail = (stubs.size ? Math.max(...stubs.values()) : 0) + 16 * unit;
    const longest = Math.max(0, ...run.marks.map((mark) => widthOf(shortened(mark.label, LONGEST), 15 * unit, 600)));
    const least = Math.max(32 * unit, Math.min(0.62 * longest + 14 * unit, 110 * unit));
    const steps = this.end - BEFORE;
    this.stepWidth = Math.min(150 * unit, Math.max(least, (width - this.tail - 4) / steps));
    this.width = Math.max(width, steps * this.stepWidth + this.tail + 4);
  }

  across(gap) {
    const { unit, run } = this;
    this.top = 14 * unit;
    let y = this.top + 26 * unit;
    this.laneY = [];
    run.lanes.forEach((_, lane) => {
      this.laneY.push(y);
      y += Math.max(gap, this.depth(lane) + 36 * unit);
    });
    const last = run.lanes.length - 1;
    this.height = (this.laneY[last] ?? y) + Math.max(28 * unit, this.depth(last) + 6 * unit);
  }

  /** Height of the bars below a lane. */
  depth(lane) {
    let rows = 0;
    this.run.holds.forEach((held, k) => held.lane === lane && (rows = Math.max(rows, this.rows[k] + 1)));
    return rows * 22 * this.unit + (rows ? 8 * this.unit : 0);
  }

  x(time) {
    return 2 + (time - BEFORE) * this.stepWidth;
  }

  time(x) {
    return (x - 2) / this.stepWidth + BEFORE;
  }

  /** The lane nearest to a height. */
  laneAt(y) {
    let found = 0;
    this.laneY.forEach((at, lane) => Math.abs(at - y) < Math.abs(this.laneY[found] - y) && (found = lane));
    return found;
  }

  /** Where something comes to stand that is dropped at x: before which of the steps (their number: last). */
  slotAt(x) {
    const time = this.time(x);
    const found = this.columns.findIndex((column) => time < (column.begin + column.end) / 2);
    return found < 0 ? this.columns.length : found;
  }

  /** The x between the step before and the step `slot`. */
  seam(slot) {
    if (slot >= this.columns.length) return this.x((this.columns.at(-1)?.end ?? 0) + 0.5);
    return this.x(this.columns[slot].begin - 0.5);
  }

  // Copies that have not arrived stand at the right end, beside the lane of whom they are for.
  stubsOf() {
    const { unit } = this;
    const next = new Map();
    return this.run.arrows.map((arrow) => {
      if (!arrow.flying) return null;
      const above = arrow.source < arrow.target;
      const key = `${arrow.target} ${above}`;
      const width = stubWidth(arrow.label, unit);
      const left = next.get(key) ?? this.x(this.end - 0.35);
      next.set(key, left + width + 6 * unit);
      const y = this.laneY[arrow.target] + (above ? -21 : 21) * unit;
      const box = [left, y - 12 * unit, left + width, y + 12 * unit];
      this.taken.block(box);
      return { arrow, box, x: left + width / 2, y, text: shortened(arrow.label, LONGEST) };
    });
  }

  barOf(held) {
    const { unit } = this;
    const row = this.rows[this.run.holds.indexOf(held)];
    const left = this.x(held.begin);
    const right = this.x(held.end ?? this.end - 0.4);
    const top = this.laneY[held.lane] + (10 + row * 22) * unit;
    const box = [left, top, Math.max(left + 6, right), top + 19 * unit];
    this.taken.block(box);
    return { held, box, begin: stepAt(this.columns, held.begin), end: held.end === null ? Infinity : stepAt(this.columns, held.end) };
  }

  arrowOf(arrow) {
    const stub = this.stubs[this.run.arrows.indexOf(arrow)];
    const start = [this.x(arrow.sent), this.laneY[arrow.source]];
    const end = stub ? [stub.box[0], stub.y] : [this.x(arrow.arrived), this.laneY[arrow.target]];
    const course = courseOf(start, end, this.passed(arrow, start, end), this.unit);
    for (const piece of piecesOf(course)) this.taken.line(piece);
    return {
      ...arrow,
      course,
      stub,
      begin: stepAt(this.columns, arrow.sent),
      arrives: arrow.flying ? Infinity : stepAt(this.columns, arrow.arrived),
      marked: arrow.flying || this.run.marks.some((mark) => mark.lane === arrow.target && mark.at === arrow.arrived),
      told: this.run.marks.some((mark) => mark.lane === arrow.source && mark.at === arrow.sent),
      late: this.run.marks.some((mark) => mark.wrong && mark.lane === arrow.target && mark.label === arrow.label),
    };
  }

  /** What an arrow must not seem to touch: all marks on its lanes and between, but its own ends. */
  passed(arrow, start, end) {
    const [low, high] = [arrow.source, arrow.target].sort((a, b) => a - b);
    const own = ([x, y]) => [start, end].some((one) => Math.abs(one[0] - x) < 4 && Math.abs(one[1] - y) < 4);
    return this.marks.filter((mark) => mark.lane >= low && mark.lane <= high).map((mark) => [mark.x, mark.y]).filter((point) => !own(point));
  }

  /** Lanes and marks are taken before words are placed. */
  tag() {
    const { unit } = this;
    for (const mark of this.marks) this.taken.block([mark.x - 9 * unit, mark.y - 9 * unit, mark.x + 9 * unit, mark.y + 9 * unit]);
    for (const y of this.laneY) this.taken.line([0, y, this.width, y], 0.4);
  }

  /** Write what a message waits for into its bar, or beside it. */
  explain() {
    const { unit } = this;
    const size = 14 * unit;
    for (const bar of this.bars) {
      const [left, top, right, bottom] = bar.box;
      bar.text = null;
      for (const text of whyOf(bar.held)) {
        const width = widthOf(text, size, 500) + 10 * unit;
        const inside = width <= right - left;
        const places = [[right + 2, top, right + width, bottom], [left - width - 2, top, left - 2, bottom]];
        const box = inside ? bar.box : this.taken.take(places.filter((place) => this.within(place)));
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
    const text = wordsOf(mark);
    const size = 15 * unit;
    const half = widthOf(text, size, 600) / 2 + 2 * unit;
    const bars = this.depth(mark.lane);
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
    const box = this.taken.take(candidates.filter((place) => this.within(place)));
    return box && { mark, text, x: (box[0] + box[2]) / 2, y: box[3] - 4 * unit, step: mark.step };
  }
}

function stubWidth(label, unit) {
  return widthOf(shortened(label, LONGEST), 15 * unit, 600) + 34 * unit;
}

/** What is written at a mark. */
function wordsOf(mark) {
  const name = shortened(mark.label, LONGEST);
  if (mark.wrong) return plain(`${name} ${mark.note}`, 60);
  if (mark.kind === "join") return "joins";
  if (mark.kind === "leave") return "leaves";
  if (mark.kind === "lose") return `${name} lost`;
  if (mark.kind === "discard") return plain(`${name}: ${mark.note || "discarded"}`, 40);
  if (mark.kind === "release") return plain(`${name} ${mark.note}`, 40);
  return name;
}

/** What a held message waits for: in full, and shorter. */
function whyOf(held) {
  const name = shortened(held.label, LONGEST);
  const waits = held.waits_for.map((one) => shortened(one, 24)).join(", ");
  return waits ? [`${name} waits for ${waits}`, `waits for ${waits}`, `for ${waits}`] : [`${name} is held back`, "held back"];
}

/** The row below its lane for each hold, so that bars at one time do not meet. */
function rowsOf(holds) {
  const free = new Map();
  const rows = new Array(holds.length).fill(0);
  const order = holds.map((_, k) => k).sort((a, b) => holds[a].begin - holds[b].begin);
  for (const k of order) {
    const held = holds[k];
    let row = 0;
    while ((free.get(`${held.lane} ${row}`) ?? -Infinity) > held.begin) row++;
    rows[k] = row;
    free.set(`${held.lane} ${row}`, held.end ?? Infinity);
  }
  return rows;
}
