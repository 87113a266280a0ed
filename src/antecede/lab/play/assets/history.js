// Undo history, and the state of the page in its address.

const MOMENTS = 200;

/** Moments of the playground; each is {text, protocols, relation}. */
export class History {
  constructor() {
    this.moments = [];
    this.at = -1;
  }

  get now() {
    return this.moments[this.at] ?? null;
  }

  /** Add a moment and drop the undone ones. */
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

  /** Go back by a number of moments; a negative number goes forward. */
  back(by = 1) {
    this.at = Math.min(this.moments.length - 1, Math.max(0, this.at - by));
    return this.now;
  }
}

function sameMoment(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Parse the text after the # of an address -> {text?, protocols?, relation?, step?}. */
export function hashToMoment(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const moment = {};
  for (const name of ["text", "relation", "exercise"]) if (given.has(name)) moment[name] = given.get(name);
  if (given.has("protocol")) moment.protocols = given.getAll("protocol");
  const step = given.has("step") ? Number(given.get("step")) : NaN;
  if (Number.isInteger(step) && step >= 0) moment.step = step;
  if (given.has("hide-outcomes")) moment.hidesOutcomes = true;
  return moment;
}

export function momentToHash({ text, protocols, relation, step, exercise, hidesOutcomes }) {
  const made = new URLSearchParams();
  made.set("text", text);
  for (const one of protocols) made.append("protocol", one);
  if (relation) made.set("relation", relation);
  if (exercise) made.set("exercise", exercise);
  if (step !== null) made.set("step", String(step));
  if (hidesOutcomes) made.set("hide-outcomes", "yes");
  return `#${made}`;
}
