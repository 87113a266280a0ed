// What there is to draw: rows on lanes in the order of the axis, lines of messages, what is chosen.

import { Graph } from "./graph.js";
import { Lanes } from "./timelines.js";
import { axesOf, sortedRows } from "./axis.js";
import { matchRows } from "./search.js";

export const AGAIN = 1;
export const NOWHERE = 2;
export const UNDELIVERED = 4;
export const MESSAGE = 0;
export const OWN = 1; // a cause at the same member that is not the event before
export const REPEATED = 2; // an arrival of a copy that had come before

const SEND = 0;
const RECEIVE = 1;
const DELIVER = 2;

export class Scene {
  constructor(data) {
    const { arrays } = data;
    this.data = data;
    this.meta = data.meta;
    /** Names of the further columns of the table; their texts are "own.0", "own.1", ... */
    this.own = data.meta.own ?? [];
    this.size = arrays.kind.length;
    this.kind = arrays.kind;
    this.alive = arrays.alive;
    this.marks = arrays.marks ?? new Uint8Array(this.size);
    this.received = arrays.received ?? null;
    this.sent = arrays.sent ?? null;
    this.end = arrays.end ?? null;
    this.members = data.texts("member");
    this.runs = data.texts("run");
    this.ids = data.texts("id");
    this.graph = new Graph(arrays.offsets, arrays.causes, arrays.alive);
    this.axes = axesOf(data, this.graph);
    this.nobody = this.members.size;
    this.member = Int32Array.from(this.members.codes, (code) => (code < 0 ? this.nobody : code));
    this.run = this.runs.size > 1 ? 0 : -1;
    this.chosen = -1;
    this.past = this.future = null;
    this.matches = null;
    this.only = false;
    this.sortings = new Map();
    this.holds = this.holding();
    this.setLines();
    this.setMembers();
    this.setAxis(Object.keys(this.axes)[0]);
  }

  setMembers() {
    const given = this.data.arrays["member.rows"];
    if (given) return this.setGiven(given);
    const counts = new Int32Array(this.nobody + 1);
    const firsts = new Int32Array(this.nobody + 1).fill(this.size);
    for (let row = 0; row < this.size; row++) {
      if (this.run >= 0 && this.runs.codes[row] !== this.run) continue;
      const member = this.member[row];
      if (!counts[member]++) firsts[member] = row;
    }
    const order = sortedRows(Object.values(this.axes)[0].values);
    const seen = new Uint8Array(this.nobody + 1);
    order.forEach((row, k) => {
      const member = this.member[row];
      if (seen[member] || (this.run >= 0 && this.runs.codes[row] !== this.run)) return;
      seen[member] = 1;
      firsts[member] = k;
    });
    if (this.lanes) {
      this.lanes.counts = counts;
      this.lanes.firsts = firsts;
      this.lanes.arrange();
      return;
    }
    const names = [];
    for (let k = 0; k < this.nobody; k++) names.push(this.members.value(k));
    names.push("(no member)");
    this.lanes = new Lanes(names, counts, firsts);
  }

  /** Members of the whole trace, of which this is a piece. */
  setGiven(rows) {
    const names = [];
    for (let k = 0; k < this.nobody; k++) names.push(this.members.value(k));
    names.push("(no member)");
    const counts = Float64Array.from({ length: names.length }, (_, k) => rows[k] ?? 0);
    this.lanes = new Lanes(names, counts, Int32Array.from(names, (_, k) => k));
    return undefined;
  }

  setRun(run) {
    this.run = run;
    this.setMembers();
    this.place();
  }

  setAxis(name) {
    this.axis = this.axes[name] ?? Object.values(this.axes)[0];
    this.place();
  }

  /** Rows that wait from receipt to delivery, or to the end. */
  holding() {
    if (!this.received) return new Int32Array(0);
    const found = [];
    for (let row = 0; row < this.size; row++) {
      if (this.received[row] >= 0 || this.marks[row] & UNDELIVERED) found.push(row);
    }
    return Int32Array.from(found);
  }

  /** Lines from cause to effect: messages to other members, and causes at the same one. */
  setLines() {
    const from = [];
    const to = [];
    const sort = [];
    const add = (cause, effect, what) => {
      from.push(cause);
      to.push(effect);
      sort.push(what);
    };
    const { offsets, causes } = this.graph;
    if (this.sent) {
      for (let row = 0; row < this.size; row++) {
        const sending = this.sent[row];
        if (sending < 0 || this.member[sending] === this.member[row]) continue;
        if (this.kind[row] === DELIVER && (this.received[row] >= 0 || this.marks[row] & AGAIN)) {
          continue;
        }
        add(sending, row, this.marks[row] & AGAIN ? REPEATED : MESSAGE);
      }
    } else {
      const declared = this.meta.by === "causes";
      for (let row = 0; row < this.size; row++) {
        for (let e = offsets[row]; e < offsets[row + 1]; e++) {
          const cause = causes[e];
          if (this.member[cause] !== this.member[row]) add(cause, row, MESSAGE);
          else if (declared) add(cause, row, OWN);
        }
      }
    }
    this.from = Int32Array.from(from);
    this.to = Int32Array.from(to);
    this.sort = Uint8Array.from(sort);
    this.weight = Uint32Array.from(from, (_, k) => Math.imul(k + 1, 2654435761) >>> 0);
  }

  /** Put rows onto lanes, each lane's rows in the order of the axis. */
  place() {
    const { values } = this.axis;
    const lanes = this.lanes.lanes.length;
    const start = new Int32Array(lanes + 1);
    this.lane = new Int32Array(this.size).fill(-1);
    for (let row = 0; row < this.size; row++) {
      if (!this.isShown(row)) continue;
      const lane = this.lanes.laneOf[this.member[row]];
      this.lane[row] = lane;
      if (lane >= 0) start[lane + 1]++;
    }
    for (let k = 0; k < lanes; k++) start[k + 1] += start[k];
    const next = start.slice();
    this.rows = new Uint32Array(start[lanes]);
    for (const row of this.sorted()) {
      if (this.lane[row] >= 0) this.rows[next[this.lane[row]]++] = row;
    }
    this.start = start;
    this.spread();
    this.low = Infinity;
    this.high = -Infinity;
    for (const row of this.rows) {
      if (values[row] < this.low) this.low = values[row];
      if (values[row] > this.high) this.high = values[row];
      if (this.axis.name === "event_time" && this.end?.[row] > this.high) this.high = this.end[row];
    }
    if (this.low > this.high) this.low = this.high = 0;
    if (this.meta.extent) ({ low: this.low, high: this.high } = this.meta.extent);
    this.version = (this.version ?? 0) + 1;
  }

  /** Rows of a lane at the same place: which of how many each is, so that they can be drawn apart.
   * A delivery in the moment of its receipt stays with that.
   */
  spread() {
    const { values } = this.axis;
    this.slot = new Int32Array(this.size);
    this.slots = new Int32Array(this.size).fill(1);
    let begin = 0;
    while (begin < this.rows.length) {
      const [lane, value] = [this.lane[this.rows[begin]], values[this.rows[begin]]];
      let end = begin + 1;
      while (end < this.rows.length && values[this.rows[end]] === value && this.lane[this.rows[end]] === lane) end++;
      if (end - begin > 1) this.spreadOver(this.rows.subarray(begin, end));
      begin = end;
    }
  }

  spreadOver(rows) {
    const { values } = this.axis;
    let count = 0;
    for (const row of rows) {
      const receipt = this.received ? this.received[row] : -1;
      const together = receipt >= 0 && this.lane[receipt] === this.lane[row] && values[receipt] === values[row];
      this.slot[row] = together ? this.slot[receipt] : count++;
    }
    for (const row of rows) this.slots[row] = count;
  }

  isShown(row) {
    if (this.run >= 0 && this.runs.codes[row] !== this.run) return false;
    if (this.only && this.matches && !this.matches[row]) return false;
    return !Number.isNaN(this.axis.values[row]);
  }

  /** All rows by the axis; made once an axis. */
  sorted() {
    if (!this.sortings.has(this.axis.name)) {
      this.sortings.set(this.axis.name, sortedRows(this.axis.values));
    }
    return this.sortings.get(this.axis.name);
  }

  /** First place in a lane whose row is not before a value. */
  firstAt(lane, value) {
    let low = this.start[lane];
    let high = this.start[lane + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.axis.values[this.rows[middle]] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  choose(row) {
    this.chosen = row;
    this.past = row < 0 ? null : this.graph.past(row);
    this.future = row < 0 ? null : this.graph.future(row);
    this.counts = null;
  }

  /** What a server knows of the whole trace: bits by place in the files, and how many there are. */
  relate({ meta, arrays }) {
    const { place } = this.data.arrays;
    if (this.chosen < 0 || place[this.chosen] !== meta.place) return;
    for (let row = 0; row < this.size; row++) {
      const [byte, bit] = [place[row] >> 3, place[row] & 7];
      this.past[row] = (arrays.past[byte] >> bit) & 1;
      this.future[row] = (arrays.future[byte] >> bit) & 1;
    }
    this.counts = meta;
  }

  /** Mark the rows that match the terms of a search; none: no search. See `parseSearch`. */
  match(terms) {
    this.matches = matchRows(this, terms);
    if (this.only) this.place();
    return this.matches;
  }

  /** Of a delivery that was held: messages sent before its own that were delivered here meanwhile. */
  waitedFor(delivery) {
    const received = this.received ? this.received[delivery] : -1;
    if (received < 0) return null;
    const sending = this.sent[delivery];
    const before = sending < 0 ? null : this.graph.past(sending);
    const found = [];
    const values = this.data.arrays.place;
    const lane = this.rowsOf(this.member[delivery], this.runs.codes[delivery]);
    for (const row of lane) {
      if (this.kind[row] !== DELIVER || row === delivery) continue;
      if (values[row] < values[received] || values[row] > values[delivery]) continue;
      if (before && this.sent[row] >= 0 && before[this.sent[row]]) found.push(row);
    }
    return found;
  }

  /** Rows of a member in a run, as listed. */
  rowsOf(member, run) {
    const found = [];
    for (let row = 0; row < this.size; row++) {
      if (this.member[row] === member && this.runs.codes[row] === run) found.push(row);
    }
    return found.sort((a, b) => this.data.arrays.place[a] - this.data.arrays.place[b]);
  }

  /** Arrivals of a message, or the effects that events have at others. */
  arrivals(row) {
    const found = [];
    const { after, effects } = this.graph;
    for (let e = after[row]; e < after[row + 1]; e++) {
      if (this.member[effects[e]] !== this.member[row]) found.push(effects[e]);
    }
    return found;
  }

  causesOf(row) {
    return this.graph.causes.subarray(this.graph.offsets[row], this.graph.offsets[row + 1]);
  }

  effectsOf(row) {
    return this.graph.effects.subarray(this.graph.after[row], this.graph.after[row + 1]);
  }

  kindOf(row) {
    return this.meta.kinds[this.kind[row]];
  }

  isSend(row) {
    return this.kind[row] === SEND && this.sent !== null;
  }

  isReceipt(row) {
    return this.kind[row] === RECEIVE;
  }

  isDelivery(row) {
    return this.kind[row] === DELIVER;
  }
}
