// Cut of one run: events inside by member, the server's verdict, and a line with a handle on each
// timeline.

import { post } from "../requests.js";
import { shape } from "../drawing.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

export class CutLine {
  constructor(app) {
    this.app = app;
    this.on = false;
    this.protocol = null; // protocol of the run with the cut
    this.counts = {};
    this.answer = null; // the server's answer
    this.waiting = 0;
  }

  get run() {
    const { runs } = this.app.comparison;
    return runs.find((run) => run.protocol === this.protocol) ?? runs.find((run) => run.timelines?.length) ?? null;
  }

  eventsOf(member) {
    return (this.run?.events ?? []).filter((event) => event.member === member);
  }

  show(on) {
    this.on = on;
    if (on && !Object.keys(this.counts).length) this.atStep();
    this.ask();
  }

  /** Set the cut to the current step; at the end of the run, to its middle. */
  atStep() {
    const { comparison, step } = this.app;
    const columns = comparison.columns;
    const last = this.app.atEnd ? Math.ceil(columns.length / 2) : step;
    const inside = new Set(columns.slice(0, last).map((column) => column.command));
    this.counts = {};
    for (const timeline of this.run?.timelines ?? []) this.counts[timeline.name] = this.eventsOf(timeline.name).filter((event) => inside.has(event.command)).length;
  }

  /** Adapt the cut to a changed comparison. */
  fit() {
    if (!this.on) {
      this.counts = {};
      return;
    }
    for (const name of Object.keys(this.counts)) if (!this.run?.timelines.some((timeline) => timeline.name === name)) delete this.counts[name];
    for (const timeline of this.run?.timelines ?? []) this.counts[timeline.name] = Math.min(this.counts[timeline.name] ?? 0, this.eventsOf(timeline.name).length);
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
    this.answer = null;
    this.app.redraw();
    if (!this.on || !this.run) return;
    const { text, relation } = this.app;
    try {
      const answer = await post("cut", { text, protocol: this.run.protocol, relation, counts: this.counts });
      if (turn === this.waiting) this.answer = answer;
    } catch (error) {
      if (turn === this.waiting) this.answer = { error: error.message };
    }
    if (turn === this.waiting) this.app.redraw();
  }

  /** Return a text that changes with the cut of a run. */
  stateFor(run) {
    return this.on && run === this.run ? JSON.stringify([this.counts, this.answer, this.dragged ?? null]) : "";
  }

  /** Return the arrows to mark: `crossing` ones make the cut inconsistent, `channels` are in flight. */
  marksFor(run) {
    if (!this.on || run !== this.run) return null;
    const key = (label, source, target) => JSON.stringify([label, source, target]);
    const crossing = new Set((this.answer?.crossing ?? []).map(([label, source, target]) => key(label, source, target)));
    const channels = new Set((this.answer?.channels ?? []).flatMap((one) => one.labels.map((label) => key(label, one.source, one.target))));
    return { crossing, channels };
  }

  // -- its line ---------------------------------------------------------------------------------

  /** Return the x at which the line crosses a timeline. */
  xOn(view, member) {
    const { layout } = view;
    const room = 11 * layout.unit;
    return Math.max(room, Math.min(layout.width - room, this.between(layout, member)));
  }

  /** Return the x between the last event inside and the first outside. */
  between(layout, member) {
    const events = this.eventsOf(member);
    const count = this.counts[member] ?? 0;
    const [inside, outside] = [events[count - 1], events[count]];
    if (!inside && !outside) return layout.seam(Math.ceil(layout.columns.length / 2));
    if (!inside) return layout.x(outside.at - 0.5);
    if (!outside) return layout.x(inside.at + 0.5);
    return layout.x(Math.min(inside.at + 0.5, (inside.at + outside.at) / 2));
  }

  draw(view) {
    if (!this.on || view.run !== this.run) return;
    const { layout } = view;
    const { unit } = layout;
    const points = view.run.timelines.map((timeline, k) => [this.dragged?.timeline === k ? this.dragged.x : this.xOn(view, timeline.name), layout.timelineY[k]]);
    if (!points.length) return;
    const all = [[points[0][0], points[0][1] - 22 * unit], ...points, [points.at(-1)[0], Math.min(layout.height - 2, points.at(-1)[1] + 22 * unit)]];
    const wrong = this.answer && this.answer.consistent === false;
    const css = `cut${wrong ? " wrong" : ""}`;
    view.svg.append(shape("g", { class: css },
      shape("polyline", { class: "cut-line", points: all.map((point) => point.join(",")).join(" "), "stroke-width": 3.5 * unit }),
      points.map(([x, y], k) => this.handle(view, k, x, y))));
  }

  handle(view, k, x, y) {
    const { unit } = view.layout;
    const name = view.run.timelines[k].name;
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
    const { layout } = view;
    const { unit } = layout;
    const found = view.run.timelines.findIndex((timeline, k) => Math.abs(layout.timelineY[k] - y) < 18 * unit && Math.abs(this.xOn(view, timeline.name) - x) < 13 * unit);
    return found < 0 ? null : found;
  }

  drag(view, timeline, x) {
    this.dragged = { timeline, x };
    view.svg.querySelector(".cut")?.remove();
    this.draw(view);
  }

  drop(view, timeline, x) {
    this.dragged = null;
    const { layout } = view;
    const name = view.run.timelines[timeline].name;
    this.set(name, this.eventsOf(name).filter((event) => layout.x(event.at) < x).length);
  }
}

// -- side panel ----------------------------------------------------------------------------------

export function cutPanel(app) {
  const { cut, comparison } = app;
  const toggle = el("button", { type: "button", class: "main", "aria-pressed": String(cut.on), onclick: () => cut.show(!cut.on) }, cut.on ? "Remove the cut" : "Draw a cut");
  if (!cut.on || !cut.run) return [el("p", {}, "A cut is a number of events of each member. A consistent cut is a state that the group can have had. Drag the handles on the timelines."), toggle];
  const runs = comparison.runs.filter((run) => run.timelines?.length);
  const choose = el("select", { "aria-label": "Protocol of the cut", onchange: (event) => {
    cut.protocol = event.target.value;
    cut.fit();
  } }, runs.map((run) => el("option", { value: run.protocol }, `under ${plain(run.protocol, 60)}`)));
  choose.value = cut.run.protocol;
  const rows = cut.run.timelines.map((timeline) => {
    const most = cut.eventsOf(timeline.name).length;
    const input = el("input", { type: "number", min: 0, max: most, value: cut.counts[timeline.name] ?? 0, "aria-label": `Events of ${timeline.name} inside`, onchange: (event) => cut.set(timeline.name, Number(event.target.value)) });
    return el("tr", {}, el("th", { scope: "row" }, plain(timeline.name, 40)), el("td", {}, input, ` of ${most}`));
  });
  return [
    el("div", { class: "row" }, runs.length > 1 ? choose : null, toggle, el("button", { type: "button", onclick: () => {
      cut.atStep();
      cut.ask();
    } }, "At the current step")),
    ...verdict(app),
    el("table", { class: "counts" }, el("caption", {}, "Events inside"), el("tbody", {}, rows)),
  ];
}

function verdict(app) {
  const { cut } = app;
  const { answer } = cut;
  if (!answer) return [el("p", { class: "soft" }, "Loading…")];
  if (answer.error) return [el("p", { class: "warn" }, plain(answer.error, 400))];
  const [first, ...more] = answer.sentences;
  const nearest = (words, counts) => {
    const same = cut.run.timelines.every((timeline) => (counts?.[timeline.name] ?? 0) === (cut.counts[timeline.name] ?? 0));
    return counts && !same ? el("button", { type: "button", onclick: () => cut.setAll(counts) }, words) : null;
  };
  return [
    el("p", { class: answer.consistent ? "verdict good" : "verdict bad" }, `${answer.consistent ? "✓" : "✗"} ${plain(first, 400)}`),
    ...more.map((words) => el("p", {}, plain(words, 400))),
    el("div", { class: "row" }, nearest("Greatest consistent cut below", answer.below), nearest("Least consistent cut above", answer.above)),
  ].filter(Boolean);
}
