// Details of the chosen mark under each protocol, and its actions.

import { el } from "../../../../core/pages/assets/elements.js";
import { describeCommand } from "./steps.js";
import { constantFields, stateAfter } from "../state_grid.js";
import { plain } from "../../../../core/pages/assets/text.js";

export function detailsPanel(app) {
  const { chosen, comparison } = app;
  if (!chosen) return [el("p", {}, "Click or tap a mark to see what each protocol did there."), ...comparison.runs.filter((run) => run.timelines).map(wholeRun), ...legend()];
  if (chosen.kind === "stub") return stubParts(app, chosen);
  const command = comparison.commands[chosen.command];
  if (!command) return legend();
  const k = app.columnOf(command.index);
  return [
    el("h2", {}, `${k >= 0 ? `Step ${k + 1}: ` : ""}${describeCommand(command)}`),
    actions(app, command, k),
    ...comparison.runs.filter((run) => run.timelines?.length).map((run) => happened(app, run, command, k, chosen)),
    textForm(app, command),
  ];
}

function wholeRun(run) {
  return el("div", { class: "run-part" }, el("h3", {}, plain(run.protocol, 60)), el("p", { class: "soft" }, plain(run.title, 120)),
    el("p", {}, `Promises: ${plain(run.promise ?? "", 300)}.`), el("p", {}, plain(run.summary ?? "", 600)));
}

function happened(app, run, command, k, chosen) {
  const now = stateAfter(run, app.comparison.columns, k + 1);
  const before = stateAfter(run, app.comparison.columns, k);
  const done = run.steps.find((one) => one.command === command.index);
  const member = chosen.member ?? command.at;
  const wrong = run.violations.filter((one) => one.command === command.index);
  const parts = [el("h3", {}, plain(run.protocol, 60))];
  if (!done) parts.push(el("p", { class: "soft" }, "This protocol did not get this far."));
  const told = (sentence) => wrong.some((one) => sentence.startsWith(`${one.member} delivers ${one.label} `));
  for (const sentence of done?.sentences ?? []) {
    parts.push(told(sentence) ? el("p", { class: "warn" }, `✗ ${plain(sentence, 300)}`) : el("p", {}, plain(sentence, 300)));
  }
  const fields = now.states[member] ?? {};
  const earlier = before.states[member] ?? {};
  if (done && Object.keys(fields).length) parts.push(keptParts(run, member, fields, earlier));
  const bytes = done?.control_bytes?.[command.label] ?? now.control_bytes?.[command.label];
  if (bytes !== undefined && command.kind === "send") parts.push(el("p", { class: "soft" }, `Control information of ${plain(command.label, 40)}: ${bytes} bytes.`));
  for (const held of now.held[member] ?? []) {
    parts.push(el("p", {}, `${plain(member, 40)} holds back ${plain(held.label, 40)}${held.waits_for.length ? `: it waits for ${plain(held.waits_for.join(", "), 120)}` : ""}.`));
  }
  return el("div", { class: "run-part" }, parts);
}

/** Return the state of a member: changed fields with their former values, then the rest. */
function keptParts(run, member, fields, earlier) {
  const silent = constantFields(run);
  const names = Object.keys(fields);
  const changed = names.filter((name) => earlier[name] !== undefined && earlier[name] !== fields[name]);
  const line = (name) => el("div", {}, el("span", { class: "soft" }, `${plain(name, 40)} `),
    changed.includes(name) ? [el("code", {}, plain(earlier[name], 600)), " → ", el("code", { class: "after" }, plain(fields[name], 600))] : el("code", {}, plain(fields[name], 600)));
  const rest = names.filter((name) => silent.has(name));
  return el("div", { class: "kept-part" },
    el("div", { class: "soft" }, changed.length ? `${plain(member, 40)} state, before → after:` : `${plain(member, 40)} state, unchanged:`),
    names.filter((name) => !silent.has(name)).map(line),
    rest.length ? el("details", {}, el("summary", {}, "Constant fields"), rest.map(line)) : null);
}

function actions(app, command, k) {
  const button = (text, action, disabled = false) => el("button", { type: "button", onclick: action, disabled }, text);
  const made = [
    button("← Move earlier", () => app.shift(command.index, -1), k <= 0),
    button("Move later →", () => app.shift(command.index, 1), k < 0 || k >= app.comparison.columns.length - 1),
  ];
  if (command.kind === "arrive") {
    made.push(button("Lose it instead", () => app.change(command.index, `lose ${command.at} ${command.label}`), Boolean(command.again)));
    made.push(button("Let it arrive again", () => app.add(app.comparison.columns[k + 1]?.command ?? app.comparison.commands.length, `arrive ${command.at} ${command.label} again`)));
  }
  if (command.kind === "lose") made.push(button("Let it arrive instead", () => app.change(command.index, `arrive ${command.at} ${command.label}`)));
  if (command.kind === "send") made.push(button("Change…", () => app.sendForm({ change: command })));
  made.push(button("Remove", () => app.remove(command.index)));
  return el("div", { class: "row" }, made);
}

function textForm(app, command) {
  const field = el("input", { value: command.text, "aria-label": "The action as text", spellcheck: false, autocomplete: "off" });
  return el("form", { class: "row grow", onsubmit: (event) => {
    event.preventDefault();
    app.change(command.index, field.value);
  } }, field, el("button", {}, "Change"));
}

function stubParts(app, chosen) {
  const { label, source, target } = chosen;
  return [
    el("h2", {}, plain(`${label} is in flight from ${source} to ${target}`, 160)),
    el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.arrive(target, label, app.step) }, app.atEnd ? "Let it arrive" : `Let it arrive after step ${app.step}`),
      el("button", { type: "button", onclick: () => app.lose(target, label, app.step) }, "Lose it"),
      el("button", { type: "button", onclick: () => app.arriveAll() }, "Let all copies arrive")),
    el("p", { class: "soft" }, "Alternative: drag it to its arrival."),
  ];
}

export function legend() {
  const lines = [
    ["●", "sent"], ["◆", "arrived and delivered, or delivered later"], ["○ ▨", "arrived, held back: the hatched bar says what it waits for"],
    ["✗", "delivered before a cause of the checked order: a violation"], ["✕", "lost, or discarded"], ["⠿", "a copy in flight: drag it to its arrival"],
    ["•", "relayed by a super peer, or a control message"],
  ];
  return [el("h3", {}, "Marks"), el("dl", {}, lines.map(([mark, what]) => [el("dt", {}, mark), el("dd", {}, what)]))];
}
