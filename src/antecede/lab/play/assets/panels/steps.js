// List of the actions, with buttons to move, change and remove them, and of the copies in flight.

import { el } from "../../../../core/pages/assets/elements.js";
import { stateAfter } from "../state_grid.js";
import { plain } from "../../../../core/pages/assets/text.js";

export function stepsPanel(app) {
  const { comparison } = app;
  const items = comparison.columns.map((column, k) => stepItem(app, comparison.commands[column.command], k));
  return [
    el("p", { class: "soft" }, "Alt and ← → move the chosen action. New actions are inserted after the current step."),
    el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.sendForm({ at: app.step }) }, "Send…"),
      el("button", { type: "button", onclick: () => app.arriveAll() }, "Let all copies arrive"),
      el("button", { type: "button", onclick: () => app.moreForm() }, "Add another action…")),
    el("ol", { class: "steps" }, items),
    ...inFlightList(app),
  ];
}

const WORDS = {
  send: (c) => `${c.at} sends ${c.label}${c.to?.length ? ` to ${c.to.join(", ")}` : ""}${c.topics?.length ? ` about ${c.topics.join(", ")}` : ""}${c.after?.length ? `, in reply to ${c.after.join(", ")}` : ""}`,
  arrive: (c) => `${c.label} arrives at ${c.at}${c.again ? " once more" : ""}`,
  lose: (c) => `${c.label} to ${c.at} is lost`,
  leave: (c) => `${c.at} leaves`,
  tick: (c) => `${c.seconds ?? c.text.replace(/^tick /, "")} s pass`,
};

export function describeCommand(command) {
  return plain(WORDS[command.kind]?.(command) ?? command.text, 160);
}

function stepItem(app, command, k) {
  const here = app.step === k + 1;
  const chosen = app.chosen?.command === command.index;
  const words = describeCommand(command);
  const button = (label, text, action, disabled = false) =>
    el("button", { type: "button", class: "small", "aria-label": `${label}: ${words}`, title: label, disabled, onclick: action }, text);
  return el("li", { class: `${here ? "here" : ""}${chosen ? " chosen" : ""}` },
    el("button", { type: "button", class: "link", "aria-current": here ? "step" : "false", onclick: () => app.chooseCommand(command.index) }, words),
    el("span", { class: "moves" },
      button("Earlier", "↑", () => app.shift(command.index, -1), k === 0),
      button("Later", "↓", () => app.shift(command.index, 1), k === app.comparison.columns.length - 1),
      button("Remove", "✕", () => app.remove(command.index))));
}

/** Return the copies in flight after the current step, with buttons. */
function inFlightList(app) {
  const drawn = app.comparison.runs.filter((one) => one.timelines?.length);
  const run = drawn.find((one) => !one.error) ?? drawn[0];
  if (!run) return [];
  const inFlight = stateAfter(run, app.comparison.columns, app.step).in_flight;
  const rows = inFlight.map(([source, label, target]) => el("li", {},
    el("span", {}, `${plain(label, 40)}: ${plain(source, 40)} → ${plain(target, 40)}`),
    el("span", { class: "moves" },
      el("button", { type: "button", class: "small", onclick: () => app.arrive(target, label, app.step), "aria-label": `${label} arrives at ${target} now` }, "arrives"),
      el("button", { type: "button", class: "small", onclick: () => app.lose(target, label, app.step), "aria-label": `${label} to ${target} is lost` }, "lost"))));
  return [
    el("h3", {}, app.atEnd ? "In flight at the end" : `In flight after step ${app.step}`),
    rows.length ? el("ul", { class: "in-flight" }, rows) : el("p", { class: "soft" }, app.comparison.columns.length ? "nothing" : "nothing: send a message first"),
  ];
}
