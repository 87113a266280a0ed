// The bench: what is on it, what is asked of the server, and who draws what.

import { asked, fetched, fetchedText } from "./requests.js";
import { cutPanel, CutLine } from "./panels/cut.js";
import { detailsPanel } from "./panels/details.js";
import { freshDialog, memberDialog, moreDialog, newMemberDialog, sendDialog } from "./panels/dialogs.js";
import { el } from "../../../core/pages/assets/elements.js";
import { Finder, findPanel } from "./panels/search.js";
import { helpPanel } from "./panels/help.js";
import { hashOfMoment, momentOf, Past } from "./history.js";
import { buildRows, drawRow } from "./rows.js";
import { stepsPanel } from "./panels/steps.js";
import { Tasks, tasksPanel } from "./panels/exercises.js";
import { openFile, saveFile, textPanel } from "./panels/scenario_text.js";
import { plain } from "../../../core/pages/assets/text.js";

const PANELS = {
  steps: ["Steps", stepsPanel], details: ["Details", detailsPanel], cut: ["Cut", cutPanel], find: ["Find", findPanel],
  exercises: ["Exercises", tasksPanel], text: ["Text", textPanel], help: ["Help", helpPanel],
};
const HINT = "Drag an arrival ◆ along its lane: every protocol plays the new order. Drag from a lane to send. ◀ ▶ go step by step.";
const EMPTY_HINT = "Nobody has sent anything yet: drag from a lane to another, or press “Send…”.";
const CHANGED = "The scene has just changed: look at it again, and then once more.";
const LOOK = 2000; // ms between two looks whether a protocol's own file has changed

const $ = (id) => document.getElementById(id);

class App {
  constructor(start) {
    this.start = start;
    this.bench = null;
    this.text = start.text;
    this.protocols = start.protocols;
    this.judge = null;
    this.stepAt = null; // steps done; null: all, also when more come
    this.chosen = null;
    this.panel = null;
    this.draft = null;
    this.textRefusal = null;
    this.views = [];
    this.past = new Past();
    this.cut = new CutLine(this);
    this.finder = new Finder(this);
    this.tasks = new Tasks(this);
    this.large = false;
    this.hush = false; // whether what the protocols will do is hidden until its step
    this.changing = Promise.resolve();
    this.pressing = Promise.resolve();
  }

  get unit() {
    return this.large ? 1.4 : window.innerWidth < 760 ? 0.92 : window.innerWidth >= 1900 ? 1.2 : 1;
  }

  get step() {
    return Math.min(this.stepAt ?? Infinity, this.bench.columns.length);
  }

  get atEnd() {
    return this.step >= this.bench.columns.length;
  }

  columnOf(command) {
    return this.bench.columns.findIndex((column) => column.command === command);
  }

  /** The command before which something stands that comes after so many steps. */
  commandAt(place) {
    return this.bench.columns[place]?.command ?? this.bench.commands.length;
  }

  variantsOf(protocol) {
    return this.start.names.find((one) => one.name === protocol)?.variants ?? [];
  }

  // -- asking -------------------------------------------------------------------------------------

  /** One after the other: each begins with what the one before it has put on the bench. */
  inTurn(work) {
    const done = this.changing.then(work);
    this.changing = done.catch(() => {});
    return done;
  }

  /** What keys do with the chosen action, each press after the one before it has been played. */
  pressed(work) {
    this.pressing = this.pressing.then(work).catch(() => {});
  }

  /** Put another moment (or what gives one, in its turn) on the bench; returns a refusal in words, or null. */
  show(moment, how) {
    return this.inTurn(() => this.played(moment instanceof Function ? moment() : moment, how));
  }

  async played(moment, { keep = true } = {}) {
    try {
      this.take(await asked("run", moment), moment, keep);
      return null;
    } catch (error) {
      return this.refused(error);
    }
  }

  /** Edits one after the other, as one moment; returns a refusal in words, or null. */
  tried(...edits) {
    const { text } = this;
    // Numbers of actions are those of what was seen.
    return this.inTurn(() => (this.text === text ? this.changed(edits) : CHANGED));
  }

  async changed(edits) {
    const { protocols, judge } = this;
    let { text } = this;
    let bench = null;
    const notes = [];
    try {
      for (const edit of edits) {
        bench = await asked("edit", { text, protocols, judge, edit });
        ({ text } = bench);
        if (bench.note) notes.push(bench.note);
      }
      this.take(bench, { text, protocols, judge }, true);
      this.say(notes.join(" "));
      return null;
    } catch (error) {
      return this.refused(error);
    }
  }

  refused(error) {
    return `${error.line ? `Line ${error.line}: ` : ""}${error.message}`;
  }

  async edit(...edits) {
    const refusal = await this.tried(...edits);
    if (refusal) this.say(refusal, "refused");
    return refusal === null;
  }

  take(bench, moment, keep) {
    const before = this.bench?.commands[this.chosen?.command];
    this.bench = bench;
    Object.assign(this, { text: moment.text, protocols: moment.protocols, judge: moment.judge ?? null });
    this.draft = null;
    this.textRefusal = null;
    if (keep) this.past.add({ text: this.text, protocols: this.protocols, judge: this.judge });
    this.chooseAgain(before);
    this.cut.fit();
    this.build();
    this.remember();
  }

  /** What was chosen stays chosen, wherever it stands now. */
  chooseAgain(before) {
    if (!this.chosen || this.chosen.kind === "stub") {
      this.chosen = null;
      return;
    }
    const same = this.bench.commands.filter((one) => before && one.text === before.text);
    same.sort((a, b) => Math.abs(a.index - before.index) - Math.abs(b.index - before.index));
    this.chosen = same.length ? { ...this.chosen, command: same[0].index } : null;
  }

  /** `quiet`: at its beginning, with what the protocols will do hidden. */
  async openText(text, what, protocols = null, judge = null, quiet = false) {
    const refusal = await this.show({ text, protocols: protocols ?? this.protocols, judge });
    if (refusal) this.say(`${plain(what, 80)}: ${refusal}`, "refused");
    else {
      this.keepQuiet(quiet);
      this.goTo(quiet ? 0 : Infinity);
      this.say(`${plain(what, 120)} is on the bench${quiet ? "; what the protocols do with it is hidden until its step: ▶" : ""}; undo brings back what was there.`);
    }
    return refusal;
  }

  applyText(text) {
    return this.inTurn(() => this.appliedText(text));
  }

  async appliedText(text) {
    const { protocols, judge } = this;
    try {
      this.take(await asked("run", { text, protocols, judge }), { text, protocols, judge }, true);
    } catch (error) {
      this.textRefusal = error;
      this.draft = text;
      this.redrawPanel();
    }
  }

  // -- what is done with actions ----------------------------------------------------------------

  moveTo(command, slot) {
    const k = this.columnOf(command);
    if (k < 0 || slot === k || slot === k + 1) return undefined;
    const carry = this.bench.commands[command].kind === "send";
    return this.edit({ kind: "move", command, to: this.commandAt(slot), ...(carry ? { carry } : {}) });
  }

  /** One step earlier or later. */
  shift(command, by) {
    const k = this.columnOf(command);
    const slot = by < 0 ? k - 1 : k + 2;
    if (k < 0 || slot < 0 || slot > this.bench.columns.length) return undefined;
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

  /** A copy that is on its way after `slot` steps arrives there; where it arrives later, it is moved. */
  arrive(member, label, slot) {
    return this.ended("arrive", member, label, slot);
  }

  lose(member, label, slot) {
    return this.ended("lose", member, label, slot);
  }

  ended(word, member, label, slot) {
    const later = this.bench.commands.find((one) => ["arrive", "lose"].includes(one.kind) && !one.again && one.at === member && one.label === label && this.columnOf(one.index) >= slot);
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

  /** `protocols`: their names, or what gives them, in its turn, from those that are shown. */
  async setProtocols(protocols) {
    const namesOf = protocols instanceof Function ? protocols : () => protocols;
    const refusal = await this.show(() => ({ text: this.text, protocols: namesOf(this.protocolsShown()), judge: this.judge }));
    if (refusal) this.say(refusal, "refused");
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
    return this.bench.runs.map((run) => run.protocol);
  }

  async setJudge(judge) {
    const refusal = await this.show(() => ({ text: this.text, protocols: this.protocols, judge: judge || null }));
    if (refusal) this.say(refusal, "refused");
  }

  // -- back and forth -----------------------------------------------------------------------------

  travel(by) {
    return this.inTurn(() => this.travelled(by));
  }

  async travelled(by) {
    if (by > 0 ? !this.past.canUndo : !this.past.canRedo) return;
    const refusal = await this.played(this.past.back(by), { keep: false });
    if (refusal) this.past.back(-by);
    this.say(refusal ?? (by > 0 ? "Undone." : "Done again."), refusal ? "refused" : "");
  }

  goTo(step) {
    this.stepAt = step >= this.bench.columns.length ? null : Math.max(0, step);
    this.redraw();
    this.remember();
    const seen = this.views.find((view) => view.picture);
    if (!seen) return;
    const x = seen.picture.seam(this.step);
    const { scroller } = seen;
    if (x < scroller.scrollLeft + 40 || x > scroller.scrollLeft + scroller.clientWidth - 40) scroller.scrollLeft = x - scroller.clientWidth / 2;
  }

  choose(chosen) {
    this.chosen = chosen;
    if (chosen) this.showPanel("details");
    this.redraw();
  }

  chooseCommand(index) {
    const command = this.bench.commands[index];
    const lane = this.bench.runs.find((run) => run.lanes?.length)?.lanes.findIndex((one) => one.name === command.at) ?? -1;
    this.chosen = { kind: command.kind, command: index, lane, label: command.label, member: command.at };
    this.goTo(this.columnOf(index) + 1);
  }

  // -- what is seen -------------------------------------------------------------------------------

  build() {
    if (!this.bench) return;
    const left = this.views[0]?.scroller.scrollLeft ?? 0;
    this.views = buildRows(this, $("runs"));
    for (const view of this.views) view.scroller.scrollLeft = left;
    $("title").textContent = plain(this.bench.title || "antecede play", 120);
    $("source").textContent = plain(this.bench.source ?? "", 200);
    document.title = `${plain(this.bench.title || "bench", 60)} · antecede`;
    $("undo").disabled = !this.past.canUndo;
    $("redo").disabled = !this.past.canRedo;
    $("judge").value = this.judge ?? "";
    $("again").hidden = !this.bench.runs.some((run) => run.own);
    this.redraw();
  }

  redraw() {
    if (!this.bench) return;
    for (const view of this.views) drawRow(this, view);
    const { length } = this.bench.columns;
    const slider = $("step");
    slider.max = length;
    slider.value = this.step;
    slider.disabled = length === 0;
    const command = this.step ? this.bench.commands[this.bench.columns[this.step - 1].command] : null;
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
    if (!this.panel || !this.bench) return;
    const holder = $("panel");
    const focusable = () => [...holder.querySelectorAll("button, input, select, textarea, summary")];
    const at = focusable().indexOf(document.activeElement);
    const top = this.drawnPanel === this.panel ? holder.scrollTop : 0;
    holder.replaceChildren(...PANELS[this.panel][1](this).filter(Boolean));
    holder.scrollTop = top;
    if (at >= 0 && this.drawnPanel === this.panel) focusable()[at]?.focus();
    this.drawnPanel = this.panel;
  }

  /** A sentence for the reader; nothing: the hint. */
  say(words, kind = "") {
    const said = $("said");
    said.className = words ? kind : "hint";
    said.textContent = words ? `${kind === "refused" ? "⚠ " : ""}${plain(words, 500)}` : this.bench?.columns.length === 0 ? EMPTY_HINT : HINT;
  }

  remember() {
    clearTimeout(this.remembering);
    this.remembering = setTimeout(() => {
      const { text, protocols, judge, stepAt, hush } = this;
      history.replaceState(null, "", hashOfMoment({ text, protocols, judge, step: stepAt, exercise: this.tasks.open?.name, hush }));
    }, 200);
  }

  theme(name) {
    document.documentElement.dataset.theme = name;
    $("theme").setAttribute("aria-pressed", String(name === "dark"));
    keep("theme", name);
  }

  /** Hide what is still to come, or not: who is asked is not to read the answer off the picture. */
  keepQuiet(hush) {
    this.hush = hush;
    $("hush").setAttribute("aria-pressed", String(hush));
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

// What is the reader's taste and not of the scene; a browser may forbid to keep it.
function keep(name, value) {
  try {
    localStorage.setItem(`antecede-play-${name}`, value);
  } catch {
    // it is not kept then
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
  press("find", () => app.showPanel("find"));
  press("exercises", () => app.showPanel("exercises"));
  press("hush", () => {
    app.keepQuiet(!app.hush);
    app.say(app.hush ? "What the protocols will do is hidden until its step: ▶ shows it." : "What is still to come is shown faintly.");
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
  $("judge").addEventListener("change", (event) => app.setJudge(event.target.value));
  $("add-protocol").addEventListener("change", (event) => {
    const name = event.target.value;
    event.target.value = "";
    if (name && app.protocolsShown().includes(name)) app.say(`${name} is there already.`, "refused");
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
  const { names, own, judges } = app.start;
  $("add-protocol").append(
    ...own.map((one) => el("option", { value: one }, plain(one, 80))),
    ...names.map(({ name, title }) => el("option", { value: name }, plain(title === name ? name : `${name}: ${title}`, 80))));
  $("judge").append(...judges.map((one) => el("option", { value: one }, plain(one, 40))));
}

const KEYS = {
  ArrowLeft: (app) => app.goTo(app.step - 1), ArrowRight: (app) => app.goTo(app.step + 1), Home: (app) => app.goTo(0), End: (app) => app.goTo(Infinity),
  s: (app) => app.sendForm({ at: app.step }), a: (app) => app.arriveAll(), c: () => $("cut").click(), f: (app) => app.showPanel("find"), e: (app) => app.showPanel("exercises"),
  x: (app) => app.showPanel("text"), l: (app) => app.showPanel("steps"), d: (app) => app.showPanel("details"), "?": (app) => app.showPanel("help"), m: (app) => newMemberDialog(app),
  u: (app) => app.travel(1), r: (app) => app.travel(-1), t: () => $("theme").click(), p: () => $("large").click(), h: () => $("hush").click(), b: () => $("tables").click(),
  Enter: (app) => app.step && app.chooseCommand(app.bench.columns[app.step - 1].command) === undefined && app.showPanel("details"),
  Delete: (app) => app.pressed(() => chosenCommand(app) !== null && app.remove(chosenCommand(app))), Escape: (app) => app.showPanel(null),
};

/** The action that keys move and take out: the chosen one, or that of the step shown. */
function chosenCommand(app) {
  return app.chosen?.command ?? app.bench.columns[app.step - 1]?.command ?? null;
}

function key(app, event) {
  if (!app.bench || document.querySelector("dialog[open]")) return;
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

/** Somebody's own protocol is played again when its file changes. */
function watch(app) {
  let { version } = app.start;
  setInterval(async () => {
    if (document.hidden || !app.bench?.runs.some((run) => run.own)) return;
    const now = await fetchedText("version").catch(() => version);
    if (now === version) return;
    version = now;
    await app.setProtocols(app.protocols);
    app.say("The file has changed: played again.");
  }, LOOK);
}

async function begin() {
  const loading = $("loading");
  try {
    const app = new App(await fetched("start"));
    globalThis.bench = app;
    fillMenus(app);
    wire(app);
    app.theme(kept("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    if (kept("large") === "yes") app.enlarge(true);
    const given = momentOf(location.hash);
    app.stepAt = given.step ?? null;
    app.hush = Boolean(given.hush);
    $("hush").setAttribute("aria-pressed", String(app.hush));
    const moment = { text: given.text ?? app.start.text, protocols: given.protocols ?? app.start.protocols, judge: given.text === undefined ? app.start.judge ?? null : given.judge ?? null };
    let refusal = await app.show(moment);
    if (refusal && given.text !== undefined) {
      // What the address says cannot be shown here: what the command was given can.
      const again = await app.show({ text: app.start.text, protocols: app.start.protocols, judge: null });
      if (!again) app.say(`What the address held cannot be shown: ${refusal}`, "refused");
      refusal = again;
    } else app.say("");
    loading.remove();
    if (refusal) {
      app.say(refusal, "refused");
      return;
    }
    const exercise = given.exercise ?? (given.text === undefined ? app.start.exercise : null);
    if (exercise) await app.tasks.begin(exercise, given.text === undefined);
    watch(app);
  } catch (error) {
    loading.textContent = error.message;
  }
}

begin();
