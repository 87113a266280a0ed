// Exercises: by group, with their questions; an answer is computed when it is asked for.

import { asked } from "../requests.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

export class Tasks {
  constructor(app) {
    this.app = app;
    this.open = null; // {name, title, source, about, questions}
    this.answers = new Map();
  }

  /** `onto`: put its scene on the bench as well (after a reload what was changed stays). */
  async begin(name, onto = true) {
    try {
      const found = await asked("exercise", { name });
      this.open = { ...found, name };
      this.answers = new Map();
      if (onto) await this.app.openText(found.text, found.title, found.protocols, found.judge || null, found.quiet);
      this.app.showPanel("exercises");
    } catch (error) {
      this.app.say(error.message, "refused");
    }
  }

  async answer(question) {
    try {
      this.answers.set(question, await asked("answer", { name: this.open.name, question }));
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

export function tasksPanel(app) {
  const { tasks } = app;
  if (tasks.open) return exerciseParts(app, tasks);
  const { exercises } = app.start;
  if (!exercises.length) return [el("h2", {}, "Exercises"), el("p", {}, "There are none here.")];
  const groups = new Map();
  for (const one of exercises) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  return [
    el("h2", {}, "Exercises"),
    ...[...groups].flatMap(([group, of]) => [
      el("h3", {}, plain(group, 80)),
      el("ul", { class: "exercises" }, of.map((one) => el("li", {},
        el("button", { type: "button", class: "link", onclick: () => tasks.begin(one.name) }, plain(one.title, 120))))),
    ]),
  ];
}

function exerciseParts(app, tasks) {
  const { open } = tasks;
  return [
    el("div", { class: "row" },
      el("button", { type: "button", class: "small", onclick: () => tasks.close() }, "← All exercises"),
      el("button", { type: "button", class: "small", onclick: () => tasks.begin(open.name) }, "Begin again")),
    el("h2", {}, plain(open.title, 160)),
    ...paragraphs(open.about ?? ""),
    el("p", { class: "soft" }, plain(open.source ?? "", 300)),
    el("ol", { class: "questions" }, open.questions.map((question, k) => questionItem(tasks, question, k))),
  ];
}

function questionItem(tasks, question, k) {
  const answer = tasks.answers.get(k);
  return el("li", {},
    ...paragraphs(question.ask),
    question.hint ? el("details", {}, el("summary", {}, "Hint"), paragraphs(question.hint)) : null,
    answer ? answerParts(answer) : el("button", { type: "button", onclick: (event) => {
      event.target.disabled = true;
      event.target.textContent = "Computing…";
      tasks.answer(k);
    } }, "Show the answer"));
}

function answerParts(answer) {
  if (answer.error) return el("p", { class: "warn" }, plain(answer.error, 400));
  const facts = answer.facts ?? [];
  return el("div", { class: "answer" }, paragraphs(answer.answer),
    facts.length ? el("details", {}, el("summary", {}, "What was computed"),
      el("dl", {}, facts.map((fact) => [el("dt", {}, plain(fact.words, 200)), el("dd", {}, plain(fact.value, 1000))]))) : null);
}
