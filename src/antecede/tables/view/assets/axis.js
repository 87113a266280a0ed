// Axes of the diagram: times, depth in the graph of causes, position in the causal order.

const MS = 1e6;
const S = 1e9;
const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

export const AXIS_WORDS = {
  event_time: "time",
  corrected: "time, clocks corrected",
  send_time: "sender's clock",
  arrival: "arrival",
  start_time: "start of span",
  commit_time: "commit time",
  author_time: "author time",
  logical: "logical time (depth)",
  order: "causal order, evenly spaced",
  file: "order of the file",
};

/** One axis: a value for each row, the range of the values, and their format. */
export class Axis {
  constructor(name, values, base, epoch) {
    this.name = name;
    this.values = values;
    this.base = base; // BigInt of ns since 1970; null: values are whole numbers
    this.epoch = epoch;
    let low = Infinity;
    let high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    this.low = low <= high ? low : 0;
    this.high = low <= high ? high : 0;
  }

  get isTimed() {
    return this.base !== null;
  }

  /** Whether spans have their lengths on this axis. */
  get isOfSpans() {
    return this.name === "event_time" || this.name === "corrected";
  }

  /** Return a round distance of ticks, near `about`. */
  step(about) {
    const power = 10 ** Math.floor(Math.log10(about));
    const plain = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= about * 0.999);
    if (!this.isTimed) return Math.max(1, plain);
    if (about <= S) return Math.max(1, plain);
    const seconds = STEPS.find((k) => k * S >= about * 0.999);
    if (seconds) return seconds * S;
    const days = about / (86400 * S);
    const round = [1, 2, 7, 14, 30, 61, 91, 182, 365, 730, 1825, 3650, 7300, 18250].find((k) => k >= days);
    return (round ?? 36500) * 86400 * S;
  }

  /** Return the label of a tick, with the digits that a distance of `step` needs. */
  tick(value, step) {
    if (!this.isTimed) return value.toLocaleString("en");
    if (!this.epoch) return formatDuration(value + Number(this.base), step);
    const whole = this.base + BigInt(Math.round(value));
    const iso = formatIso(whole);
    if (step >= 86400 * S) return iso.slice(0, 10);
    if (step >= 60 * S) return iso.slice(11, 16);
    if (step >= S) return iso.slice(11, 19);
    const digits = Math.min(9, Math.max(1, Math.ceil(9 - Math.log10(step) - 1e-9)));
    return iso.slice(17, 20 + digits);
  }

  /** Return a value with all digits. */
  exact(value) {
    if (Number.isNaN(value)) return "unknown";
    if (!this.isTimed) return value.toLocaleString("en");
    if (!this.epoch) return formatDuration(value + Number(this.base), 0);
    return `${formatIso(this.base + BigInt(Math.round(value))).replace("T", " ")} UTC`;
  }

  /** Return a difference of two values as text. */
  apart(value) {
    if (!this.isTimed) return `${value.toLocaleString("en")} steps`;
    return formatDuration(value, 0);
  }
}

/** Return nanoseconds as text in a fitting unit; `step`: resolution in ns (0: three digits). */
export function formatDuration(ns, step) {
  const size = Math.abs(ns);
  const [unit, name] =
    size < 1e3 ? [1, "ns"] : size < MS ? [1e3, "µs"] : size < S ? [MS, "ms"]
    : size < 120 * S ? [S, "s"] : size < 7200 * S ? [60 * S, "min"]
    : size < 2 * 86400 * S ? [3600 * S, "h"] : [86400 * S, "days"];
  const value = ns / unit;
  const digits = step ? Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9))
    : Math.max(0, 2 - Math.floor(Math.log10(Math.max(1, Math.abs(value)))));
  return `${Number(value.toFixed(Math.min(9, digits))).toLocaleString("en", { maximumFractionDigits: 9 })} ${name}`;
}

function formatIso(ns) {
  const second = 1000000000n;
  const rest = ((ns % second) + second) % second;
  const whole = new Date(Number((ns - rest) / second) * 1000).toISOString().slice(0, 19);
  return `${whole}.${rest.toString().padStart(9, "0")}`;
}

/** Return the axes of a trace by name. */
export function makeAxes(data, graph) {
  const axes = {};
  const { tiles, times, epoch } = data.meta;
  if (tiles && times[0]?.name !== "event_time") axes.file = new Axis("file", data.arrays.place, null, false);
  for (const { name, base } of times) {
    const values = data.arrays[`time.${name}`];
    axes[name] = base === null ? new Axis(name, values, null, false) : new Axis(name, fillTimes(values, graph), BigInt(base), epoch);
  }
  if (tiles) return axes; // with all axes of the whole trace
  axes.logical = new Axis("logical", toNumbers(graph.depth), null, false);
  axes.order = new Axis("order", toNumbers(graph.rank), null, false);
  axes.file = new Axis("file", rankPlaces(data.arrays.place), null, false);
  return axes;
}

function toNumbers(values) {
  return Float64Array.from(values, (value) => (value < 0 ? NaN : value));
}

/** Return positions in the files, renumbered without gaps. */
function rankPlaces(places) {
  const order = sortedRows(places);
  const found = new Float64Array(places.length);
  order.forEach((row, k) => (found[row] = k));
  return found;
}

/** Return times; a row without a time gets that of its latest cause, or NaN. */
function fillTimes(times, graph) {
  if (!times.some(Number.isNaN)) return times;
  const found = times.slice();
  for (const row of graph.order) {
    if (!Number.isNaN(found[row])) continue;
    let latest = NaN;
    for (let e = graph.offsets[row]; e < graph.offsets[row + 1]; e++) {
      const time = found[graph.causes[e]];
      if (!(time <= latest)) latest = Number.isNaN(time) ? latest : time;
    }
    found[row] = latest;
  }
  return found;
}

/** Return row numbers sorted by value; ties keep their order, NaN is last. */
export function sortedRows(values) {
  const rows = new Uint32Array(values.length);
  for (let k = 0; k < rows.length; k++) rows[k] = k;
  let sorted = true;
  for (let k = 1; sorted && k < rows.length; k++) sorted = values[k] >= values[k - 1];
  if (sorted && !Number.isNaN(values[0])) return rows;
  const key = Float64Array.from(values, (value) => (Number.isNaN(value) ? Infinity : value));
  return rows.sort((a, b) => (key[a] < key[b] ? -1 : key[a] > key[b] ? 1 : a - b));
}
