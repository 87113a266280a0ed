// Exercises by group, with questions. The server computes an answer on request.

import { post } from "../requests.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

export class Exercises {
  constructor(app) {
    this.app = app;
    this.open = null; // {name, title, source, about, questions}
    this.answers = new Map();
  }

  /** `load`: also load the exercise's scenario; false after a reload, which keeps the user's changes. */
  async begin(name, load = true) {
    try {
      const found = await post("exercise", { name });
      this.open = { ...found, name };
      this.answers = new Map();
      if (load) await this.app.openText(found.text, found.title, found.protocols, found.relation || null, found.hides_outcomes);
      this.app.showPanel("exercises");
    } catch (error) {
      this.app.say(error.message, "rejected");
    }
  }

  async answer(question) {
    try {
      this.answers.set(question, await post("answer", { name: this.open.name, question }));
    } catch (error) {
      this.answers.set(question, { error: error.message });
    }
    this.app.redrawPanel();
  }

  close() {
    this.open = null;
    this.app.remember();
    this.app.redrawPanel();
  }
}

const paragraphs = (text, most = 4000) => String(text).split("\n\n").map((part) => el("p", {}, plain(part, most)));

export function exercisesPanel(app) {
  const { exercises } = app;
  if (exercises.open) return exerciseParts(app, exercises);
  const listed = app.start.exercises;
  if (!listed.length) return [el("h2", {}, "Exercises"), el("p", {}, "No exercises are installed.")];
  const groups = new Map();
  for (const one of listed) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  return [
    el("h2", {}, "Exercises"),
    ...[...groups].flatMap(([group, of]) => [
      el("h3", {}, plain(group, 80)),
      el("ul", { class: "exercises" }, of.map((one) => el("li", {},
        el("button", { type: "button", class: "link", onclick: () => exercises.begin(one.name) }, plain(one.title, 120))))),
    ]),
  ];
}

function exerciseParts(app, exercises) {
  const { open } = exercises;
  return [
    el("div", { class: "row" },
      el("button", { type: "button", class: "small", onclick: () => exercises.close() }, "← All exercises"),
      el("button", { type: "button", class: "small", onclick: () => exercises.begin(open.name) }, "Restart")),
    el("h2", {}, plain(open.title, 160)),
    ...paragraphs(open.about ?? ""),
    el("p", { class: "soft" }, plain(open.source ?? "", 300)),
    el("ol", { class: "questions" }, open.questions.map((question, k) => questionItem(exercises, question, k))),
  ];
}

function questionItem(exercises, question, k) {
  const answer = exercises.answers.get(k);
  return el("li", {},
    ...paragraphs(question.ask),
    question.hint ? el("details", {}, el("summary", {}, "Hint"), paragraphs(question.hint)) : null,
    answer ? answerParts(answer) : el("button", { type: "button", onclick: (event) => {
      event.target.disabled = true;
      event.target.textContent = "Computing…";
      exercises.answer(k);
    } }, "Show the answer"));
}

function answerParts(answer) {
  if (answer.error) return el("p", { class: "warn" }, plain(answer.error, 400));
  const facts = answer.facts ?? [];
  return el("div", { class: "answer" }, paragraphs(answer.answer),
    facts.length ? el("details", {}, el("summary", {}, "Computed facts"),
      el("dl", {}, facts.map((fact) => [el("dt", {}, plain(fact.subject, 200)), el("dd", {}, plain(fact.value, 1000))]))) : null);
}
