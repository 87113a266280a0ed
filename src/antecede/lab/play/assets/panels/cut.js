// A cut through one run: how many events of each member are inside, what the server says of it, and
// its line, which can be dragged by a handle on each lane.

import { asked } from "../requests.js";
import { shape } from "../drawing.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

export class CutLine {
  constructor(app) {
    this.app = app;
    this.on = false;
    this.protocol = null; // whose run it is drawn in
    this.counts = {};
    this.said = null; // the server's answer
    this.waiting = 0;
  }

  get run() {
    const { runs } = this.app.bench;
    return runs.find((run) => run.protocol === this.protocol) ?? runs.find((run) => run.lanes?.length) ?? null;
  }

  eventsOf(member) {
    return (this.run?.events ?? []).filter((event) => event.member === member);
  }

  show(on) {
    this.on = on;
    if (on && !Object.keys(this.counts).length) this.atStep();
    this.ask();
  }

  /** What has happened up to the step shown; at the end: the first half, so that there is something to see. */
  atStep() {
    const { bench, step } = this.app;
    const columns = bench.columns;
    const last = this.app.atEnd ? Math.ceil(columns.length / 2) : step;
    const inside = new Set(columns.slice(0, last).map((column) => column.command));
    this.counts = {};
    for (const lane of this.run?.lanes ?? []) this.counts[lane.name] = this.eventsOf(lane.name).filter((event) => inside.has(event.command)).length;
  }

  /** The bench changed: keep what can be kept. */
  fit() {
    if (!this.on) {
      this.counts = {};
      return;
    }
    for (const name of Object.keys(this.counts)) if (!this.run?.lanes.some((lane) => lane.name === name)) delete this.counts[name];
    for (const lane of this.run?.lanes ?? []) this.counts[lane.name] = Math.min(this.counts[lane.name] ?? 0, this.eventsOf(lane.name).length);
    this.ask();
  }

  set(member, count) {
    const most = this.eventsOf(member).length;
    this.counts[member] = Math.min(most, Math.max(0, count));
    this.ask();
  }

  setAll(counts) {
    this.counts = { ...this.counts, ...counts };
    this.ask();
  }

  async ask() {
    const turn = ++this.waiting;
    this.said = null;
    this.app.redraw();
    if (!this.on || !this.run) return;
    const { text, judge } = this.app;
    try {
      const said = await asked("cut", { text, protocol: this.run.protocol, judge, counts: this.counts });
      if (turn === this.waiting) this.said = said;
    } catch (error) {
      if (turn === this.waiting) this.said = { error: error.message };
    }
    if (turn === this.waiting) this.app.redraw();
  }

  /** A text that changes when the cut in a run's picture does. */
  stateFor(run) {
    return this.on && run === this.run ? JSON.stringify([this.counts, this.said, this.dragged ?? null]) : "";
  }

  /** Which arrows the picture marks: `crossing` prove that it is inconsistent, `channels` are on their way. */
  marksFor(run) {
    if (!this.on || run !== this.run) return null;
    const key = (label, source, target) => JSON.stringify([label, source, target]);
    const crossing = new Set((this.said?.crossing ?? []).map(([label, source, target]) => key(label, source, target)));
    const channels = new Set((this.said?.channels ?? []).flatMap((one) => one.labels.map((label) => key(label, one.source, one.target))));
    return { crossing, channels };
  }

  // -- its line ---------------------------------------------------------------------------------

  /** Where the line crosses a lane. */
  xOn(view, member) {
    const { picture } = view;
    const room = 11 * picture.unit;
    return Math.max(room, Math.min(picture.width - room, this.between(picture, member)));
  }

  /** Between the last event inside and the first outside. */
  between(picture, member) {
    const events = this.eventsOf(member);
    const count = this.counts[member] ?? 0;
    const [inside, outside] = [events[count - 1], events[count]];
    if (!inside && !outside) return picture.seam(Math.ceil(picture.columns.length / 2));
    if (!inside) return picture.x(outside.at - 0.5);
    if (!outside) return picture.x(inside.at + 0.5);
    return picture.x(Math.min(inside.at + 0.5, (inside.at + outside.at) / 2));
  }

  draw(view) {
    if (!this.on || view.run !== this.run) return;
    const { picture } = view;
    const { unit } = picture;
    const points = view.run.lanes.map((lane, k) => [this.dragged?.lane === k ? this.dragged.x : this.xOn(view, lane.name), picture.laneY[k]]);
    if (!points.length) return;
    const all = [[points[0][0], points[0][1] - 22 * unit], ...points, [points.at(-1)[0], Math.min(picture.height - 2, points.at(-1)[1] + 22 * unit)]];
    const wrong = this.said && this.said.consistent === false;
    const css = `cut${wrong ? " wrong" : ""}`;
    view.svg.append(shape("g", { class: css },
      shape("polyline", { class: "cut-line", points: all.map((point) => point.join(",")).join(" "), "stroke-width": 3.5 * unit }),
      points.map(([x, y], k) => this.handle(view, k, x, y))));
  }

  handle(view, k, x, y) {
    const { unit } = view.picture;
    const name = view.run.lanes[k].name;
    const count = this.counts[name] ?? 0;
    const most = this.eventsOf(name).length;
    const made = shape("g", { class: "cut-handle", tabindex: 0, role: "slider", "data-member": name, "aria-label": `Cut at ${plain(name, 60)}`, "aria-valuemin": 0, "aria-valuemax": most, "aria-valuenow": count, "aria-valuetext": `${count} of ${most} events inside` },
      shape("rect", { x: x - 9 * unit, y: y - 15 * unit, width: 18 * unit, height: 30 * unit, rx: 6 * unit, "stroke-width": 2.5 * unit }),
      shape("path", { d: `M${x - 2.5 * unit} ${y - 6 * unit}v${12 * unit}M${x + 2.5 * unit} ${y - 6 * unit}v${12 * unit}`, "stroke-width": 1.8 * unit }));
    made.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      this.set(name, count + by);
    });
    return made;
  }

  focus(view, member) {
    for (const handle of view.svg.querySelectorAll(".cut-handle")) if (handle.dataset.member === member) handle.focus();
  }

  handleAt(view, x, y) {
    if (!this.on || view.run !== this.run) return null;
    const { picture } = view;
    const { unit } = picture;
    const found = view.run.lanes.findIndex((lane, k) => Math.abs(picture.laneY[k] - y) < 18 * unit && Math.abs(this.xOn(view, lane.name) - x) < 13 * unit);
    return found < 0 ? null : found;
  }

  drag(view, lane, x) {
    this.dragged = { lane, x };
    view.svg.querySelector(".cut")?.remove();
    this.draw(view);
  }

  drop(view, lane, x) {
    this.dragged = null;
    const { picture } = view;
    const name = view.run.lanes[lane].name;
    this.set(name, this.eventsOf(name).filter((event) => picture.x(event.at) < x).length);
  }
}

// -- beside the picture ---------------------------------------------------------------------------

export function cutPanel(app) {
  const { cut, bench } = app;
  const toggle = el("button", { type: "button", class: "main", "aria-pressed": String(cut.on), onclick: () => cut.show(!cut.on) }, cut.on ? "Take the cut away" : "Draw a cut");
  if (!cut.on || !cut.run) return [el("p", {}, "A cut says how far each member has come. Is it a state the group could have been in? Drag its handle on each lane."), toggle];
  const runs = bench.runs.filter((run) => run.lanes?.length);
  const choose = el("select", { "aria-label": "Under which protocol", onchange: (event) => {
    cut.protocol = event.target.value;
    cut.fit();
  } }, runs.map((run) => el("option", { value: run.protocol }, `under ${plain(run.protocol, 60)}`)));
  choose.value = cut.run.protocol;
  const rows = cut.run.lanes.map((lane) => {
    const most = cut.eventsOf(lane.name).length;
    const input = el("input", { type: "number", min: 0, max: most, value: cut.counts[lane.name] ?? 0, "aria-label": `Events of ${lane.name} inside`, onchange: (event) => cut.set(lane.name, Number(event.target.value)) });
    return el("tr", {}, el("th", { scope: "row" }, plain(lane.name, 40)), el("td", {}, input, ` of ${most}`));
  });
  return [
    el("div", { class: "row" }, runs.length > 1 ? choose : null, toggle, el("button", { type: "button", onclick: () => {
      cut.atStep();
      cut.ask();
    } }, "At this step")),
    ...verdict(app),
    el("table", { class: "counts" }, el("caption", {}, "Events inside"), el("tbody", {}, rows)),
  ];
}

function verdict(app) {
  const { cut } = app;
  const { said } = cut;
  if (!said) return [el("p", { class: "soft" }, "Asking…")];
  if (said.error) return [el("p", { class: "warn" }, plain(said.error, 400))];
  const [first, ...more] = said.words;
  const nearest = (words, counts) => {
    const same = cut.run.lanes.every((lane) => (counts?.[lane.name] ?? 0) === (cut.counts[lane.name] ?? 0));
    return counts && !same ? el("button", { type: "button", onclick: () => cut.setAll(counts) }, words) : null;
  };
  return [
    el("p", { class: said.consistent ? "verdict good" : "verdict bad" }, `${said.consistent ? "✓" : "✗"} ${plain(first, 400)}`),
    ...more.map((words) => el("p", {}, plain(words, 400))),
    el("div", { class: "row" }, nearest("Nearest consistent before", said.below), nearest("Nearest consistent after", said.above)),
  ].filter(Boolean);
}
