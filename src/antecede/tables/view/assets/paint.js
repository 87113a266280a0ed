// Painter of a render model into a 2D context: a canvas, or an SVG writer. Independent of the page.

import { ERROR, REPEATED_COPY, NOT_RECEIVED, REPEATED, UNDELIVERED } from "./render_model.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

export const THEMES = {
  light: {
    back: "#ffffff", stripe: "#f6f7f9", ink: "#1b2430", soft: "#5c6778", line: "#cdd3dc",
    grid: "#e9ecf1", past: "#0060a8", future: "#c24a00", dim: "#b9c1cd", wrong: "#b3008f", broken: "#c8102e",
    held: "#e69f00", warning: "#9a5b00", chosen: "#000000", match: "#8a6d00", halo: "#ffffff",
    hues: [
      "#085dc7", "#159425", "#835ed8", "#7f5c1d", "#037465", "#e25d1d", "#0d5279", "#c65cbf", "#275b0e", "#1d8ef5",
      "#88194a", "#689694", "#4433aa", "#a28b23", "#731a8a", "#bb7584", "#011e8c", "#645e7d", "#620b05", "#52134f",
    ],
  },
  dark: {
    back: "#12161c", stripe: "#171c24", ink: "#eef2f7", soft: "#9aa6b6", line: "#3a4453",
    grid: "#222933", past: "#56b4ff", future: "#ff9a4d", dim: "#465061", wrong: "#ff7ae0", broken: "#ff5c5c",
    held: "#f0b429", warning: "#f0b429", chosen: "#ffffff", match: "#ffe14d", halo: "#12161c",
    hues: [
      "#069ce4", "#3cc96a", "#b99cd8", "#ea952d", "#24c1c6", "#c93f76", "#93cafb", "#897c05", "#616ae2", "#b5ccad",
      "#a550be", "#f6e12b", "#228a8d", "#f8acb5", "#159425", "#bf5914", "#27fdf7", "#827392", "#8dfc8e", "#8a9877",
    ],
  },
};
export const TOP = 30;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const SINGLY = 2500; // maximum of events in view with a mark each
const MARGIN = 60; // pixels; lines are clipped this far outside of the view
const BIN = 5; // pixels; width of a bar above that maximum

/** Draw everything; return counts: { events, lines, drawn, singly }. */
export function paint(ctx, model, view, theme, { lines = 4000 } = {}) {
  const job = new Painter(ctx, model, view, theme);
  ctx.fillStyle = theme.back;
  ctx.fillRect(0, 0, view.width, view.height);
  job.grid();
  job.drawClipped(() => {
    job.drawTimelines();
    job.spans();
    job.holds(lines);
    job.messages(lines);
    job.inTransit();
    job.chain();
    job.events();
    job.selection();
  });
  job.header();
  job.names();
  return job.stats;
}

class Painter {
  constructor(ctx, model, view, theme) {
    this.ctx = ctx;
    this.model = model;
    this.view = view;
    this.theme = theme;
    this.values = model.axis.values;
    this.scale = (view.width - view.left) / (view.x1 - view.x0);
    this.first = Math.max(0, Math.floor(view.y / view.timelineHeight));
    this.last = Math.min(
      model.timelines.list.length - 1,
      Math.floor((view.y + view.height - TOP) / view.timelineHeight),
    );
    this.text = view.text ?? 1;
    this.radius = Math.max(1.2, Math.min(5 * this.text, view.timelineHeight * 0.24));
    this.thin = 1 / (view.ratio ?? 1);
    this.stats = { events: 0, lines: 0, drawn: 0, singly: true, timelines: this.last - this.first + 1 };
  }

  font(size) {
    return `${size * this.text}px ${FONT}`;
  }

  x(row) {
    return this.view.left + (this.values[row] - this.view.x0) * this.scale;
  }

  y(timeline) {
    return TOP + (timeline + 0.5) * this.view.timelineHeight - this.view.y;
  }

  /** Return the y of a row: its timeline's, shifted if several rows share a place. */
  rowY(row) {
    return this.y(this.model.timeline[row]) + shiftOf(this.model, this.view, row);
  }

  drawClipped(work) {
    const { ctx, view } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(view.left, TOP, view.width - view.left, view.height - TOP);
    ctx.clip();
    work();
    ctx.restore();
  }

  // -- background ---------------------------------------------------------------------------

  grid() {
    const { ctx, view, theme } = this;
    ctx.fillStyle = theme.stripe;
    if (view.timelineHeight >= 9) {
      for (let timeline = this.first; timeline <= this.last; timeline++) {
        if (timeline % 2) ctx.fillRect(0, this.y(timeline) - view.timelineHeight / 2, view.width, view.timelineHeight);
      }
    }
    this.step = this.model.axis.step(Math.max(1e-9, 110 / this.scale));
    this.ticks = [];
    const offset = this.origin(this.step);
    const begin = Math.ceil((view.x0 - offset) / this.step);
    for (let k = begin; k * this.step + offset <= view.x1 && this.ticks.length < 100; k++) {
      this.ticks.push(k * this.step + offset);
    }
    ctx.strokeStyle = theme.grid;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const value of this.ticks) {
      const x = Math.round(view.left + (value - view.x0) * this.scale) + 0.5;
      ctx.moveTo(x, TOP);
      ctx.lineTo(x, view.height);
    }
    ctx.stroke();
  }

  /** Return an offset that puts ticks at round times of the clock. */
  origin(step) {
    const { axis } = this.model;
    if (!axis.isTimed) return 0;
    const whole = BigInt(Math.max(1, Math.round(step)));
    return -Number(((axis.base % whole) + whole) % whole);
  }

  drawTimelines() {
    const { ctx, view, model, theme } = this;
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let timeline = this.first; timeline <= this.last; timeline++) {
      const begin = model.start[timeline];
      const end = model.start[timeline + 1] - 1;
      if (begin > end) continue;
      const y = Math.round(this.y(timeline)) + 0.5;
      ctx.moveTo(Math.max(view.left, this.x(model.rows[begin])), y);
      ctx.lineTo(Math.min(view.width, this.x(model.rows[end])), y);
    }
    ctx.stroke();
  }

  // -- bars ---------------------------------------------------------------------------------

  spans() {
    const { ctx, model, view } = this;
    if (!model.lasts || !model.axis.isOfSpans) return;
    const height = Math.max(2, view.timelineHeight * 0.42);
    for (let timeline = this.first; timeline <= this.last; timeline++) {
      const hue = this.timelineHue(timeline);
      const y = this.y(timeline) - height / 2;
      let until = -Infinity;
      for (let at = model.start[timeline]; at < model.start[timeline + 1]; at++) {
        const row = model.rows[at];
        if (this.values[row] > view.x1) break;
        if (!(model.endOf(row) >= view.x0)) continue;
        const x = Math.max(view.left - 2, this.x(row));
        const end = Math.min(view.width + 2, view.left + (model.endOf(row) - view.x0) * this.scale);
        const wrong = model.severity[row] === ERROR;
        if (end - x < 1 && end <= until && !wrong) continue; // covered by an earlier span
        until = Math.max(until, end);
        ctx.fillStyle = wrong ? this.theme.broken : hue;
        ctx.globalAlpha = model.inChain?.[row] ? 0.4 : this.isDimmed(row) ? 0.08 : 0.28;
        ctx.fillRect(x, y, Math.max(1, end - x), height);
      }
    }
    ctx.globalAlpha = 1;
  }

  /** Draw bars from receipt to delivery; without a delivery they are open at the end. */
  holds(budget) {
    const { ctx, model, view, theme } = this;
    const height = Math.max(2, Math.min(11, view.timelineHeight * 0.5));
    let drawn = 0;
    ctx.fillStyle = theme.held;
    for (const row of model.holds) {
      const timeline = model.timeline[row];
      if (timeline < this.first || timeline > this.last) continue;
      const never = model.marks[row] & UNDELIVERED;
      const begin = never ? row : model.received[row];
      const end = never ? view.x1 + 1 : this.values[row];
      // On an axis of steps, a delivery right after its receipt was not held.
      if (!model.axis.isTimed && end - this.values[begin] <= 1) continue;
      if (end < view.x0 || this.values[begin] > view.x1) continue;
      const x = Math.max(view.left - 5, this.x(begin));
      const width = Math.min(view.width + 5, view.left + (end - view.x0) * this.scale) - x;
      if (width < 1 || drawn++ > budget) continue;
      ctx.globalAlpha = this.isDimmed(row) ? 0.16 : never ? 0.35 : 0.62;
      ctx.fillRect(x, this.y(timeline) - height / 2, width, height);
      if (width > 14 && view.timelineHeight > 13) this.hatch(x, this.y(timeline) - height / 2, width, height);
    }
    ctx.globalAlpha = 1;
  }

  /** Hatch a bar, so that it is distinguishable without colour. */
  hatch(x, y, width, height) {
    const { ctx, theme } = this;
    ctx.strokeStyle = theme.back;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let at = x + 4; at < x + width - 2; at += 7) {
      ctx.moveTo(at, y + height);
      ctx.lineTo(at + 3, y);
    }
    ctx.stroke();
  }

  // -- lines --------------------------------------------------------------------------------

  messages(budget) {
    const visible = this.inView();
    const keep = budget / Math.max(1, visible.length);
    const limit = keep >= 1 ? 4294967296 : keep * 4294967296;
    const sets = { plain: [], dim: [], past: [], future: [], wrong: [], again: [] };
    for (const k of visible) {
      const set = this.setOf(k);
      if (this.model.weight[k] >= limit) continue;
      sets[set].push(k);
    }
    this.stats.lines = visible.length;
    this.stats.drawn = Object.values(sets).reduce((sum, set) => sum + set.length, 0);
    const arrows = this.stats.drawn <= Math.min(700, this.view.width / 2) && this.view.timelineHeight >= 9;
    const strong = Math.max(0.16, Math.min(0.95, 500 / Math.max(1, this.stats.drawn)));
    this.byHue(sets.plain, strong, arrows);
    // Faint, as thousands of lines would cover the events.
    this.lineSet(sets.dim, this.theme.dim, Math.max(0.05, Math.min(0.45, 250 / Math.max(1, sets.dim.length))), [], 1, false);
    this.lineSet(sets.again, this.theme.soft, 0.9, [2, 3], 1, arrows);
    this.lineSet(sets.wrong, this.theme.wrong, Math.max(0.12, Math.min(0.95, 200 / Math.max(1, sets.wrong.length))), [7, 3, 2, 3], 1.6, arrows);
    this.lineSet(sets.past, this.theme.past, 1, [], 1.7, arrows);
    this.lineSet(sets.future, this.theme.future, 1, [6, 3], 1.7, arrows);
  }

  /** Return the indices of the lines that cross the view. */
  inView() {
    const { model, view, values } = this;
    const found = [];
    const { from, to, timeline } = model;
    for (let k = 0; k < from.length; k++) {
      const a = timeline[from[k]];
      const b = timeline[to[k]];
      if (a < 0 || b < 0) continue;
      if ((a < this.first && b < this.first) || (a > this.last && b > this.last)) continue;
      const x = values[from[k]];
      const z = values[to[k]];
      if ((x < view.x0 && z < view.x0) || (x > view.x1 && z > view.x1)) continue;
      found.push(k);
    }
    return found;
  }

  setOf(k) {
    const { model } = this;
    const a = model.from[k];
    const b = model.to[k];
    if (model.chain) return "dim";
    if (model.past) {
      const self = model.chosen;
      if (model.past[a] && (model.past[b] || b === self)) return "past";
      if ((model.future[a] || a === self) && model.future[b]) return "future";
      return "dim";
    }
    if (model.matches && !(model.matches[a] || model.matches[b])) return "dim";
    if (this.values[a] > this.values[b]) return "wrong";
    return model.sort[k] === REPEATED ? "again" : "plain";
  }

  /** Draw copies that had not arrived at the end: a line that stops before the receiver. */
  inTransit() {
    const { ctx, model, view, theme } = this;
    ctx.font = this.font(11);
    ctx.textBaseline = "middle";
    for (const { row, member } of model.meta.in_transit ?? []) {
      const to = model.timelines.list.findIndex((one) => one.members.some((k) => model.timelines.names[k] === member));
      if (to < 0 || model.timeline[row] < 0) continue;
      const [x, y] = [this.x(row), this.rowY(row)];
      const end = view.left + (model.high - view.x0) * this.scale;
      const [z, w] = [x + Math.max(40, (end - x) * 0.6), y + (this.y(to) - y) * 0.85];
      ctx.strokeStyle = theme.wrong;
      ctx.lineWidth = 1.4;
      ctx.setLineDash([3, 3]);
      ctx.beginPath();
      ctx.moveTo(x, y);
      ctx.lineTo(z, w);
      ctx.stroke();
      ctx.setLineDash([]);
      const backwards = z + 130 * this.text > view.width;
      this.write(plain(`${model.ids.at(row)} in transit to ${member}`, 60), z + (backwards ? -4 : 4), w, theme.wrong, backwards ? "right" : "left");
    }
  }

  /** Draw the shortest chain between two selected events as bold arrows. */
  chain() {
    const { ctx, model, theme } = this;
    const { chain } = model;
    if (!chain) return;
    ctx.strokeStyle = ctx.fillStyle = theme.chosen;
    ctx.lineWidth = 2.6;
    for (let k = 1; k < chain.length; k++) {
      const [a, b] = [chain[k - 1], chain[k]];
      if (!(model.timeline[a] >= 0 && model.timeline[b] >= 0)) continue;
      ctx.setLineDash(this.values[a] > this.values[b] ? [7, 3, 2, 3] : []);
      ctx.beginPath();
      this.drawLine(a, b);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.beginPath();
      this.drawArrowHead(a, b);
      ctx.fill();
    }
  }

  byHue(set, alpha, arrows) {
    const { model, theme } = this;
    const hues = theme.hues.map(() => []);
    for (const k of set) hues[model.member[model.from[k]] % hues.length].push(k);
    hues.forEach((part, hue) => this.lineSet(part, theme.hues[hue], alpha, [], set.length > 200 ? this.thin : 1.1, arrows));
  }

  lineSet(set, colour, alpha, dash, width, arrows) {
    if (!set.length) return;
    const { ctx } = this;
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.globalAlpha = alpha;
    // Without a graphics card, lines wider than a pixel are five times as slow.
    ctx.lineWidth = set.length > 200 ? this.thin : width;
    ctx.setLineDash(set.length > 600 ? [] : dash);
    ctx.beginPath();
    let count = 0;
    for (const k of set) {
      this.drawLine(this.model.from[k], this.model.to[k]);
      if (++count % 64 === 0) {
        ctx.stroke(); // long paths are slow without a graphics card
        ctx.beginPath();
      }
    }
    ctx.stroke();
    ctx.setLineDash([]);
    if (arrows) {
      ctx.beginPath();
      for (const k of set) this.drawArrowHead(this.model.from[k], this.model.to[k]);
      ctx.fill();
    }
    ctx.globalAlpha = 1;
  }

  drawLine(a, b) {
    const { ctx, model } = this;
    const x = this.x(a);
    const z = this.x(b);
    const y = this.rowY(a);
    const w = this.rowY(b);
    const bow = model.timeline[a] === model.timeline[b] ? Math.min(this.view.timelineHeight * 0.42, Math.abs(z - x) * 0.25 + 3) * 1.6 : 0;
    const [from, to] = this.partInSight(x, z);
    if (from >= to) return;
    if (!bow) {
      ctx.moveTo(x + (z - x) * from, y + (w - y) * from);
      ctx.lineTo(x + (z - x) * to, y + (w - y) * to);
      return;
    }
    // Part of the curve through (x, y), ((x + z) / 2, y + bow), (z, w): its polar form.
    const blossom = (s, t) => y * (1 - s) * (1 - t) + (y + bow) * (s + t - 2 * s * t) + w * s * t;
    ctx.moveTo(x + (z - x) * from, blossom(from, from));
    ctx.quadraticCurveTo(x + (z - x) * (from + to) / 2, blossom(from, to), x + (z - x) * to, blossom(to, to));
  }

  /** Return the visible part of a line from x to z, 0 to 1.
   *
   * Browsers spend time on dashes outside of the view as well.
   */
  partInSight(x, z) {
    const [low, high] = [this.view.left - MARGIN, this.view.width + MARGIN];
    if (x === z) return x >= low && x <= high ? [0, 1] : [0, 0];
    const ends = [(low - x) / (z - x), (high - x) / (z - x)];
    return [Math.max(0, Math.min(...ends)), Math.min(1, Math.max(...ends))];
  }

  drawArrowHead(a, b) {
    const { ctx, model, radius } = this;
    if (model.timeline[a] === model.timeline[b]) return;
    const x = this.x(a);
    const y = this.rowY(a);
    const dx = this.x(b) - x;
    const dy = this.rowY(b) - y;
    const length = Math.hypot(dx, dy);
    if (length < 16) return;
    const ux = dx / length;
    const uy = dy / length;
    const tip = length - radius - 1;
    const tx = x + ux * tip;
    const ty = y + uy * tip;
    ctx.moveTo(tx, ty);
    ctx.lineTo(tx - ux * 8 - uy * 3.2, ty - uy * 8 + ux * 3.2);
    ctx.lineTo(tx - ux * 8 + uy * 3.2, ty - uy * 8 - ux * 3.2);
    ctx.lineTo(tx, ty);
  }

  // -- events -------------------------------------------------------------------------------

  events() {
    this.marks = new Map();
    this.reserved = this.mainLabels();
    if (this.model.meta.grid) return this.counts();
    return this.rows();
  }

  /** Draw a range of which only counts are loaded: events of each member and bin. */
  counts() {
    const { model, view, ctx } = this;
    const { "grid.bin": bins, "grid.member": members, "grid.rows": rows, "grid.errors": errors } = model.data.arrays;
    const { width, begin, axis } = model.meta.grid;
    if (axis !== model.axis.name) return; // the counts of this axis are on their way
    const broad = Math.max(1, width * this.scale - (width * this.scale > 3 ? 1 : 0));
    const full = Math.min(46, view.timelineHeight * 0.72);
    let total = 0;
    for (let k = 0; k < bins.length; k++) {
      const timeline = model.timelines.timelineOf[members[k]];
      const x = view.left + (begin + bins[k] * width - view.x0) * this.scale;
      if (x > view.width || x + broad < view.left) continue;
      total += rows[k];
      if (timeline < this.first || timeline > this.last) continue;
      const tall = full * Math.min(1, 0.2 + Math.log10(rows[k]) * 0.2);
      const base = this.y(timeline) + tall / 2;
      ctx.fillStyle = this.theme.hues[members[k] % this.theme.hues.length];
      ctx.fillRect(x, base - tall, broad, tall);
      if (errors[k]) this.errorMark(x, base, Math.max(broad, BIN));
    }
    this.stats.events = total;
    this.stats.singly = false;
  }

  rows() {
    const ranges = [];
    let total = 0;
    for (let timeline = this.first; timeline <= this.last; timeline++) {
      const begin = this.model.firstAt(timeline, this.view.x0 - 8 / this.scale);
      const end = this.model.firstAt(timeline, this.view.x1 + 8 / this.scale);
      ranges.push([timeline, begin, end]);
      total += end - begin;
    }
    this.stats.events = total;
    if (!total) this.countOutside();
    const room = (ranges.length * (this.view.width - this.view.left)) / 4;
    this.stats.singly = total <= Math.min(SINGLY, Math.max(60, room));
    for (const [timeline, begin, end] of ranges) {
      if (this.stats.singly) for (let at = begin; at < end; at++) this.mark(this.model.rows[at]);
      else this.bars(timeline, begin, end);
    }
    this.drawMarks();
    this.broken();
    if (total < 400 && this.view.timelineHeight >= 26) this.labels(ranges);
  }

  /** Count the events of the range on timelines above and below the view. */
  countOutside() {
    const { model, view } = this;
    const count = { above: 0, below: 0 };
    for (let timeline = 0; timeline < model.timelines.list.length; timeline++) {
      if (timeline >= this.first && timeline <= this.last) continue;
      const size = model.firstAt(timeline, view.x1) - model.firstAt(timeline, view.x0);
      count[timeline < this.first ? "above" : "below"] += size;
    }
    Object.assign(this.stats, count);
  }

  hue(row) {
    const { hues } = this.theme;
    return row === undefined ? hues[0] : hues[this.model.member[row] % hues.length];
  }

  timelineHue(timeline) {
    return this.theme.hues[this.model.timelines.list[timeline].members[0] % this.theme.hues.length];
  }

  isDimmed(row) {
    const { model } = this;
    if (model.chain) return !model.inChain[row];
    if (model.past) return !(model.past[row] || model.future[row] || row === model.chosen);
    return model.matches !== null && !model.matches[row];
  }

  colour(row) {
    const { model, theme } = this;
    if (this.isDimmed(row)) return theme.dim;
    if (model.past && !model.chain) {
      if (model.past[row]) return theme.past;
      if (model.future[row]) return theme.future;
      if (model.severity[row] !== ERROR) return theme.chosen;
    }
    return model.severity[row] === ERROR ? theme.broken : this.hue(row);
  }

  mark(row) {
    const colour = this.colour(row);
    if (!this.marks.has(colour)) this.marks.set(colour, []);
    this.marks.get(colour).push(row);
  }

  drawMarks() {
    const { ctx, theme } = this;
    for (const [colour, rows] of this.marks) {
      // Receipts first: a delivery at the same time is a square inside the ring.
      const open = rows.filter((row) => !this.isSolid(row));
      ctx.strokeStyle = colour;
      ctx.fillStyle = theme.back;
      ctx.lineWidth = Math.max(1, this.radius * 0.36);
      ctx.beginPath();
      for (const row of open) this.shape(row);
      ctx.fill();
      ctx.stroke();
      ctx.fillStyle = colour;
      ctx.beginPath();
      for (const row of rows) if (this.isSolid(row)) this.shape(row);
      ctx.fill();
    }
    this.extras();
  }

  /** Whether the mark is filled; receipts, unordered events and repeated copies are open. */
  isSolid(row) {
    const { model } = this;
    return model.alive[row] && !model.isReceipt(row) && !(model.marks[row] & REPEATED_COPY);
  }

  /** Add the outline of an event: send ▶, receipt ○, delivery ■, other ●, unordered ×. */
  shape(row) {
    const { ctx, model, radius: r } = this;
    const x = this.x(row);
    const y = this.rowY(row);
    if (!model.alive[row]) {
      ctx.moveTo(x - r, y - r);
      ctx.lineTo(x + r, y + r);
      ctx.moveTo(x - r, y + r);
      ctx.lineTo(x + r, y - r);
    } else if (model.isSend(row)) {
      ctx.moveTo(x - r * 0.9, y - r * 1.1);
      ctx.lineTo(x + r * 1.2, y);
      ctx.lineTo(x - r * 0.9, y + r * 1.1);
      ctx.lineTo(x - r * 0.9, y - r * 1.1);
    } else if (model.isDelivery(row)) {
      ctx.rect(x - r * 0.62, y - r * 0.62, r * 1.24, r * 1.24);
    } else {
      ctx.moveTo(x + r, y);
      ctx.arc(x, y, r, 0, 6.2832);
    }
  }

  /** Draw a diamond around errors (red) and warnings. */
  drawSeverity(rows) {
    const { ctx, model, theme } = this;
    const r = this.radius + 4;
    for (const severity of [1, ERROR]) {
      ctx.strokeStyle = severity === ERROR ? theme.broken : theme.warning;
      ctx.lineWidth = severity === ERROR ? 2 : 1.4;
      ctx.beginPath();
      for (const row of rows) {
        if (model.severity[row] !== severity) continue;
        const [x, y] = [this.x(row), this.rowY(row)];
        ctx.moveTo(x - r, y);
        for (const [dx, dy] of [[0, -r], [r, 0], [0, r], [-r, 0]]) ctx.lineTo(x + dx, y + dy);
      }
      ctx.stroke();
    }
  }

  /** Draw marks of lost messages, and lines at events in past and future of the selection. */
  extras() {
    const { ctx, model, theme, radius: r } = this;
    const all = [...this.marks.values()].flat();
    this.drawSeverity(all);
    ctx.strokeStyle = theme.wrong;
    ctx.lineWidth = 1.4;
    ctx.setLineDash([3, 2]);
    ctx.beginPath();
    for (const row of all) {
      if (!(model.marks[row] & NOT_RECEIVED)) continue;
      const x = this.x(row);
      const y = this.rowY(row);
      const s = Math.max(7, Math.min(16, this.view.timelineHeight * 0.4));
      ctx.moveTo(x, y);
      ctx.lineTo(x + s, y + s);
    }
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    for (const row of all) {
      if (!(model.marks[row] & NOT_RECEIVED)) continue;
      const s = Math.max(7, Math.min(16, this.view.timelineHeight * 0.4));
      const x = this.x(row) + s;
      const y = this.rowY(row) + s;
      ctx.moveTo(x - 3, y - 3);
      ctx.lineTo(x + 3, y + 3);
      ctx.moveTo(x - 3, y + 3);
      ctx.lineTo(x + 3, y - 3);
    }
    ctx.stroke();
    if (!model.past || model.chain || this.view.timelineHeight < 14) return;
    this.sides(all, model.past, theme.past, r + 2.5);
    this.sides(all, model.future, theme.future, -r - 2.5);
  }

  sides(rows, mask, colour, offset) {
    const { ctx, model, radius: r } = this;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    for (const row of rows) {
      if (!mask[row]) continue;
      const x = this.x(row);
      const y = this.rowY(row) + offset;
      ctx.moveTo(x - r, y);
      ctx.lineTo(x + r, y);
    }
    ctx.stroke();
  }

  /** Draw dense events as bars; the height is the logarithm of the count. */
  bars(timeline, begin, end) {
    const { model, view, values, ctx, theme } = this;
    const width = BIN / this.scale;
    const full = Math.min(46, view.timelineHeight * 0.72);
    const middle = this.y(timeline);
    let at = begin;
    while (at < end) {
      const bin = Math.floor(values[model.rows[at]] / width);
      let stop = at;
      const count = { past: 0, future: 0, match: 0, error: 0 };
      const edge = (bin + 1) * width;
      while (stop < end && values[model.rows[stop]] < edge) {
        const row = model.rows[stop++];
        if (model.chain) count.match += model.inChain[row];
        else if (model.past) {
          count.past += model.past[row];
          count.future += model.future[row];
        } else if (model.matches) count.match += model.matches[row];
        if (model.severity[row] === ERROR) count.error++;
      }
      if (stop === at) stop++;
      const size = stop - at;
      const x = view.left + (bin * width - view.x0) * this.scale;
      const tall = full * Math.min(1, 0.2 + Math.log10(size) * 0.32);
      ctx.fillStyle = model.past || model.matches ? theme.dim : this.hue(model.rows[at]);
      const base = middle + tall / 2;
      ctx.fillRect(x + 0.5, base - tall, BIN - 1, tall);
      if (count.past) this.part(theme.past, x, base, tall, count.past / size);
      if (count.future) this.part(theme.future, x, base - tall * (1 - count.future / size), tall, count.future / size);
      if (count.match) this.part(this.hue(model.rows[at]), x, base, tall, Math.max(0.4, count.match / size));
      if (count.error) this.errorMark(x, base);
      at = stop;
    }
  }

  /** Draw the mark of a bar that contains errors, below it. */
  errorMark(x, base, width = BIN) {
    this.ctx.fillStyle = this.theme.broken;
    this.ctx.fillRect(x - 0.5, base + 1, width + 1, 4);
  }

  part(colour, x, base, tall, share) {
    this.ctx.fillStyle = colour;
    const height = Math.max(1.5, tall * share);
    this.ctx.fillRect(x + 0.5, base - height, BIN - 1, height);
  }

  /** Cross out the events that break a promise of the protocol, with the reason in red. */
  broken() {
    const { ctx, model, view, theme } = this;
    const size = Math.max(7, this.radius * 1.5);
    for (const row of model.meta.broken ?? []) {
      const [x, y] = [this.x(row), this.rowY(row)];
      if (model.timeline[row] < this.first || model.timeline[row] > this.last || x < view.left || x > view.width) continue;
      ctx.strokeStyle = ctx.fillStyle = theme.broken;
      ctx.lineWidth = 3;
      ctx.beginPath();
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x - size, y + size);
      ctx.lineTo(x + size, y - size);
      ctx.stroke();
      const text = plain(`${model.ids.at(row)} ${model.data.texts("text")?.at(row) ?? ""}`, 120);
      ctx.font = `bold ${this.font(13)}`;
      ctx.textBaseline = "alphabetic";
      this.write(text, x, y - size - 6, theme.broken, x > (view.left + view.width) / 2 ? "right" : "left");
    }
  }

  /** Return the text of a label: that of the event, otherwise its id. */
  wordsOf(row, letters) {
    const { model } = this;
    return plain(model.data.texts("text")?.at(row) || model.ids.at(row), letters);
  }

  /** Write a label at a point, above all lines. */
  write(text, x, y, colour, align) {
    const { ctx, theme } = this;
    ctx.textAlign = align;
    ctx.lineWidth = 4;
    ctx.strokeStyle = theme.halo;
    ctx.strokeText(text, x, y);
    ctx.fillStyle = colour;
    ctx.fillText(text, x, y);
    ctx.textAlign = "left";
  }

  /** Return the labels of the selected events and their chain: these have room before others. */
  mainLabels() {
    const { model, view } = this;
    const found = [];
    for (const row of new Set([model.chosen, model.pin, ...(model.chain ?? []).slice(0, 60)])) {
      const timeline = row < 0 ? -1 : model.timeline[row];
      const x = row < 0 ? 0 : this.x(row);
      if (timeline < this.first || timeline > this.last || timeline < 0 || x < view.left || x > view.width) continue;
      const text = this.wordsOf(row, row === model.chosen || row === model.pin ? 60 : 30);
      const width = text.length * 6.2 * this.text;
      const backwards = x + width > view.width && x - width > view.left;
      const [from, to] = backwards ? [x - width, x + 4] : [x - 4, x + width];
      if (found.some((one) => one.timeline === timeline && from < one.to && to > one.from)) continue;
      found.push({ row, timeline, x, text, from, to, align: backwards ? "right" : "left" });
    }
    return found;
  }

  /** Draw texts of events where there is room up to the next event. */
  labels(ranges) {
    const broken = new Set(this.model.meta.broken ?? []);
    const { ctx, model, view, theme } = this;
    ctx.font = this.font(11);
    ctx.textBaseline = "alphabetic";
    for (const [timeline, begin, end] of ranges) {
      const y = this.y(timeline) - this.radius - 4;
      const taken = this.reserved.filter((one) => one.timeline === timeline);
      let until = view.left;
      for (let at = begin; at < end; at++) {
        const row = model.rows[at];
        const x = this.x(row);
        const last = at + 1 === model.start[timeline + 1];
        if (model.slots[row] > 1 || this.isDimmed(row) || broken.has(row) || x < view.left) continue;
        if (taken.some((one) => x > one.from - 8 && x < one.to)) continue;
        const whole = this.wordsOf(row, 200);
        const least = model.sent && model.sent[row] >= 0 ? 12 : Math.min(4, whole.length); // an arrival has a line to its send
        const fit = (room) => Math.floor((Math.min(room, 260 * this.text) - 6) / (6 * this.text));
        const edge = Math.min(view.width, ...taken.filter((one) => one.from > x).map((one) => one.from));
        let letters = fit(Math.min(edge, last ? edge : this.x(model.rows[at + 1])) - x);
        // The last event of a timeline is at the edge: its room is on the left.
        const backwards = last && letters < whole.length && !taken.length && fit(x - until) > letters;
        if (backwards) letters = fit(x - until);
        if (letters < least) continue;
        const text = plain(whole, letters);
        this.write(text, backwards ? x + 2 : x - 2, y, model.severity[row] === ERROR ? theme.broken : theme.soft, backwards ? "right" : "left");
        until = x + text.length * 6 * this.text + 6;
      }
    }
  }

  /** Draw rings around the selected event (with a guide line) and the pinned one (dashed). */
  selection() {
    const { ctx, model, theme, view } = this;
    for (const row of [model.pin, model.chosen]) {
      if (row < 0 || model.timeline[row] < this.first || model.timeline[row] > this.last) continue;
      const x = this.x(row);
      ctx.strokeStyle = theme.chosen;
      if (row === model.chosen) {
        ctx.lineWidth = 1;
        ctx.setLineDash([2, 3]);
        ctx.beginPath();
        ctx.moveTo(Math.round(x) + 0.5, TOP);
        ctx.lineTo(Math.round(x) + 0.5, view.height);
        ctx.stroke();
      }
      ctx.setLineDash(row === model.pin ? [4, 3] : []);
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(x, this.rowY(row), this.radius + 7, 0, 6.2832);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    ctx.textBaseline = "alphabetic";
    for (const { row, x, text, align } of this.reserved) {
      ctx.font = `bold ${this.font(11)}`;
      const colour = model.severity[row] === ERROR ? theme.broken : theme.ink;
      const above = this.rowY(row) - this.radius - 11;
      this.write(text, align === "right" ? x + 2 : x - 2, above > TOP + 9 ? above : this.rowY(row) + this.radius + 20, colour, align);
    }
  }

  // -- frame --------------------------------------------------------------------------------

  header() {
    const { ctx, view, theme, model } = this;
    ctx.fillStyle = theme.back;
    ctx.fillRect(0, 0, view.width, TOP);
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, TOP + 0.5);
    ctx.lineTo(view.width, TOP + 0.5);
    for (const value of this.ticks) {
      const x = Math.round(view.left + (value - view.x0) * this.scale) + 0.5;
      if (x < view.left) continue;
      ctx.moveTo(x, TOP - 5);
      ctx.lineTo(x, TOP);
    }
    ctx.stroke();
    ctx.font = this.font(11);
    ctx.fillStyle = theme.soft;
    ctx.textBaseline = "middle";
    ctx.textAlign = "center";
    for (const value of this.ticks) {
      const x = view.left + (value - view.x0) * this.scale;
      if (x < view.left + 30 || x > view.width - 26) continue;
      ctx.fillText(model.axis.tick(value, this.step), x, TOP / 2 - 2);
    }
  }

  names() {
    const { ctx, view, theme, model } = this;
    ctx.fillStyle = theme.back;
    ctx.fillRect(0, TOP + 1, view.left, view.height - TOP);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, TOP + 1, view.width, view.height - TOP);
    ctx.clip();
    if (view.timelineHeight >= 9) {
      ctx.fillStyle = theme.stripe;
      for (let timeline = this.first; timeline <= this.last; timeline++) {
        if (timeline % 2) ctx.fillRect(0, this.y(timeline) - view.timelineHeight / 2, view.left, view.timelineHeight);
      }
      ctx.font = this.font(Math.min(12.5, (view.timelineHeight * 0.8) / this.text));
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      const letters = Math.max(3, Math.floor((view.left - 22) / (7.3 * this.text)));
      for (let timeline = this.first; timeline <= this.last; timeline++) {
        const one = model.timelines.list[timeline];
        ctx.fillStyle = this.timelineHue(timeline);
        ctx.fillRect(6, this.y(timeline) - 5, 4, 10);
        ctx.fillStyle = theme.ink;
        ctx.fillText(shortened(one.folded ? `▸ ${one.label}` : one.label, letters), 15, this.y(timeline));
      }
    }
    ctx.restore();
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(view.left + 0.5, 0);
    ctx.lineTo(view.left + 0.5, view.height);
    ctx.stroke();
    const corner = this.corner();
    if (!corner) return;
    ctx.font = this.font(11);
    ctx.fillStyle = theme.soft;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.fillText(corner, 6, TOP / 2 - 2);
  }

  /** Return the part of the time that ticks omit: day or minute. */
  corner() {
    const { axis } = this.model;
    if (!axis.isTimed || !axis.epoch || this.step >= 86400e9) return "";
    const exact = axis.exact(Math.max(this.view.x0, axis.low));
    const [day, minute] = [exact.slice(0, 10), exact.slice(11, 16)];
    if (this.view.left < 100) return this.step >= 1e9 ? day.slice(5) : minute;
    if (this.step >= 1e9) return `${day} UTC`;
    return `${this.view.left < 125 * this.text ? day.slice(2) : day} ${minute}`;
  }
}

/** Return how far below its timeline a row is drawn, in pixels. */
function shiftOf(model, view, row) {
  const slots = model.slots[row];
  if (slots < 2) return 0;
  const apart = Math.min(11, (view.timelineHeight * 0.7) / (slots - 1));
  return (model.slot[row] - (slots - 1) / 2) * apart;
}

/** Return the row nearest to a point and all rows in reach: { row, rows }; row -1: none. */
export function hit(model, view, px, py, reach = 9) {
  const timeline = Math.floor((py - TOP + view.y) / view.timelineHeight);
  if (timeline < 0 || timeline >= model.timelines.list.length || px < view.left) return { row: -1, rows: [] };
  const scale = (view.width - view.left) / (view.x1 - view.x0);
  const value = view.x0 + (px - view.left) / scale;
  const from = model.firstAt(timeline, value - reach / scale);
  const to = model.firstAt(timeline, value + reach / scale);
  const middle = TOP + (timeline + 0.5) * view.timelineHeight - view.y;
  let row = -1;
  let best = Infinity;
  for (let at = from; at < to; at++) {
    const one = model.rows[at];
    const across = model.slots[one] > 1 ? py - middle - shiftOf(model, view, one) : 0;
    const apart = Math.hypot((model.axis.values[one] - value) * scale, across);
    if (apart < best) {
      best = apart;
      row = one;
    }
  }
  return { row, rows: model.rows.subarray(from, to) };
}
