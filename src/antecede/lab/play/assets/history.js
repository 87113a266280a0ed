// What was on the bench before, for undo and redo; and what is on it, in the address.

const MOMENTS = 200;

/** Moments on the bench; each is {text, protocols, judge}. */
export class Past {
  constructor() {
    this.moments = [];
    this.at = -1;
  }

  get now() {
    return this.moments[this.at] ?? null;
  }

  /** A new moment; what was undone before it is forgotten. */
  add(moment) {
    if (this.now && sameMoment(this.now, moment)) return;
    this.moments = [...this.moments.slice(0, this.at + 1), moment].slice(-MOMENTS);
    this.at = this.moments.length - 1;
  }

  get canUndo() {
    return this.at > 0;
  }

  get canRedo() {
    return this.at < this.moments.length - 1;
  }

  /** Go so many moments back (or, below nought, forward). */
  back(by = 1) {
    this.at = Math.min(this.moments.length - 1, Math.max(0, this.at - by));
    return this.now;
  }
}

function sameMoment(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Text behind the # of an address -> {text?, protocols?, judge?, step?}. */
export function momentOf(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const moment = {};
  for (const name of ["text", "judge", "exercise"]) if (given.has(name)) moment[name] = given.get(name);
  if (given.has("protocol")) moment.protocols = given.getAll("protocol");
  const step = given.has("step") ? Number(given.get("step")) : NaN;
  if (Number.isInteger(step) && step >= 0) moment.step = step;
  if (given.has("hush")) moment.hush = true;
  return moment;
}

export function hashOfMoment({ text, protocols, judge, step, exercise, hush }) {
  const made = new URLSearchParams();
  made.set("text", text);
  for (const one of protocols) made.append("protocol", one);
  if (judge) made.set("judge", judge);
  if (exercise) made.set("exercise", exercise);
  if (step !== null) made.set("step", String(step));
  if (hush) made.set("hush", "yes");
  return `#${made}`;
}
