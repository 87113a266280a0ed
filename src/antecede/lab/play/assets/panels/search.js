// "Find me an execution that breaks it": the explorer as a job, its progress, and its counterexample.

import { asked, fetched, leftBehind } from "../requests.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { counted, plain } from "../../../../core/pages/assets/text.js";

const PACE = 300; // ms between two looks at the job

export class Finder {
  constructor(app) {
    this.app = app;
    this.form = { protocol: null, variant: "", members: 3, messages: 3, thorough: false };
    this.job = null;
    this.turn = 0;
    this.words = el("p", {});
    this.progress = null;
    this.found = null;
    this.refusal = "";
    // Nobody would wait for it any more, and there is one search at a time.
    window.addEventListener("pagehide", () => this.job !== null && leftBehind("stop", { job: this.job }));
  }

  async start() {
    const turn = ++this.turn; // a search that was stopped has nothing to say to the next one
    this.found = null;
    this.refusal = "";
    this.progress = { setting: "", states: 0 };
    this.app.redrawPanel();
    try {
      const { job } = await asked("find", { ...this.form, variant: this.form.variant || null });
      if (turn !== this.turn) {
        await asked("stop", { job });
        return;
      }
      this.job = job;
      await this.follow(job);
    } catch (error) {
      if (turn === this.turn) this.refusal = error.message;
    }
    if (turn !== this.turn) return;
    this.job = null;
    this.progress = null;
    this.app.redrawPanel();
    this.app.say(this.refusal || (this.found?.sentences?.at(-1) ?? ""), this.refusal ? "refused" : "");
  }

  async follow(job) {
    while (this.job === job) {
      const said = await fetched("found", { job });
      if (this.job !== job) return;
      if (said.done) {
        if (said.error) this.refusal = said.error;
        else if (said.stopped) this.refusal = stoppedWords(said);
        else this.found = said;
        return;
      }
      this.progress = said;
      this.words.textContent = progressWords(said); // in place: a button must not go from under a press
      await new Promise((resolve) => setTimeout(resolve, PACE));
    }
  }

  async stop() {
    const { job } = this;
    this.turn++;
    this.job = null;
    this.progress = null;
    try {
      if (job !== null) this.refusal = stoppedWords(await asked("stop", { job }));
    } catch (error) {
      this.refusal = error.message;
    }
    this.app.redrawPanel();
  }
}

function progressWords({ setting, states }) {
  return ["Looking…", plain(setting ?? "", 120), states ? counted(states, "state") : ""].filter(Boolean).join(" · ");
}

function stoppedWords(said) {
  const seen = said.states ? `: ${counted(said.states, "state")} ${said.states === 1 ? "was" : "were"} looked at, and broke nothing` : "";
  return `Stopped${seen}.`;
}

export function findPanel(app) {
  const { finder } = app;
  const { form } = finder;
  const names = [...app.start.own.map((one) => [one, one]), ...app.start.names.map(({ name, title }) => [name, title])];
  if (form.protocol === null || !names.some(([name]) => name === form.protocol)) {
    const shown = app.bench.runs.map((run) => run.name ?? run.protocol).filter((name) => names.some(([one]) => one === name));
    form.protocol = shown.at(-1) ?? names[0][0];
    form.variant = app.variantsOf(form.protocol).find((one) => one.defective)?.name ?? "";
  }
  const busy = finder.progress !== null;
  const number = (name, label, least, most) => el("label", { class: "field narrow" }, el("span", {}, label),
    el("input", { type: "number", name, min: least, max: most, value: form[name], disabled: busy, onchange: (event) => (form[name] = Number(event.target.value)) }));
  const protocol = el("select", { name: "protocol", disabled: busy, onchange: (event) => {
    form.protocol = event.target.value;
    form.variant = "";
    app.redrawPanel();
  } }, names.map(([name, title]) => el("option", { value: name }, plain(title === name ? name : `${name}: ${title}`, 70))));
  protocol.value = form.protocol;
  const variants = app.variantsOf(form.protocol);
  const variant = el("select", { name: "variant", disabled: busy, onchange: (event) => (form.variant = event.target.value) },
    el("option", { value: "" }, "as it should be"), variants.map((one) => el("option", { value: one.name }, `${one.name}${one.defective ? " (defective)" : ""}`)));
  variant.value = form.variant;
  return [
    el("h2", {}, "Find me an execution that breaks it"),
    el("p", { class: "soft" }, "Every order of sending and arriving within these bounds is tried, and the smallest that breaks the protocol's promise is kept."),
    el("form", { class: "find", onsubmit: (event) => {
      event.preventDefault();
      finder.start();
    } },
      el("label", { class: "field" }, el("span", {}, "Protocol"), protocol),
      variants.length ? el("label", { class: "field" }, el("span", {}, "Variant"), variant) : null,
      el("div", { class: "row" }, number("members", "Members", 2, 10), number("messages", "Messages", 1, 12)),
      el("label", { class: "box" }, el("input", { type: "checkbox", checked: form.thorough, disabled: busy, onchange: (event) => (form.thorough = event.target.checked) }), " thorough: more kinds of executions, takes longer"),
      el("div", { class: "row" },
        el("button", { class: "main", disabled: busy }, "Find"),
        busy ? el("button", { type: "button", onclick: () => finder.stop() }, "Stop") : null)),
    ...outcome(app),
  ];
}

/** What was broken, and beside a defective variant the protocol as it should be. */
function openFound(app, found) {
  const { protocol, variant } = app.finder.form;
  const words = app.variantsOf(protocol).find((one) => one.name === variant)?.protocol ?? protocol;
  app.openText(found.text, "The execution that was found", [...new Set([words, protocol])]);
}

function outcome(app) {
  const { finder } = app;
  const { progress, found, refusal } = finder;
  if (progress) {
    finder.words.textContent = progressWords(progress);
    return [finder.words, el("progress", { "aria-label": "Looking" })];
  }
  if (refusal) return [el("p", { class: "warn" }, plain(refusal, 500))];
  if (!found) return [];
  return [
    el("p", { class: found.ok ? "verdict good" : "verdict bad" }, found.ok ? "✓ nothing breaks it within these bounds" : "✗ broken"),
    found.text ? el("button", { type: "button", class: "main", onclick: () => openFound(app, found) }, "Open it on the bench") : null,
    el("pre", {}, (found.lines ?? []).map((line) => plain(line, 400)).join("\n")),
  ].filter(Boolean);
}
