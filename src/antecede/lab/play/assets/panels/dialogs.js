// Dialogs for new and changed actions and members.

import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

/** Show a form; `done` receives it on submit and returns a rejection, or null to close. */
export function openDialog(app, title, parts, label, done) {
  const answer = el("p", { class: "warn", role: "alert", hidden: true });
  const form = el("form", { method: "dialog" }, el("h2", { id: "dialog-title" }, title), parts.filter(Boolean), answer,
    el("div", { class: "row ends" },
      el("button", { type: "button", onclick: () => shown.close() }, "Cancel"),
      label ? el("button", { class: "main" }, label) : null));
  const shown = el("dialog", { "aria-labelledby": "dialog-title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const rejection = await done(form);
    if (rejection) {
      answer.textContent = rejection;
      answer.hidden = false;
    } else shown.close();
  });
  shown.addEventListener("close", () => shown.remove());
  document.body.append(shown);
  shown.showModal();
  (form.querySelector("[data-first]") ?? form.querySelector("input, select, button"))?.focus();
  return shown;
}

const field = (label, input, hint = null) => el("label", { class: "field" }, el("span", {}, label), input, hint ? el("small", {}, hint) : null);

function choice(name, options, value) {
  const made = el("select", { name }, options.map(([key, words]) => el("option", { value: key }, words)));
  made.value = String(value);
  return made;
}

function boxes(name, of, checked) {
  return of.map((one) => el("label", { class: "box" }, el("input", { type: "checkbox", name, value: one, checked: checked.includes(one) }), ` ${plain(one, 30)}`));
}

function listPositions(app) {
  const places = app.comparison.columns.map((_, k) => [String(k), k === 0 ? "before all" : `after step ${k}`]);
  return [...places, [String(app.comparison.columns.length), "at the end"]];
}

/** Return the first unused message name: a letter, else m1, m2, ... */
export function freeName(labels) {
  const used = new Set(labels);
  for (const letter of "abcdefghijklmnopqrstuvwxyz") if (!used.has(letter)) return letter;
  for (let k = 1; ; k++) if (!used.has(`m${k}`)) return `m${k}`;
}

/** `given`: {from, at, arrives, arrivesAt} or {change: command}. */
export function sendDialog(app, given) {
  const { comparison } = app;
  const old = given.change ?? null;
  const labels = comparison.commands.filter((one) => one.kind === "send").map((one) => one.label);
  const names = comparison.members.map((one) => one.name);
  const senders = comparison.members.filter((one) => one.role !== "super").map((one) => one.name);
  const from = choice("from", senders.map((one) => [one, plain(one, 40)]), old?.at ?? given.from ?? senders[0]);
  const label = el("input", { name: "label", value: old?.label ?? freeName(labels), required: true, autocomplete: "off", spellcheck: false, "data-first": "" });
  const at = choice("at", listPositions(app), given.at ?? comparison.columns.length);
  const others = labels.filter((one) => one !== old?.label);
  const some = old?.to?.length > 0;
  const topics = comparison.text.split("\n").some((line) => line.trim().startsWith("subscribe ")) || old?.topics?.length;
  const parts = [
    field("Sender", from), field("Message", label, "one word"),
    old ? null : field("When", at),
    others.length ? el("fieldset", {}, el("legend", {}, "In reply to"), boxes("after", others, old?.after ?? [])) : null,
    topics ? field("About topics", el("input", { name: "topics", value: (old?.topics ?? []).join(" "), autocomplete: "off" }), "separated by spaces") : null,
    el("details", { open: some }, el("summary", {}, "To some members only"),
      el("p", { class: "soft" }, "None selected: all members. Only some protocols support a choice."), el("div", { class: "boxes" }, boxes("to", names, old?.to ?? []))),
    given.arrives ? el("p", {}, `It arrives at ${plain(given.arrives, 40)} where you dropped it.`) : null,
  ];
  openDialog(app, old ? "Change the message" : "Send a message", parts, old ? "Change" : "Send", async (form) => {
    const all = new FormData(form);
    const word = String(all.get("label")).trim();
    if (!word || /\s/.test(word)) return "Enter a message name of one word.";
    if (/^[#=]/.test(word)) return "A name must not begin with # or =.";
    if (!old && labels.includes(word)) return `A message named ${word} exists already.`;
    const clauses = [["to", all.getAll("to")], ["about", String(all.get("topics") ?? "").split(/\s+/).filter(Boolean)], ["after", all.getAll("after")]];
    const line = ["send", all.get("from"), word, ...clauses.filter(([, of]) => of.length).flatMap(([clause, of]) => [clause, ...of])].join(" ");
    if (old) return app.tryEdits({ kind: "change", command: old.index, line });
    const place = Number(all.get("at"));
    const edits = [{ kind: "add", at: app.commandAt(place), line }];
    if (given.arrives && given.arrives !== all.get("from")) {
      edits.push({ kind: "add", at: app.commandAt(Math.max(given.arrivesAt, place)) + 1, line: `arrive ${given.arrives} ${word}` });
    }
    return app.tryEdits(...edits);
  });
}

/** Dialog of actions without a gesture. */
export function moreDialog(app) {
  const kinds = [["tick", "Time passes"], ["join", "A member joins"], ["leave", "A member leaves"], ["again", "A copy arrives again"]];
  const names = app.comparison.members.map((one) => [one.name, plain(one.name, 40)]);
  const labels = app.comparison.commands.filter((one) => one.kind === "send").map((one) => [one.label, plain(one.label, 40)]);
  const inner = el("div", {});
  const fieldsOf = {
    tick: () => [field("Seconds", el("input", { name: "seconds", type: "number", min: "0.001", step: "any", value: "1" }))],
    join: () => [field("Joining member", el("input", { name: "newcomer", autocomplete: "off" }), "a new name of one word"), field("Sponsor", choice("member", names, names[0]?.[0]))],
    leave: () => [field("Leaving member", choice("member", names, names[0]?.[0]))],
    again: () => [field("Message", choice("label", labels, labels[0]?.[0])), field("Receiver", choice("member", names, names[0]?.[0]), "a member where it has arrived")],
  };
  const kind = choice("kind", kinds, "tick");
  const show = () => inner.replaceChildren(...fieldsOf[kind.value]());
  kind.onchange = show;
  show();
  const at = choice("at", listPositions(app), app.step);
  openDialog(app, "Another action", [field("Action", kind), inner, field("When", at)], "Add", (form) => {
    const all = new FormData(form);
    const newcomer = String(all.get("newcomer") ?? "").trim();
    const line = {
      tick: () => `tick ${all.get("seconds")}`,
      join: () => `join ${newcomer} sponsor ${all.get("member")}`,
      leave: () => `leave ${all.get("member")}`,
      again: () => `arrive ${all.get("member")} ${all.get("label")} again`,
    }[kind.value]();
    return app.tryEdits({ kind: "add", at: app.commandAt(Number(all.get("at"))), line });
  });
}

export function memberDialog(app, name) {
  const names = app.comparison.members.map((one) => one.name);
  const at = names.indexOf(name);
  const input = el("input", { name: "name", value: name, autocomplete: "off", spellcheck: false, "data-first": "" });
  const act = (text, edit, disabled = false) => el("button", { type: "button", disabled, onclick: async () => {
    const rejection = await app.tryEdits(edit);
    if (rejection) app.say(rejection, "rejected");
    shown.close();
  } }, text);
  const swapped = (by) => {
    const order = [...names];
    [order[at], order[at + by]] = [order[at + by], order[at]];
    return { kind: "member", order };
  };
  const shown = openDialog(app, plain(name, 60), [
    field("Name", input),
    el("div", { class: "row" },
      act("↑ Up", swapped(-1), at <= 0), act("↓ Down", swapped(1), at < 0 || at >= names.length - 1),
      act("Leaves after this step", { kind: "add", at: app.commandAt(app.step), line: `leave ${name}` }),
      act("Remove", { kind: "member", remove: name })),
  ], "Rename", () => {
    const wanted = input.value.trim();
    return wanted === name ? null : app.tryEdits({ kind: "member", rename: [name, wanted] });
  });
}

export function newMemberDialog(app) {
  const names = app.comparison.members.map((one) => one.name);
  let free = names.length + 1;
  while (names.includes(`P${free}`)) free++;
  const input = el("input", { name: "name", value: `P${free}`, autocomplete: "off", spellcheck: false, "data-first": "" });
  const supers = app.comparison.members.filter((one) => one.role === "super").map((one) => one.name);
  const places = [...supers.map((one) => [`behind ${one}`, `internal peer of ${plain(one, 30)}`]), ["external", "external peer"]];
  const where = supers.length ? choice("where", places, places[0][0]) : null;
  const roleOf = () => {
    if (!where) return {};
    return where.value === "external" ? { role: "external" } : { role: "internal", super_peer: where.value.slice("behind ".length) };
  };
  openDialog(app, "New member", [field("Name", input, "one word"), where ? field("Where", where) : null], "Add", () =>
    app.tryEdits({ kind: "member", add: input.value.trim(), ...roleOf() }));
}

/** Dialog of a new scenario without actions. */
export function freshDialog(app) {
  const input = el("input", { name: "members", value: "P1 P2 P3", autocomplete: "off", spellcheck: false, "data-first": "" });
  openDialog(app, "New empty scenario", [field("Members", input, "names, separated by spaces")], "Create", () =>
    app.tryEdits({ kind: "fresh", members: input.value.trim().split(/\s+/).filter(Boolean) }));
}
