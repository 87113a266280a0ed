// The playground: its state, requests to the server, and drawing.

import { get, getText, post } from "./requests.js";
import { cutPanel, CutLine } from "./panels/cut.js";
import { detailsPanel } from "./panels/details.js";
import { freshDialog, memberDialog, moreDialog, newMemberDialog, sendDialog } from "./panels/dialogs.js";
import { el } from "../../../core/pages/assets/elements.js";
import { Search, searchPanel } from "./panels/search.js";
import { helpPanel } from "./panels/help.js";
import { momentToHash, hashToMoment, History } from "./history.js";
import { buildRows, drawRow } from "./rows.js";
import { stepsPanel } from "./panels/steps.js";
import { Exercises, exercisesPanel } from "./panels/exercises.js";
import { openFile, saveFile, textPanel } from "./panels/scenario_text.js";
import { exportStep, fitPrint } from "./export.js";
import { plain } from "../../../core/pages/assets/text.js";

const PANELS = {
  steps: ["Steps", stepsPanel], details: ["Details", detailsPanel], cut: ["Cut", cutPanel], search: ["Search", searchPanel],
  exercises: ["Exercises", exercisesPanel], text: ["Text", textPanel], help: ["Help", helpPanel],
};
const HINT = "Drag an arrival ◆ along its timeline to try another order. Drag from a timeline to send. ◀ ▶ move step by step.";
const EMPTY_HINT = "No message has been sent yet: drag from one timeline to another, or press “Send…”.";
const CHANGED = "The scenario has just changed. Check it and try again.";
const SHOWN_MS = 8000; // duration of a message in the large mode, ms
const WATCH_MS = 2000; // interval of checks for a changed protocol file, ms

const $ = (id) => document.getElementById(id);

class App {
  constructor(start) {
    this.start = start;
    this.comparison = null;
    this.text = start.text;
    this.protocols = start.protocols;
    this.relation = null;
    this.stepAt = null; // steps done; null: all, including later additions
    this.chosen = null;
    this.panel = null;
    this.draft = null;
    this.textRejection = null;
    this.views = [];
    this.history = new History();
    this.cut = new CutLine(this);
    this.search = new Search(this);
    this.exercises = new Exercises(this);
    this.large = false;
    this.unit = 1; // scale of the diagrams
    this.columns = 1; // number of diagrams side by side
    this.under = false; // tables below the diagrams
    this.hidesOutcomes = false; // hide the outcome of later steps
    this.changing = Promise.resolve();
    this.pressing = Promise.resolve();
  }

  get step() {
    return Math.min(this.stepAt ?? Infinity, this.comparison.columns.length);
  }

  get atEnd() {
    return this.step >= this.comparison.columns.length;
  }

  /** Return the name of saved files, without extension. */
  fileName() {
    return (this.comparison.title || "scenario").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "scenario";
  }

  columnOf(command) {
    return this.comparison.columns.findIndex((column) => column.command === command);
  }

  /** Return the command at which an action after a number of steps is inserted. */
  commandAt(place) {
    return this.comparison.columns[place]?.command ?? this.comparison.commands.length;
  }

  variantsOf(protocol) {
    return this.start.names.find((one) => one.name === protocol)?.variants ?? [];
  }

  // -- requests -----------------------------------------------------------------------------------

  /** Run work after all earlier work; it starts from the state that the earlier work left. */
  enqueue(work) {
    const done = this.changing.then(work);
    this.changing = done.catch(() => {});
    return done;
  }

  /** Handle key presses on the chosen action, each after the previous one has been applied. */
  pressed(work) {
    this.pressing = this.pressing.then(work).catch(() => {});
  }

  /** Show a moment, or the result of a function; returns a rejection text, or null. */
  show(moment, how) {
    return this.enqueue(() => this.played(moment instanceof Function ? moment() : moment, how));
  }

  async played(moment, { keep = true } = {}) {
    try {
      this.take(await post("run", moment), moment, keep);
      return null;
    } catch (error) {
      return this.formatError(error);
    }
  }

  /** Apply edits in order, as one moment; returns a rejection text, or null. */
  tryEdits(...edits) {
    const { text } = this;
    // Numbers of actions refer to the text that the user saw.
    return this.enqueue(() => (this.text === text ? this.changed(edits) : CHANGED));
  }

  async changed(edits) {
    const { protocols, relation } = this;
    let { text } = this;
    let comparison = null;
    const notes = [];
    try {
      for (const edit of edits) {
        comparison = await post("edit", { text, protocols, relation, edit });
        ({ text } = comparison);
        if (comparison.note) notes.push(comparison.note);
      }
      this.take(comparison, { text, protocols, relation }, true);
      this.say(notes.join(" "));
      return null;
    } catch (error) {
      return this.formatError(error);
    }
  }

  formatError(error) {
    return `${error.line ? `Line ${error.line}: ` : ""}${error.message}`;
  }

  async edit(...edits) {
    const rejection = await this.tryEdits(...edits);
    if (rejection) this.say(rejection, "rejected");
    return rejection === null;
  }

  take(comparison, moment, keep) {
    const before = this.comparison?.commands[this.chosen?.command];
    this.comparison = comparison;
    Object.assign(this, { text: moment.text, protocols: moment.protocols, relation: moment.relation ?? null });
    this.draft = null;
    this.textRejection = null;
    if (keep) this.history.add({ text: this.text, protocols: this.protocols, relation: this.relation });
    this.restoreChoice(before);
    this.cut.fit();
    this.build();
    this.remember();
  }

  /** Keep the chosen action chosen after it moved. */
  restoreChoice(before) {
    if (!this.chosen || this.chosen.kind === "stub") {
      this.chosen = null;
      return;
    }
    const same = this.comparison.commands.filter((one) => before && one.text === before.text);
    same.sort((a, b) => Math.abs(a.index - before.index) - Math.abs(b.index - before.index));
    this.chosen = same.length ? { ...this.chosen, command: same[0].index } : null;
  }

  /** `hidesOutcomes`: start at step 0 and hide the outcome of later steps. */
  async openText(text, what, protocols = null, relation = null, hidesOutcomes = false) {
    const rejection = await this.show({ text, protocols: protocols ?? this.protocols, relation });
    if (rejection) this.say(`${plain(what, 80)}: ${rejection}`, "rejected");
    else {
      this.setHidesOutcomes(hidesOutcomes);
      this.goTo(hidesOutcomes ? 0 : Infinity);
      this.say(`${plain(what, 120)} is open${hidesOutcomes ? "; outcomes are hidden until their step: ▶" : ""}. Undo returns to the previous scenario.`);
    }
    return rejection;
  }

  applyText(text) {
    return this.enqueue(() => this.runText(text));
  }

  async runText(text) {
    const { protocols, relation } = this;
    try {
      this.take(await post("run", { text, protocols, relation }), { text, protocols, relation }, true);
    } catch (error) {
      this.textRejection = error;
      this.draft = text;
      this.redrawPanel();
    }
  }

  // -- actions ----------------------------------------------------------------------------------

  moveTo(command, slot) {
    const k = this.columnOf(command);
    if (k < 0 || slot === k || slot === k + 1) return undefined;
    const carry = this.comparison.commands[command].kind === "send";
    return this.edit({ kind: "move", command, to: this.commandAt(slot), ...(carry ? { carry } : {}) });
  }

  /** Move an action one step earlier or later. */
  shift(command, by) {
    const k = this.columnOf(command);
    const slot = by < 0 ? k - 1 : k + 2;
    if (k < 0 || slot < 0 || slot > this.comparison.columns.length) return undefined;
    return this.moveTo(command, slot);
  }

  add(at, line) {
    return this.edit({ kind: "add", at, line });
  }

  change(command, line) {
    return this.edit({ kind: "change", command, line });
  }

  remove(command) {
    return this.edit({ kind: "remove", command });
  }

  arriveAll() {
    return this.edit({ kind: "arrive-all" });
  }

  /** Let a copy in flight after `slot` steps arrive there; a later arrival is moved. */
  arrive(member, label, slot) {
    return this.ended("arrive", member, label, slot);
  }

  lose(member, label, slot) {
    return this.ended("lose", member, label, slot);
  }

  ended(word, member, label, slot) {
    const later = this.comparison.commands.find((one) => ["arrive", "lose"].includes(one.kind) && !one.again && one.at === member && one.label === label && this.columnOf(one.index) >= slot);
    const line = `${word} ${member} ${label}`;
    if (!later) return this.add(this.commandAt(slot), line);
    if (later.kind === word) return this.moveTo(later.index, slot);
    return this.change(later.index, line);
  }

  sendForm(given) {
    sendDialog(this, given);
  }

  moreForm() {
    moreDialog(this);
  }

  memberForm(name) {
    memberDialog(this, name);
  }

  // -- protocols ----------------------------------------------------------------------------------

  /** `protocols`: names, or a function of the names that are shown. */
  async setProtocols(protocols) {
    const namesOf = protocols instanceof Function ? protocols : () => protocols;
    const rejection = await this.show(() => ({ text: this.text, protocols: namesOf(this.protocolsShown()), relation: this.relation }));
    if (rejection) this.say(rejection, "rejected");
  }

  setProtocol(index, name) {
    const old = this.protocolsShown()[index];
    return this.setProtocols((shown) => shown.map((one) => (one === old ? name : one)));
  }

  removeProtocol(index) {
    const old = this.protocolsShown()[index];
    return this.setProtocols((shown) => shown.filter((one) => one !== old));
  }

  swapProtocols(a, b) {
    const names = this.protocolsShown();
    const instead = new Map([[names[a], names[b]], [names[b], names[a]]]);
    return this.setProtocols((shown) => shown.map((one) => instead.get(one) ?? one));
  }

  protocolsShown() {
    return this.comparison.runs.map((run) => run.protocol);
  }

  async setRelation(relation) {
    const rejection = await this.show(() => ({ text: this.text, protocols: this.protocols, relation: relation || null }));
    if (rejection) this.say(rejection, "rejected");
  }

  // -- undo and steps -----------------------------------------------------------------------------

  travel(by) {
    return this.enqueue(() => this.applyTravel(by));
  }

  async applyTravel(by) {
    if (by > 0 ? !this.history.canUndo : !this.history.canRedo) return;
    const rejection = await this.played(this.history.back(by), { keep: false });
    if (rejection) this.history.back(-by);
    this.say(rejection ?? (by > 0 ? "Undone." : "Redone."), rejection ? "rejected" : "");
  }

  goTo(step) {
    this.stepAt = step >= this.comparison.columns.length ? null : Math.max(0, step);
    this.redraw();
    this.remember();
    const seen = this.views.find((view) => view.layout);
    if (!seen) return;
    const x = seen.layout.seam(this.step);
    const { scroller } = seen;
    if (x < scroller.scrollLeft + 40 || x > scroller.scrollLeft + scroller.clientWidth - 40) scroller.scrollLeft = x - scroller.clientWidth / 2;
  }

  choose(chosen) {
    this.chosen = chosen;
    if (chosen) this.showPanel("details");
    this.redraw();
  }

  chooseCommand(index) {
    const command = this.comparison.commands[index];
    const timeline = this.comparison.runs.find((run) => run.timelines?.length)?.timelines.findIndex((one) => one.name === command.at) ?? -1;
    this.chosen = { kind: command.kind, command: index, timeline, label: command.label, member: command.at };
    this.goTo(this.columnOf(index) + 1);
  }

  // -- drawing ------------------------------------------------------------------------------------

  build() {
    if (!this.comparison) return;
    const left = this.views[0]?.scroller.scrollLeft ?? 0;
    this.views = buildRows(this, $("runs"));
    for (const view of this.views) view.scroller.scrollLeft = left;
    $("title").textContent = plain(this.comparison.title || "antecede play", 120);
    $("source").textContent = plain(this.comparison.source ?? "", 200);
    document.title = `${plain(this.comparison.title || "playground", 60)} · antecede`;
    $("undo").disabled = !this.history.canUndo;
    $("redo").disabled = !this.history.canRedo;
    $("relation").value = this.relation ?? "";
    $("again").hidden = !this.comparison.runs.some((run) => run.own_file);
    this.redraw();
  }

  redraw() {
    if (!this.comparison) return;
    for (const view of this.views) drawRow(this, view);
    const { length } = this.comparison.columns;
    const slider = $("step");
    slider.max = length;
    slider.value = this.step;
    slider.disabled = length === 0;
    const command = this.step ? this.comparison.commands[this.comparison.columns[this.step - 1].command] : null;
    const where = `step ${this.step} of ${length}`;
    $("where").textContent = where;
    slider.setAttribute("aria-valuetext", command ? `${where}: ${command.text}` : where);
    $("first").disabled = $("back").disabled = this.step === 0;
    $("last").disabled = $("forth").disabled = this.atEnd;
    $("cut").setAttribute("aria-pressed", String(this.cut.on));
    this.redrawPanel();
  }

  showPanel(name) {
    const opens = this.panel === null || name === null;
    this.panel = name;
    $("side").hidden = name === null;
    for (const key of Object.keys(PANELS)) $(`tab-${key}`).setAttribute("aria-selected", String(key === name));
    $("open-side").setAttribute("aria-expanded", String(name !== null));
    if (opens) this.build();
    else this.redrawPanel();
  }

  redrawPanel() {
    if (!this.panel || !this.comparison) return;
    const holder = $("panel");
    const focusable = () => [...holder.querySelectorAll("button, input, select, textarea, summary")];
    const at = focusable().indexOf(document.activeElement);
    const top = this.drawnPanel === this.panel ? holder.scrollTop : 0;
    holder.replaceChildren(...PANELS[this.panel][1](this).filter(Boolean));
    holder.scrollTop = top;
    if (at >= 0 && this.drawnPanel === this.panel) focusable()[at]?.focus();
    this.drawnPanel = this.panel;
  }

  /** Show a message; without text, the hint. */
  say(words, kind = "") {
    const answer = $("message");
    clearTimeout(this.saying);
    if (words && this.large) this.saying = setTimeout(() => this.say(""), SHOWN_MS); // it covers a diagram
    answer.className = words ? kind : "hint";
    answer.textContent = words ? `${kind === "rejected" ? "⚠ " : ""}${plain(words, 500)}` : this.comparison?.columns.length === 0 ? EMPTY_HINT : HINT;
  }

  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => {
      const { text, protocols, relation, stepAt, hidesOutcomes } = this;
      history.replaceState(null, "", momentToHash({ text, protocols, relation, step: stepAt, exercise: this.exercises.open?.name, hidesOutcomes }));
    }, 200);
  }

  theme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").setAttribute("aria-pressed", String(name === "dark"));
    keep("theme", name);
  }

  /** Hide or show the outcome of later steps, which answers exercises. */
  setHidesOutcomes(hidesOutcomes) {
    this.hidesOutcomes = hidesOutcomes;
    $("hide-outcomes").setAttribute("aria-pressed", String(hidesOutcomes));
    this.redraw();
    this.remember();
  }

  enlarge(large) {
    this.large = large;
    document.documentElement.dataset.size = large ? "large" : "";
    $("large").setAttribute("aria-pressed", String(large));
    keep("large", large ? "yes" : "");
    this.build();
  }
}

// User preferences. Some browsers forbid local storage.
function keep(name, value) {
  try {
    localStorage.setItem(`antecede-play-${name}`, value);
  } catch {
    // not stored
  }
}

function kept(name) {
  try {
    return localStorage.getItem(`antecede-play-${name}`);
  } catch {
    return null;
  }
}

function wire(app) {
  const press = (id, action) => $(id).addEventListener("click", action);
  press("undo", () => app.travel(1));
  press("redo", () => app.travel(-1));
  press("send", () => app.sendForm({ at: app.step }));
  press("arrive-all", () => app.arriveAll());
  press("add-member", () => newMemberDialog(app));
  press("cut", () => {
    app.cut.show(!app.cut.on);
    if (app.cut.on) app.showPanel("cut");
  });
  press("again", () => app.setProtocols(app.protocols));
  press("fresh", () => freshDialog(app));
  press("open", () => openFile(app));
  press("save", () => saveFile(app));
  press("theme", () => app.theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  press("large", () => app.enlarge(!app.large));
  press("open-side", () => app.showPanel(app.panel ? null : "steps"));
  press("close-side", () => app.showPanel(null));
  press("search", () => app.showPanel("search"));
  press("exercises", () => app.showPanel("exercises"));
  press("hide-outcomes", () => {
    app.setHidesOutcomes(!app.hidesOutcomes);
    app.say(app.hidesOutcomes ? "Outcomes are hidden until their step: ▶ shows the next." : "Later steps are dimmed.");
  });
  press("export", () => exportStep(app));
  press("tools", () => {
    $("tools").setAttribute("aria-pressed", String(document.body.classList.toggle("all-tools")));
    app.build();
  });
  press("tables", () => {
    const off = document.body.classList.toggle("bare");
    $("tables").setAttribute("aria-pressed", String(!off));
    app.build();
  });
  press("first", () => app.goTo(0));
  press("back", () => app.goTo(app.step - 1));
  press("forth", () => app.goTo(app.step + 1));
  press("last", () => app.goTo(Infinity));
  $("step").addEventListener("input", (event) => app.goTo(Number(event.target.value)));
  $("relation").addEventListener("change", (event) => app.setRelation(event.target.value));
  $("add-protocol").addEventListener("change", (event) => {
    const name = event.target.value;
    event.target.value = "";
    if (name && app.protocolsShown().includes(name)) app.say(`${name} is shown already.`, "rejected");
    else if (name) app.setProtocols((shown) => [...shown, name]).then(() => app.views.at(-1).row.scrollIntoView({ block: "nearest" }));
  });
  for (const [key, [words]] of Object.entries(PANELS)) {
    $("tabs").append(el("button", { type: "button", id: `tab-${key}`, role: "tab", "aria-controls": "panel", onclick: () => app.showPanel(key) }, words));
  }
  document.addEventListener("keydown", (event) => key(app, event));
  let resizing = 0;
  window.addEventListener("resize", () => {
    clearTimeout(resizing);
    resizing = setTimeout(() => app.build(), 120);
  });
}

function fillMenus(app) {
  const { names, own_files: ownFiles, relations } = app.start;
  $("add-protocol").append(
    ...ownFiles.map((one) => el("option", { value: one }, plain(one, 80))),
    ...names.map(({ name, title }) => el("option", { value: name }, plain(title === name ? name : `${name}: ${title}`, 80))));
  $("relation").append(...relations.map((one) => el("option", { value: one }, plain(one, 40))));
}

const KEYS = {
  ArrowLeft: (app) => app.goTo(app.step - 1), ArrowRight: (app) => app.goTo(app.step + 1), Home: (app) => app.goTo(0), End: (app) => app.goTo(Infinity),
  s: (app) => app.sendForm({ at: app.step }), a: (app) => app.arriveAll(), c: () => $("cut").click(), f: (app) => app.showPanel("search"), e: (app) => app.showPanel("exercises"),
  x: (app) => app.showPanel("text"), l: (app) => app.showPanel("steps"), d: (app) => app.showPanel("details"), "?": (app) => app.showPanel("help"), m: (app) => newMemberDialog(app),
  u: (app) => app.travel(1), r: (app) => app.travel(-1), t: () => $("theme").click(), p: () => $("large").click(), h: () => $("hide-outcomes").click(), i: (app) => exportStep(app), b: () => $("tables").click(),
  Enter: (app) => app.step && app.chooseCommand(app.comparison.columns[app.step - 1].command) === undefined && app.showPanel("details"),
  Delete: (app) => app.pressed(() => chosenCommand(app) !== null && app.remove(chosenCommand(app))), Escape: (app) => app.showPanel(null),
};

/** Return the action that keys move and remove: the chosen one, or the current step. */
function chosenCommand(app) {
  return app.chosen?.command ?? app.comparison.columns[app.step - 1]?.command ?? null;
}

function key(app, event) {
  if (!app.comparison || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=range]), textarea, select")) return;
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key.toLowerCase() === "z") app.travel(event.shiftKey ? -1 : 1);
  else if (command && event.key.toLowerCase() === "y") app.travel(-1);
  else if (command) return;
  else if (event.altKey && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
    app.pressed(() => {
      const chosen = chosenCommand(app);
      if (chosen === null) return undefined;
      if (app.chosen?.command !== chosen) app.chooseCommand(chosen);
      return app.shift(chosen, event.key === "ArrowLeft" ? -1 : 1);
    });
  } else if (event.altKey) return;
  else if (event.key === "Enter" && event.target.closest("button, summary, a")) return;
  else if (KEYS[event.key]) KEYS[event.key](app);
  else return;
  event.preventDefault();
}

/** Run again after a change of a user's protocol file. */
function watch(app) {
  let { version } = app.start;
  setInterval(async () => {
    if (document.hidden || !app.comparison?.runs.some((run) => run.own_file)) return;
    const now = await getText("version").catch(() => version);
    if (now === version) return;
    version = now;
    await app.setProtocols(app.protocols);
    app.say("The file has changed: run again.");
  }, WATCH_MS);
}

async function begin() {
  const loading = $("loading");
  try {
    const app = new App(await get("start"));
    globalThis.playground = app;
    fillMenus(app);
    wire(app);
    app.theme(kept("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    if (kept("large") === "yes") app.enlarge(true);
    const given = hashToMoment(location.hash);
    app.stepAt = given.step ?? null;
    app.hidesOutcomes = Boolean(given.hidesOutcomes);
    $("hide-outcomes").setAttribute("aria-pressed", String(app.hidesOutcomes));
    const moment = { text: given.text ?? app.start.text, protocols: given.protocols ?? app.start.protocols, relation: given.text === undefined ? app.start.relation ?? null : given.relation ?? null };
    let rejection = await app.show(moment);
    if (rejection && given.text !== undefined) {
      // The address has no valid scenario: show the one of the command line.
      const again = await app.show({ text: app.start.text, protocols: app.start.protocols, relation: null });
      if (!again) app.say(`The scenario in the address cannot be shown: ${rejection}`, "rejected");
      rejection = again;
    } else app.say("");
    loading.remove();
    if (rejection) {
      app.say(rejection, "rejected");
      return;
    }
    const exercise = given.exercise ?? (given.text === undefined ? app.start.exercise : null);
    if (exercise) await app.exercises.begin(exercise, given.text === undefined);
    fitPrint();
    watch(app);
  } catch (error) {
    loading.textContent = error.message;
  }
}

begin();
