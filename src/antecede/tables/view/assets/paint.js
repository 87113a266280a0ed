// Painting a scene into a 2D context: a canvas, or what writes SVG. Nothing here knows of a page.

import { AGAIN, NOWHERE, REPEATED, UNDELIVERED } from "./render_model.js";
import { plain, shortened } from "../../../core/pages/assets/text.js";

export const THEMES = {
  light: {
    back: "#ffffff", stripe: "#f6f7f9", ink: "#1b2430", soft: "#5c6778", line: "#cdd3dc",
    grid: "#e9ecf1", past: "#0060a8", future: "#c24a00", dim: "#b9c1cd", wrong: "#b3008f", broken: "#c8102e",
    held: "#e69f00", chosen: "#000000", match: "#ffd400", halo: "#ffffff",
    hues: ["#3a6fb0", "#2f8f83", "#8a5fa8", "#b0682a", "#5a7d2a", "#a8486a", "#4a5a8f", "#2f7f9f", "#7d6a2a"],
  },
  dark: {
    back: "#12161c", stripe: "#171c24", ink: "#eef2f7", soft: "#9aa6b6", line: "#3a4453",
    grid: "#222933", past: "#56b4ff", future: "#ff9a4d", dim: "#465061", wrong: "#ff7ae0", broken: "#ff5c5c",
    held: "#f0b429", chosen: "#ffffff", match: "#ffe14d", halo: "#12161c",
    hues: ["#7fb0ea", "#5cc9b8", "#c39be0", "#e8a765", "#a5cc66", "#ea8fb0", "#9fb0ee", "#6cc5e6", "#d0bd72"],
  },
};
export const TOP = 30;
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";
const SINGLY = 2500; // events in view up to which each has its own mark
const MARGIN = 60; // pixels beside the picture up to which lines are drawn
const BIN = 5; // pixels that share a bar where there are more

/** Draw it all; says how much was drawn: { events, lines, drawn, singly }. */
export function paint(ctx, scene, view, theme, { lines = 4000 } = {}) {
  const job = new Painter(ctx, scene, view, theme);
  ctx.fillStyle = theme.back;
  ctx.fillRect(0, 0, view.width, view.height);
  job.grid();
  job.clipped(() => {
    job.laneLines();
    job.spans();
    job.holds(lines);
    job.messages(lines);
    job.events();
    job.chosen();
  });
  job.header();
  job.names();
  return job.told;
}

class Painter {
  constructor(ctx, scene, view, theme) {
    this.ctx = ctx;
    this.scene = scene;
    this.view = view;
    this.theme = theme;
    this.values = scene.axis.values;
    this.scale = (view.width - view.left) / (view.x1 - view.x0);
    this.first = Math.max(0, Math.floor(view.y / view.laneH));
    this.last = Math.min(
      scene.lanes.lanes.length - 1,
      Math.floor((view.y + view.height - TOP) / view.laneH),
    );
    this.text = view.text ?? 1;
    this.radius = Math.max(1.2, Math.min(5 * this.text, view.laneH * 0.24));
    this.thin = 1 / (view.ratio ?? 1);
    this.told = { events: 0, lines: 0, drawn: 0, singly: true };
  }

  font(size) {
    return `${size * this.text}px ${FONT}`;
  }

  x(row) {
    return this.view.left + (this.values[row] - this.view.x0) * this.scale;
  }

  y(lane) {
    return TOP + (lane + 0.5) * this.view.laneH - this.view.y;
  }

  /** The height of a row: its lane's, or beside it where several stand at one place. */
  rowY(row) {
    return this.y(this.scene.lane[row]) + shiftOf(this.scene, this.view, row);
  }

  clipped(work) {
    const { ctx, view } = this;
    ctx.save();
    ctx.beginPath();
    ctx.rect(view.left, TOP, view.width - view.left, view.height - TOP);
    ctx.clip();
    work();
    ctx.restore();
  }

  // -- behind everything --------------------------------------------------------------------

  grid() {
    const { ctx, view, theme } = this;
    ctx.fillStyle = theme.stripe;
    if (view.laneH >= 9) {
      for (let lane = this.first; lane <= this.last; lane++) {
        if (lane % 2) ctx.fillRect(0, this.y(lane) - view.laneH / 2, view.width, view.laneH);
      }
    }
    this.step = this.scene.axis.step(Math.max(1e-9, 110 / this.scale));
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

  /** Where ticks begin, so that they stand at round moments of the clock. */
  origin(step) {
    const { axis } = this.scene;
    if (!axis.timed) return 0;
    const whole = BigInt(Math.max(1, Math.round(step)));
    return -Number(((axis.base % whole) + whole) % whole);
  }

  laneLines() {
    const { ctx, view, scene, theme } = this;
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let lane = this.first; lane <= this.last; lane++) {
      const begin = scene.start[lane];
      const end = scene.start[lane + 1] - 1;
      if (begin > end) continue;
      const y = Math.round(this.y(lane)) + 0.5;
      ctx.moveTo(Math.max(view.left, this.x(scene.rows[begin])), y);
      ctx.lineTo(Math.min(view.width, this.x(scene.rows[end])), y);
    }
    ctx.stroke();
  }

  // -- bars ---------------------------------------------------------------------------------

  spans() {
    const { ctx, scene, view } = this;
    if (!scene.end || scene.axis.name !== "event_time") return;
    const height = Math.max(2, view.laneH * 0.42);
    ctx.globalAlpha = scene.past ? 0.12 : 0.28;
    for (let lane = this.first; lane <= this.last; lane++) {
      ctx.fillStyle = this.laneHue(lane);
      const y = this.y(lane) - height / 2;
      let until = -Infinity;
      for (let at = scene.start[lane]; at < scene.start[lane + 1]; at++) {
        const row = scene.rows[at];
        if (this.values[row] > view.x1) break;
        if (!(scene.end[row] >= view.x0)) continue;
        const x = Math.max(view.left - 2, this.x(row));
        const end = Math.min(view.width + 2, view.left + (scene.end[row] - view.x0) * this.scale);
        if (end - x < 1 && end <= until) continue; // nothing new would be seen
        until = Math.max(until, end);
        ctx.fillRect(x, y, Math.max(1, end - x), height);
      }
    }
    ctx.globalAlpha = 1;
  }

  /** Bars from receipt to delivery; open at the end where none came. */
  holds(budget) {
    const { ctx, scene, view, theme } = this;
    const height = Math.max(2, Math.min(11, view.laneH * 0.5));
    let drawn = 0;
    ctx.fillStyle = theme.held;
    for (const row of scene.holds) {
      const lane = scene.lane[row];
      if (lane < this.first || lane > this.last) continue;
      const never = scene.marks[row] & UNDELIVERED;
      const begin = never ? row : scene.received[row];
      const end = never ? view.x1 + 1 : this.values[row];
      // Where steps are counted, a delivery right after its receipt was not held.
      if (!scene.axis.timed && end - this.values[begin] <= 1) continue;
      if (end < view.x0 || this.values[begin] > view.x1) continue;
      const x = Math.max(view.left - 5, this.x(begin));
      const width = Math.min(view.width + 5, view.left + (end - view.x0) * this.scale) - x;
      if (width < 1 || drawn++ > budget) continue;
      ctx.globalAlpha = this.dimmed(row) ? 0.16 : never ? 0.35 : 0.62;
      ctx.fillRect(x, this.y(lane) - height / 2, width, height);
      if (width > 14 && view.laneH > 13) this.hatch(x, this.y(lane) - height / 2, width, height);
    }
    ctx.globalAlpha = 1;
  }

  /** Strokes across a bar, so that it is no matter of colour alone. */
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
      if (set !== "chain" && this.scene.weight[k] >= limit) continue;
      sets[set].push(k);
    }
    this.told.lines = visible.length;
    this.told.drawn = Object.values(sets).reduce((sum, set) => sum + set.length, 0);
    const arrows = this.told.drawn <= Math.min(700, this.view.width / 2) && this.view.laneH >= 9;
    const strong = Math.max(0.16, Math.min(0.95, 500 / Math.max(1, this.told.drawn)));
    this.byHue(sets.plain, strong, arrows);
    // Thousands of them would be one grey field over the events.
    this.lineSet(sets.dim, this.theme.dim, Math.max(0.05, Math.min(0.45, 250 / Math.max(1, sets.dim.length))), [], 1, false);
    this.lineSet(sets.again, this.theme.soft, 0.9, [2, 3], 1, arrows);
    this.lineSet(sets.wrong, this.theme.wrong, 0.95, [7, 3, 2, 3], 1.6, arrows);
    this.lineSet(sets.past, this.theme.past, 1, [], 1.7, arrows);
    this.lineSet(sets.future, this.theme.future, 1, [6, 3], 1.7, arrows);
  }

  /** Numbers of the lines that cross what is seen. */
  inView() {
    const { scene, view, values } = this;
    const found = [];
    const { from, to, lane } = scene;
    for (let k = 0; k < from.length; k++) {
      const a = lane[from[k]];
      const b = lane[to[k]];
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
    const { scene } = this;
    const a = scene.from[k];
    const b = scene.to[k];
    if (scene.past) {
      const self = scene.chosen;
      if (scene.past[a] && (scene.past[b] || b === self)) return "past";
      if ((scene.future[a] || a === self) && scene.future[b]) return "future";
      return "dim";
    }
    if (this.values[a] > this.values[b]) return "wrong";
    if (scene.matches && !(scene.matches[a] || scene.matches[b])) return "dim";
    return scene.sort[k] === REPEATED ? "again" : "plain";
  }

  byHue(set, alpha, arrows) {
    const { scene, theme } = this;
    const hues = theme.hues.map(() => []);
    for (const k of set) hues[scene.member[scene.from[k]] % hues.length].push(k);
    hues.forEach((part, hue) => this.lineSet(part, theme.hues[hue], alpha, [], set.length > 200 ? this.thin : 1.1, arrows));
  }

  lineSet(set, colour, alpha, dash, width, arrows) {
    if (!set.length) return;
    const { ctx } = this;
    ctx.strokeStyle = ctx.fillStyle = colour;
    ctx.globalAlpha = alpha;
    // Without a graphics card a line wider than a pixel costs five times one that is not.
    ctx.lineWidth = set.length > 200 ? this.thin : width;
    ctx.setLineDash(set.length > 600 ? [] : dash);
    ctx.beginPath();
    let count = 0;
    for (const k of set) {
      this.oneLine(k);
      if (++count % 64 === 0) {
        ctx.stroke(); // long paths of many lines are slow without a graphics card
        ctx.beginPath();
      }
    }
    ctx.stroke();
    ctx.setLineDash([]);
    if (arrows) {
      ctx.beginPath();
      for (const k of set) this.head(k);
      ctx.fill();
    }
    ctx.globalAlpha = 1;
  }

  oneLine(k) {
    const { ctx, scene } = this;
    const a = scene.from[k];
    const b = scene.to[k];
    const x = this.x(a);
    const z = this.x(b);
    const y = this.rowY(a);
    const w = this.rowY(b);
    const bow = scene.lane[a] === scene.lane[b] ? Math.min(this.view.laneH * 0.42, Math.abs(z - x) * 0.25 + 3) * 1.6 : 0;
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

  /** Return the part of a line from x to z that is near the picture, 0 to 1.
   *
   * A browser spends its time on all dashes of a line, also on those out of sight.
   */
  partInSight(x, z) {
    const [low, high] = [this.view.left - MARGIN, this.view.width + MARGIN];
    if (x === z) return x >= low && x <= high ? [0, 1] : [0, 0];
    const ends = [(low - x) / (z - x), (high - x) / (z - x)];
    return [Math.max(0, Math.min(...ends)), Math.min(1, Math.max(...ends))];
  }

  head(k) {
    const { ctx, scene, radius } = this;
    const a = scene.from[k];
    const b = scene.to[k];
    if (scene.lane[a] === scene.lane[b]) return;
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
    if (this.scene.meta.grid) return this.counts();
    return this.rows();
  }

  /** A stretch of which only counts are at hand: how many events of a member each bin has. */
  counts() {
    const { scene, view, ctx } = this;
    const { "grid.bin": bins, "grid.member": members, "grid.rows": rows } = scene.data.arrays;
    const { width } = scene.meta.grid;
    const broad = Math.max(1, width * this.scale - (width * this.scale > 3 ? 1 : 0));
    const full = Math.min(46, view.laneH * 0.72);
    let total = 0;
    for (let k = 0; k < bins.length; k++) {
      const lane = scene.lanes.laneOf[members[k]];
      const x = view.left + (bins[k] * width - view.x0) * this.scale;
      if (x > view.width || x + broad < view.left) continue;
      total += rows[k];
      if (lane < this.first || lane > this.last) continue;
      const tall = full * Math.min(1, 0.2 + Math.log10(rows[k]) * 0.2);
      ctx.fillStyle = this.theme.hues[members[k] % this.theme.hues.length];
      ctx.fillRect(x, this.y(lane) - tall / 2, broad, tall);
    }
    this.told.events = total;
    this.told.singly = false;
  }

  rows() {
    const ranges = [];
    let total = 0;
    for (let lane = this.first; lane <= this.last; lane++) {
      const begin = this.scene.firstAt(lane, this.view.x0 - 8 / this.scale);
      const end = this.scene.firstAt(lane, this.view.x1 + 8 / this.scale);
      ranges.push([lane, begin, end]);
      total += end - begin;
    }
    this.told.events = total;
    const room = (ranges.length * (this.view.width - this.view.left)) / 4;
    this.told.singly = total <= Math.min(SINGLY, Math.max(60, room));
    for (const [lane, begin, end] of ranges) {
      if (this.told.singly) for (let at = begin; at < end; at++) this.mark(this.scene.rows[at]);
      else this.bars(lane, begin, end);
    }
    this.drawMarks();
    this.broken();
    if (total < 400 && this.view.laneH >= 26) this.labels(ranges);
  }

  hue(row) {
    const { hues } = this.theme;
    return row === undefined ? hues[0] : hues[this.scene.member[row] % hues.length];
  }

  laneHue(lane) {
    return this.theme.hues[this.scene.lanes.lanes[lane].members[0] % this.theme.hues.length];
  }

  dimmed(row) {
    const { scene } = this;
    if (scene.past) return !(scene.past[row] || scene.future[row] || row === scene.chosen);
    return scene.matches !== null && !scene.matches[row];
  }

  colour(row) {
    const { scene, theme } = this;
    if (scene.past) {
      if (scene.past[row]) return theme.past;
      if (scene.future[row]) return theme.future;
      if (row === scene.chosen) return theme.chosen;
      return theme.dim;
    }
    if (scene.matches && !scene.matches[row]) return theme.dim;
    return this.hue(row);
  }

  mark(row) {
    const colour = this.colour(row);
    if (!this.marks.has(colour)) this.marks.set(colour, []);
    this.marks.get(colour).push(row);
  }

  drawMarks() {
    const { ctx, theme } = this;
    for (const [colour, rows] of this.marks) {
      // Receipts first: a delivery in the same moment is a square within the ring.
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

  /** Receipts, events without a place, and copies that came again are drawn open. */
  isSolid(row) {
    const { scene } = this;
    return scene.alive[row] && !scene.isReceipt(row) && !(scene.marks[row] & AGAIN);
  }

  /** Add the outline of an event: send ▶, receipt ○, delivery ■, any other ●, without a place ×. */
  shape(row) {
    const { ctx, scene, radius: r } = this;
    const x = this.x(row);
    const y = this.rowY(row);
    if (!scene.alive[row]) {
      ctx.moveTo(x - r, y - r);
      ctx.lineTo(x + r, y + r);
      ctx.moveTo(x - r, y + r);
      ctx.lineTo(x + r, y - r);
    } else if (scene.isSend(row)) {
      ctx.moveTo(x - r * 0.9, y - r * 1.1);
      ctx.lineTo(x + r * 1.2, y);
      ctx.lineTo(x - r * 0.9, y + r * 1.1);
      ctx.lineTo(x - r * 0.9, y - r * 1.1);
    } else if (scene.isDelivery(row)) {
      ctx.rect(x - r * 0.62, y - r * 0.62, r * 1.24, r * 1.24);
    } else {
      ctx.moveTo(x + r, y);
      ctx.arc(x, y, r, 0, 6.2832);
    }
  }

  /** What never arrived, and which side of the chosen event rows are on. */
  extras() {
    const { ctx, scene, theme, radius: r } = this;
    const all = [...this.marks.values()].flat();
    ctx.strokeStyle = theme.wrong;
    ctx.lineWidth = 1.4;
    ctx.setLineDash([3, 2]);
    ctx.beginPath();
    for (const row of all) {
      if (!(scene.marks[row] & NOWHERE)) continue;
      const x = this.x(row);
      const y = this.rowY(row);
      const s = Math.max(7, Math.min(16, this.view.laneH * 0.4));
      ctx.moveTo(x, y);
      ctx.lineTo(x + s, y + s);
    }
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.beginPath();
    for (const row of all) {
      if (!(scene.marks[row] & NOWHERE)) continue;
      const s = Math.max(7, Math.min(16, this.view.laneH * 0.4));
      const x = this.x(row) + s;
      const y = this.rowY(row) + s;
      ctx.moveTo(x - 3, y - 3);
      ctx.lineTo(x + 3, y + 3);
      ctx.moveTo(x - 3, y + 3);
      ctx.lineTo(x + 3, y - 3);
    }
    ctx.stroke();
    if (!scene.past || this.view.laneH < 14) return;
    this.sides(all, scene.past, theme.past, r + 2.5);
    this.sides(all, scene.future, theme.future, -r - 2.5);
  }

  sides(rows, mask, colour, offset) {
    const { ctx, scene, radius: r } = this;
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

  /** Where there are too many: a bar for each few pixels, as high as the logarithm of its events. */
  bars(lane, begin, end) {
    const { scene, view, values, ctx, theme } = this;
    const width = BIN / this.scale;
    const full = Math.min(46, view.laneH * 0.72);
    const middle = this.y(lane);
    let at = begin;
    while (at < end) {
      const bin = Math.floor(values[scene.rows[at]] / width);
      let stop = at;
      let past = 0;
      let future = 0;
      let match = 0;
      const edge = (bin + 1) * width;
      while (stop < end && values[scene.rows[stop]] < edge) {
        const row = scene.rows[stop++];
        if (scene.past) {
          past += scene.past[row];
          future += scene.future[row];
        } else if (scene.matches) match += scene.matches[row];
      }
      if (stop === at) stop++;
      const count = stop - at;
      const x = view.left + (bin * width - view.x0) * this.scale;
      const tall = full * Math.min(1, 0.2 + Math.log10(count) * 0.32);
      const asked = scene.past || scene.matches;
      ctx.fillStyle = asked ? theme.dim : this.hue(scene.rows[at]);
      const base = middle + tall / 2;
      ctx.fillRect(x + 0.5, base - tall, BIN - 1, tall);
      if (past) this.part(theme.past, x, base, tall, past / count);
      if (future) this.part(theme.future, x, base - tall * (1 - future / count), tall, future / count);
      if (match) this.part(this.hue(scene.rows[at]), x, base, tall, match / count);
      at = stop;
    }
  }

  part(colour, x, base, tall, share) {
    this.ctx.fillStyle = colour;
    const height = Math.max(1.5, tall * share);
    this.ctx.fillRect(x + 0.5, base - height, BIN - 1, height);
  }

  /** Cross out the events that break a promise of the protocol, and say why in red. */
  broken() {
    const { ctx, scene, view, theme } = this;
    const size = Math.max(7, this.radius * 1.5);
    for (const row of scene.meta.broken ?? []) {
      const [x, y] = [this.x(row), this.rowY(row)];
      if (scene.lane[row] < this.first || scene.lane[row] > this.last || x < view.left || x > view.width) continue;
      ctx.strokeStyle = ctx.fillStyle = theme.broken;
      ctx.lineWidth = 3;
      ctx.beginPath();
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x - size, y + size);
      ctx.lineTo(x + size, y - size);
      ctx.stroke();
      const text = plain(`${scene.ids.at(row)} ${scene.data.texts("text")?.at(row) ?? ""}`, 120);
      ctx.font = `bold ${this.font(13)}`;
      ctx.textBaseline = "alphabetic";
      ctx.textAlign = x > (view.left + view.width) / 2 ? "right" : "left";
      ctx.strokeStyle = theme.halo;
      ctx.lineWidth = 4;
      ctx.strokeText(text, x, y - size - 6);
      ctx.fillText(text, x, y - size - 6);
    }
    ctx.textAlign = "left";
  }

  /** What events say, where there is room up to the next one. */
  labels(ranges) {
    const broken = new Set(this.scene.meta.broken ?? []);
    const { ctx, scene, view, theme } = this;
    const said = scene.data.texts("text");
    ctx.font = this.font(11);
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "left";
    for (const [lane, begin, end] of ranges) {
      const y = this.y(lane) - this.radius - 4;
      let until = view.left;
      for (let at = begin; at < end; at++) {
        const row = scene.rows[at];
        const x = this.x(row);
        const last = at + 1 === scene.start[lane + 1];
        if (scene.slots[row] > 1 || this.dimmed(row) || broken.has(row) || x < view.left) continue;
        const whole = (said && said.at(row)) || scene.ids.at(row);
        const least = scene.sent && scene.sent[row] >= 0 ? 12 : Math.min(4, whole.length); // an arrival has a line to what it is
        const fit = (room) => Math.floor((Math.min(room, 260 * this.text) - 6) / (6 * this.text));
        let letters = fit((last ? view.width : this.x(scene.rows[at + 1])) - x);
        // The last one of a lane stands at the edge, and has its room before it.
        const backwards = last && letters < whole.length && fit(x - until) > letters;
        if (backwards) letters = fit(x - until);
        if (letters < least) continue;
        const text = plain(whole, letters);
        ctx.textAlign = backwards ? "right" : "left";
        const from = backwards ? x + 2 : x - 2;
        const above = row === scene.chosen ? y - 4 : y; // not under its ring
        ctx.lineWidth = 3;
        ctx.strokeStyle = theme.halo;
        ctx.strokeText(text, from, above);
        ctx.fillStyle = theme.soft;
        ctx.fillText(text, from, above);
        until = x + text.length * 6 * this.text + 6;
      }
    }
    ctx.textAlign = "left";
  }

  chosen() {
    const { ctx, scene, theme, view } = this;
    const row = scene.chosen;
    if (row < 0 || scene.lane[row] < this.first || scene.lane[row] > this.last) return;
    const x = this.x(row);
    const y = this.rowY(row);
    ctx.strokeStyle = theme.chosen;
    ctx.lineWidth = 1;
    ctx.setLineDash([2, 3]);
    ctx.beginPath();
    ctx.moveTo(Math.round(x) + 0.5, TOP);
    ctx.lineTo(Math.round(x) + 0.5, view.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(x, y, this.radius + 5, 0, 6.2832);
    ctx.stroke();
  }

  // -- around -------------------------------------------------------------------------------

  header() {
    const { ctx, view, theme, scene } = this;
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
      ctx.fillText(scene.axis.tick(value, this.step), x, TOP / 2 - 2);
    }
  }

  names() {
    const { ctx, view, theme, scene } = this;
    ctx.fillStyle = theme.back;
    ctx.fillRect(0, TOP + 1, view.left, view.height - TOP);
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, TOP + 1, view.width, view.height - TOP);
    ctx.clip();
    if (view.laneH >= 9) {
      ctx.fillStyle = theme.stripe;
      for (let lane = this.first; lane <= this.last; lane++) {
        if (lane % 2) ctx.fillRect(0, this.y(lane) - view.laneH / 2, view.left, view.laneH);
      }
      ctx.font = this.font(Math.min(12.5, (view.laneH * 0.8) / this.text));
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      const letters = Math.max(3, Math.floor((view.left - 22) / (7.3 * this.text)));
      for (let lane = this.first; lane <= this.last; lane++) {
        const one = scene.lanes.lanes[lane];
        ctx.fillStyle = this.laneHue(lane);
        ctx.fillRect(6, this.y(lane) - 5, 4, 10);
        ctx.fillStyle = theme.ink;
        ctx.fillText(shortened(one.folded ? `▸ ${one.label}` : one.label, letters), 15, this.y(lane));
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

  /** What the ticks leave out: the day, or the minute. */
  corner() {
    const { axis } = this.scene;
    if (!axis.timed || !axis.epoch || this.step >= 86400e9) return "";
    const exact = axis.exact(Math.max(this.view.x0, axis.low));
    const [day, minute] = [exact.slice(0, 10), exact.slice(11, 16)];
    if (this.view.left < 100) return this.step >= 1e9 ? day.slice(5) : minute;
    if (this.step >= 1e9) return `${day} UTC`;
    return `${this.view.left < 125 * this.text ? day.slice(2) : day} ${minute}`;
  }
}

/** How far below its lane's line a row is drawn. */
function shiftOf(scene, view, row) {
  const slots = scene.slots[row];
  if (slots < 2) return 0;
  const apart = Math.min(11, (view.laneH * 0.7) / (slots - 1));
  return (scene.slot[row] - (slots - 1) / 2) * apart;
}

/** The row nearest to a point, and all that lie as near: { row, rows }, row -1 where none is. */
export function hit(scene, view, px, py, reach = 9) {
  const lane = Math.floor((py - TOP + view.y) / view.laneH);
  if (lane < 0 || lane >= scene.lanes.lanes.length || px < view.left) return { row: -1, rows: [] };
  const scale = (view.width - view.left) / (view.x1 - view.x0);
  const value = view.x0 + (px - view.left) / scale;
  const from = scene.firstAt(lane, value - reach / scale);
  const to = scene.firstAt(lane, value + reach / scale);
  const middle = TOP + (lane + 0.5) * view.laneH - view.y;
  let row = -1;
  let best = Infinity;
  for (let at = from; at < to; at++) {
    const one = scene.rows[at];
    const across = scene.slots[one] > 1 ? py - middle - shiftOf(scene, view, one) : 0;
    const apart = Math.hypot((scene.axis.values[one] - value) * scale, across);
    if (apart < best) {
      best = apart;
      row = one;
    }
  }
  return { row, rows: scene.rows.subarray(from, to) };
}
