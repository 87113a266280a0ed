// The actions as a list: each can be moved, changed and taken out without a pointer; and what is on
// its way, to arrive or be lost where one stands.

import { el } from "../../../../core/pages/assets/elements.js";
import { stateAfter } from "./tables.js";
import { plain } from "../../../../core/pages/assets/text.js";

export function stepsPanel(app) {
  const { bench } = app;
  const items = bench.columns.map((column, k) => stepItem(app, bench.commands[column.command], k));
  return [
    el("p", { class: "soft" }, "Alt and ← → move the chosen action; what you add comes after the step you stand at."),
    el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.sendForm({ at: app.step }) }, "Send…"),
      el("button", { type: "button", onclick: () => app.arriveAll() }, "Let all arrive"),
      el("button", { type: "button", onclick: () => app.moreForm() }, "Other action…")),
    el("ol", { class: "steps" }, items),
    ...onTheirWay(app),
  ];
}

const WORDS = {
  send: (c) => `${c.at} sends ${c.label}${c.to?.length ? ` to ${c.to.join(", ")}` : ""}${c.topics?.length ? ` about ${c.topics.join(", ")}` : ""}${c.after?.length ? `, in answer to ${c.after.join(", ")}` : ""}`,
  arrive: (c) => `${c.label} arrives at ${c.at}${c.again ? " once more" : ""}`,
  lose: (c) => `${c.label} to ${c.at} is lost`,
  leave: (c) => `${c.at} leaves`,
  tick: (c) => `${c.seconds ?? c.text.replace(/^tick /, "")} s pass`,
};

export function commandWords(command) {
  return plain(WORDS[command.kind]?.(command) ?? command.text, 160);
}

function stepItem(app, command, k) {
  const here = app.step === k + 1;
  const chosen = app.chosen?.command === command.index;
  const words = commandWords(command);
  const button = (label, text, action, disabled = false) =>
    el("button", { type: "button", class: "small", "aria-label": `${label}: ${words}`, title: label, disabled, onclick: action }, text);
  return el("li", { class: `${here ? "here" : ""}${chosen ? " chosen" : ""}` },
    el("button", { type: "button", class: "link", "aria-current": here ? "step" : "false", onclick: () => app.chooseCommand(command.index) }, words),
    el("span", { class: "moves" },
      button("Earlier", "↑", () => app.shift(command.index, -1), k === 0),
      button("Later", "↓", () => app.shift(command.index, 1), k === app.bench.columns.length - 1),
      button("Take out", "✕", () => app.remove(command.index))));
}

/** What is on its way after the step shown, with buttons. */
function onTheirWay(app) {
  const drawn = app.bench.runs.filter((one) => one.lanes?.length);
  const run = drawn.find((one) => !one.error) ?? drawn[0];
  if (!run) return [];
  const flying = stateAfter(run, app.bench.columns, app.step).flying;
  const rows = flying.map(([source, label, target]) => el("li", {},
    el("span", {}, `${plain(label, 40)}: ${plain(source, 40)} → ${plain(target, 40)}`),
    el("span", { class: "moves" },
      el("button", { type: "button", class: "small", onclick: () => app.arrive(target, label, app.step), "aria-label": `${label} arrives at ${target} now` }, "arrives"),
      el("button", { type: "button", class: "small", onclick: () => app.lose(target, label, app.step), "aria-label": `${label} to ${target} is lost` }, "lost"))));
  return [
    el("h3", {}, app.atEnd ? "On their way at the end" : `On their way after step ${app.step}`),
    rows.length ? el("ul", { class: "flying" }, rows) : el("p", { class: "soft" }, app.bench.columns.length ? "nothing" : "nothing: let somebody send"),
  ];
}
