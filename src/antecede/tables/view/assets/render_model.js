// Render model: rows on timelines in the order of the axis, message lines, selection.

import { Graph } from "./graph.js";
import { Timelines } from "./timelines.js";
import { makeAxes, sortedRows } from "./axis.js";
import { matchRows } from "./search.js";

export const REPEATED_COPY = 1;
export const NOT_RECEIVED = 2;
export const UNDELIVERED = 4;
export const MESSAGE = 0;
export const WARNING = 1; // values of `severity`
export const ERROR = 2;
export const OWN = 1; // a cause at the same member other than its previous event
export const REPEATED = 2; // repeated arrival of a copy

const NO_MEMBER = "(no member)";
const SEND = 0;
const RECEIVE = 1;
const DELIVER = 2;

export class RenderModel {
  constructor(data) {
    const { arrays } = data;
    this.data = data;
    this.meta = data.meta;
    /** Names of the extra columns of the table; their texts are "own.0", "own.1", ... */
    this.own = data.meta.own ?? [];
    this.size = arrays.kind.length;
    this.kind = arrays.kind;
    this.alive = arrays.alive;
    this.marks = arrays.marks ?? new Uint8Array(this.size);
    this.received = arrays.received ?? null;
    this.sent = arrays.sent ?? null;
    this.severity = arrays.severity ?? new Uint8Array(this.size);
    this.hasErrors = "severity" in arrays;
    this.members = data.texts("member");
    this.runs = data.texts("run");
    this.ids = data.texts("id");
    this.graph = new Graph(arrays.offsets, arrays.causes, arrays.alive);
    this.axes = makeAxes(data, this.graph);
    /** Durations of spans in ns; NaN: none. */
    this.lasts = arrays.end?.map((end, row) => end - this.axes.event_time.values[row]) ?? null;
    // The members of tiles have one more name if a row has no member.
    const isNamed = "member.rows" in arrays && this.members.value(this.members.size - 1) === NO_MEMBER;
    this.noMember = this.members.size - (isNamed ? 1 : 0);
    this.member = Int32Array.from(this.members.codes, (code) => (code < 0 ? this.noMember : code));
    this.run = this.runs.size > 1 ? 0 : -1;
    this.chosen = -1;
    this.past = this.future = null;
    this.pin = -1;
    /** Rows of the shortest chain between the pinned and the selected event, or null; -1: not loaded. */
    this.chain = null;
    this.wholeChain = null; // the same as places, in a tiled trace
    this.alone = false; // only the chain is shown
    this.matches = null;
    this.only = false;
    this.sortings = new Map();
    this.holds = this.findHeld();
    this.setLines();
    this.setMembers();
    this.setAxis(Object.keys(this.axes)[0]);
  }

  setMembers() {
    const given = this.data.arrays["member.rows"];
    if (given) return this.setAllMembers(given);
    const counts = new Int32Array(this.noMember + 1);
    const firsts = new Int32Array(this.noMember + 1).fill(this.size);
    for (let row = 0; row < this.size; row++) {
      if (this.run >= 0 && this.runs.codes[row] !== this.run) continue;
      const member = this.member[row];
      if (!counts[member]++) firsts[member] = row;
    }
    const order = sortedRows(Object.values(this.axes)[0].values);
    const seen = new Uint8Array(this.noMember + 1);
    order.forEach((row, k) => {
      const member = this.member[row];
      if (seen[member] || (this.run >= 0 && this.runs.codes[row] !== this.run)) return;
      seen[member] = 1;
      firsts[member] = k;
    });
    if (this.timelines) {
      this.timelines.counts = counts;
      this.timelines.firsts = firsts;
      this.timelines.arrange();
      return;
    }
    const names = [];
    for (let k = 0; k < this.noMember; k++) names.push(this.members.value(k));
    names.push(NO_MEMBER);
    this.timelines = new Timelines(names, counts, firsts);
  }

  /** Set the members of the whole trace, of which this is a tile. */
  setAllMembers(rows) {
    const names = [];
    for (let k = 0; k < this.noMember; k++) names.push(this.members.value(k));
    names.push(NO_MEMBER);
    const counts = Float64Array.from({ length: names.length }, (_, k) => rows[k] ?? 0);
    this.timelines = new Timelines(names, counts, Int32Array.from(names, (_, k) => k));
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

  /** Return the deliveries that were held, and receipts without a delivery. */
  findHeld() {
    if (!this.received) return new Int32Array(0);
    const found = [];
    for (let row = 0; row < this.size; row++) {
      if (this.received[row] >= 0 || this.marks[row] & UNDELIVERED) found.push(row);
    }
    return Int32Array.from(found);
  }

  /** Compute lines from cause to effect: messages, and causes at the same member. */
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
        if (this.kind[row] === DELIVER && (this.received[row] >= 0 || this.marks[row] & REPEATED_COPY)) {
          continue;
        }
        add(sending, row, this.marks[row] & REPEATED_COPY ? REPEATED : MESSAGE);
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

  /** Assign rows to timelines, each sorted along the axis. */
  place() {
    const { values } = this.axis;
    const timelines = this.timelines.list.length;
    const start = new Int32Array(timelines + 1);
    this.timeline = new Int32Array(this.size).fill(-1);
    for (let row = 0; row < this.size; row++) {
      if (!this.isShown(row)) continue;
      const timeline = this.timelines.timelineOf[this.member[row]];
      this.timeline[row] = timeline;
      if (timeline >= 0) start[timeline + 1]++;
    }
    for (let k = 0; k < timelines; k++) start[k + 1] += start[k];
    const next = start.slice();
    this.rows = new Uint32Array(start[timelines]);
    for (const row of this.sorted()) {
      if (this.timeline[row] >= 0) this.rows[next[this.timeline[row]]++] = row;
    }
    this.start = start;
    this.spread();
    this.low = Infinity;
    this.high = -Infinity;
    for (const row of this.rows) {
      if (values[row] < this.low) this.low = values[row];
      if (values[row] > this.high) this.high = values[row];
      if (this.endOf(row) > this.high) this.high = this.endOf(row);
    }
    if (this.low > this.high) this.low = this.high = 0;
    if (this.meta.extents) ({ low: this.low, high: this.high } = this.meta.extents[this.axis.name]);
    this.version = (this.version ?? 0) + 1;
  }

  /** Assign slots to rows of a timeline at the same place, so that they are drawn side by side.
   * A delivery at the time of its receipt shares its slot.
   */
  spread() {
    const { values } = this.axis;
    this.slot = new Int32Array(this.size);
    this.slots = new Int32Array(this.size).fill(1);
    let begin = 0;
    while (begin < this.rows.length) {
      const [timeline, value] = [this.timeline[this.rows[begin]], values[this.rows[begin]]];
      let end = begin + 1;
      while (end < this.rows.length && values[this.rows[end]] === value && this.timeline[this.rows[end]] === timeline) end++;
      if (end - begin > 1) this.spreadOver(this.rows.subarray(begin, end));
      begin = end;
    }
  }

  spreadOver(rows) {
    const { values } = this.axis;
    let count = 0;
    for (const row of rows) {
      const receipt = this.received ? this.received[row] : -1;
      const together = receipt >= 0 && this.timeline[receipt] === this.timeline[row] && values[receipt] === values[row];
      this.slot[row] = together ? this.slot[receipt] : count++;
    }
    for (const row of rows) this.slots[row] = count;
  }

  /** Return the end of a span on the axis; NaN: the row is no span, or the axis no time. */
  endOf(row) {
    return this.lasts && this.axis.isOfSpans ? this.axis.values[row] + this.lasts[row] : NaN;
  }

  isShown(row) {
    if (this.alone && !this.inChain[row]) return false;
    if (this.run >= 0 && this.runs.codes[row] !== this.run) return false;
    if (this.only && this.matches && !this.matches[row]) return false;
    return !Number.isNaN(this.axis.values[row]);
  }

  /** Return all rows sorted along the axis (cached). */
  sorted() {
    if (!this.sortings.has(this.axis.name)) {
      this.sortings.set(this.axis.name, sortedRows(this.axis.values));
    }
    return this.sortings.get(this.axis.name);
  }

  /** Return the first index in a timeline whose row is not before a value. */
  firstAt(timeline, value) {
    let low = this.start[timeline];
    let high = this.start[timeline + 1];
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
    this.wholeChain = null;
    this.link();
  }

  /** Pin a row, -1: none; a chain leads from it to the selected event, or back. */
  setPin(row) {
    this.pin = row;
    this.wholeChain = null;
    this.link();
  }

  /** Compute the chain, from that of the whole trace if it is known. */
  link() {
    const { pin, chosen } = this;
    this.chain = this.wholeChain && this.rowsAt(this.wholeChain);
    if (!this.chain && pin >= 0 && chosen >= 0 && pin !== chosen) {
      if (this.past[pin]) this.chain = this.graph.path(pin, chosen);
      else if (this.future[pin]) this.chain = this.graph.path(chosen, pin);
    }
    if (!this.chain?.length) this.chain = null;
    this.inChain = this.chain && new Uint8Array(this.size);
    this.chain?.forEach((row) => (this.inChain[row] = 1));
    if (this.alone) this.setAlone(this.chain !== null);
  }

  /** Return the rows at positions in the files; -1: not loaded. */
  rowsAt(places) {
    const rows = new Map(places.map((place) => [place, -1])); // a place may be given twice
    this.data.arrays.place.forEach((place, row) => rows.get(place) === -1 && rows.set(place, row));
    return places.map((place) => rows.get(place));
  }

  /** Show only the chain and the timelines of its members, or all events. */
  setAlone(alone) {
    this.alone = alone && this.chain !== null;
    const members = new Set(this.alone ? this.chain.filter((row) => row >= 0).map((row) => this.member[row]) : []);
    this.timelines.only = this.alone ? members : null;
    this.timelines.arrange();
    this.place();
  }

  /** Set past and future in the whole trace: bits by position in the files, and counts. */
  relate({ meta, arrays }) {
    const { place } = this.data.arrays;
    if (this.chosen < 0 || place[this.chosen] !== meta.place) return;
    for (let row = 0; row < this.size; row++) {
      const [byte, bit] = [place[row] >> 3, place[row] & 7];
      this.past[row] = (arrays.past[byte] >> bit) & 1;
      this.future[row] = (arrays.future[byte] >> bit) & 1;
    }
    this.counts = meta;
    this.overviews = arrays;
  }

  /** Compute the rows that match the terms of a search (`parseSearch`); none: no search. */
  match(terms) {
    this.matches = matchRows(this, terms);
    if (this.only) this.place();
    return this.matches;
  }

  /** Return deliveries during the hold of a delivery whose messages causally precede its own. */
  waitedFor(delivery) {
    const received = this.received ? this.received[delivery] : -1;
    if (received < 0) return null;
    const sending = this.sent[delivery];
    const before = sending < 0 ? null : this.graph.past(sending);
    const found = [];
    const values = this.data.arrays.place;
    const timeline = this.rowsOf(this.member[delivery], this.runs.codes[delivery]);
    for (const row of timeline) {
      if (this.kind[row] !== DELIVER || row === delivery) continue;
      if (values[row] < values[received] || values[row] > values[delivery]) continue;
      if (before && this.sent[row] >= 0 && before[this.sent[row]]) found.push(row);
    }
    return found;
  }

  /** Return the rows of a member in a run, in the order of the file. */
  rowsOf(member, run) {
    const found = [];
    for (let row = 0; row < this.size; row++) {
      if (this.member[row] === member && this.runs.codes[row] === run) found.push(row);
    }
    return found.sort((a, b) => this.data.arrays.place[a] - this.data.arrays.place[b]);
  }

  /** Return the effects of a row at other members; for a send, its arrivals. */
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
