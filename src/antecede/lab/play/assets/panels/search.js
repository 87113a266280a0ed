// Search for a counterexample: a job of the model checker, its progress and its result.

import { get, post, postOnUnload } from "../requests.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { counted, plain } from "../../../../core/pages/assets/text.js";

const POLL_MS = 300; // interval of progress requests, ms

export class Search {
  constructor(app) {
    this.app = app;
    this.form = { protocol: null, variant: "", members: 3, messages: 3, thorough: false };
    this.job = null;
    this.turn = 0;
    this.words = el("p", {});
    this.progress = null;
    this.found = null;
    this.rejection = "";
    // The server runs one search at a time: end it with the page.
    window.addEventListener("pagehide", () => this.job !== null && postOnUnload("stop", { job: this.job }));
  }

  async start() {
    const turn = ++this.turn; // a stopped search must not report into the next one
    this.found = null;
    this.rejection = "";
    this.progress = { setting: "", states: 0 };
    this.app.redrawPanel();
    try {
      const { job } = await post("search", { ...this.form, variant: this.form.variant || null });
      if (turn !== this.turn) {
        await post("stop", { job });
        return;
      }
      this.job = job;
      await this.follow(job);
    } catch (error) {
      if (turn === this.turn) this.rejection = error.message;
    }
    if (turn !== this.turn) return;
    this.job = null;
    this.progress = null;
    this.app.redrawPanel();
    this.app.say(this.rejection || (this.found?.sentences?.at(-1) ?? ""), this.rejection ? "rejected" : "");
  }

  async follow(job) {
    while (this.job === job) {
      const answer = await get("progress", { job });
      if (this.job !== job) return;
      if (answer.done) {
        if (answer.error) this.rejection = answer.error;
        else if (answer.stopped) this.rejection = describeStop(answer);
        else this.found = answer;
        return;
      }
      this.progress = answer;
      this.words.textContent = describeProgress(answer); // in place: a rebuilt panel could move a button during a click
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async stop() {
    const { job } = this;
    this.turn++;
    this.job = null;
    this.progress = null;
    try {
      if (job !== null) this.rejection = describeStop(await post("stop", { job }));
    } catch (error) {
      this.rejection = error.message;
    }
    this.app.redrawPanel();
  }
}

function describeProgress({ setting, states }) {
  return ["Searching…", plain(setting ?? "", 120), states ? counted(states, "state") : ""].filter(Boolean).join(" · ");
}

function describeStop(answer) {
  const seen = answer.states ? `: ${counted(answer.states, "state")} ${answer.states === 1 ? "was" : "were"} explored without a violation` : "";
  return `Stopped${seen}.`;
}

export function searchPanel(app) {
  const { search } = app;
  const { form } = search;
  const names = [...app.start.own_files.map((one) => [one, one]), ...app.start.names.map(({ name, title }) => [name, title])];
  if (form.protocol === null || !names.some(([name]) => name === form.protocol)) {
    const shown = app.comparison.runs.map((run) => run.name ?? run.protocol).filter((name) => names.some(([one]) => one === name));
    form.protocol = shown.at(-1) ?? names[0][0];
    form.variant = app.variantsOf(form.protocol).find((one) => one.defective)?.name ?? "";
  }
  const busy = search.progress !== null;
  const number = (name, label, min, most) => el("label", { class: "field narrow" }, el("span", {}, label),
    el("input", { type: "number", name, min: min, max: most, value: form[name], disabled: busy, onchange: (event) => (form[name] = Number(event.target.value)) }));
  const protocol = el("select", { name: "protocol", disabled: busy, onchange: (event) => {
    form.protocol = event.target.value;
    form.variant = "";
    app.redrawPanel();
  } }, names.map(([name, title]) => el("option", { value: name }, plain(title === name ? name : `${name}: ${title}`, 70))));
  protocol.value = form.protocol;
  const variants = app.variantsOf(form.protocol);
  const variant = el("select", { name: "variant", disabled: busy, onchange: (event) => (form.variant = event.target.value) },
    el("option", { value: "" }, "correct"), variants.map((one) => el("option", { value: one.name }, `${one.name}${one.defective ? " (defective)" : ""}`)));
  variant.value = form.variant;
  return [
    el("h2", {}, "Find a counterexample"),
    el("p", { class: "soft" }, "Explores every interleaving within these bounds and keeps the smallest counterexample."),
    el("form", { class: "search", onsubmit: (event) => {
      event.preventDefault();
      search.start();
    } },
      el("label", { class: "field" }, el("span", {}, "Protocol"), protocol),
      variants.length ? el("label", { class: "field" }, el("span", {}, "Variant"), variant) : null,
      el("div", { class: "row" }, number("members", "Members", 2, 10), number("messages", "Messages", 1, 12)),
      el("label", { class: "box" }, el("input", { type: "checkbox", checked: form.thorough, disabled: busy, onchange: (event) => (form.thorough = event.target.checked) }), " thorough: larger search, takes longer"),
      el("div", { class: "row" },
        el("button", { class: "main", disabled: busy }, "Find"),
        busy ? el("button", { type: "button", onclick: () => search.stop() }, "Stop") : null)),
    ...outcome(app),
  ];
}

/** Open the counterexample; for a defective variant also under the correct protocol. */
function openFound(app, found) {
  const { protocol, variant } = app.search.form;
  const words = app.variantsOf(protocol).find((one) => one.name === variant)?.protocol ?? protocol;
  app.openText(found.text, "The counterexample", [...new Set([words, protocol])]);
}

function outcome(app) {
  const { search } = app;
  const { progress, found, rejection } = search;
  if (progress) {
    search.words.textContent = describeProgress(progress);
    return [search.words, el("progress", { "aria-label": "Searching" })];
  }
  if (rejection) return [el("p", { class: "warn" }, plain(rejection, 500))];
  if (!found) return [];
  return [
    el("p", { class: found.ok ? "verdict good" : "verdict bad" }, found.ok ? "✓ no counterexample within these bounds" : "✗ counterexample found"),
    found.text ? el("button", { type: "button", class: "main", onclick: () => openFound(app, found) }, "Open in the playground") : null,
    el("pre", {}, (found.lines ?? []).map((line) => plain(line, 400)).join("\n")),
  ].filter(Boolean);
}
