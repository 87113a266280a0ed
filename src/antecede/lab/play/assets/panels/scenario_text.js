// Text of the scenario: edit, open a file, save a file.

import { post } from "../requests.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

const LARGEST = 256 * 1024;

export function textPanel(app) {
  const area = el("textarea", { id: "text", rows: 18, spellcheck: false, "aria-label": "Scenario text", value: app.draft ?? app.text, oninput: (event) => (app.draft = event.target.value) });
  const answer = app.textRejection;
  return [
    el("h2", {}, "Scenario text"),
    el("p", { class: "soft" }, "One action a line: send P1 a · arrive P2 a · lose P2 a · tick 1 · join D sponsor A · leave C. “antecede draw” reads the same file."),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      app.applyText(area.value);
    } }, area,
      answer ? el("p", { class: "warn", role: "alert" }, `${answer.line ? `Line ${answer.line}: ` : ""}${plain(answer.message, 400)}`) : null,
      el("div", { class: "row" }, el("button", { class: "main" }, "Apply"),
        el("button", { type: "button", onclick: () => {
          app.draft = null;
          app.textRejection = null;
          app.redrawPanel();
        } }, "Revert"))),
    setupForm(app),
  ];
}

/** Settings that the diagram does not show: bounds, clocks, topics. */
function setupForm(app) {
  const line = el("input", { placeholder: "subscribe P1 news", "aria-label": "Settings line", autocomplete: "off", spellcheck: false });
  return el("form", { onsubmit: (event) => {
    event.preventDefault();
    app.edit({ kind: "setup", line: line.value.trim() });
  } },
    el("h3", {}, "Settings"),
    el("p", { class: "soft" }, "bounds accuracy=0.1 min=0.5 most=2 · clock P1 0.3 · subscribe P1 news sport · protocol bss"),
    el("div", { class: "row grow" }, line, el("button", {}, "Add")));
}

/** Let the user choose a file, and open it. */
export function openFile(app) {
  const input = el("input", { type: "file", accept: ".scenario,.txt,text/plain" });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    if (file.size > LARGEST) app.say(`${plain(file.name, 80)} is too large; the limit is ${LARGEST / 1024} KiB.`, "rejected");
    else await opened(app, await file.text(), file.name);
  });
  input.click();
}

/** Open a text under the shown protocols if they include the file's own, else under its own. */
async function opened(app, text, name) {
  let protocols = app.protocolsShown();
  try {
    const { protocol } = await post("run", { text, protocols: [], relation: null });
    if (!protocols.includes(protocol)) protocols = [protocol];
  } catch {
    // openText reports the error
  }
  await app.openText(text, name, protocols, app.relation);
}

/** Save the scenario with the output of its own protocol, usable as a golden test. */
export async function saveFile(app) {
  let { text } = app;
  try {
    ({ text } = await post("text", { text }));
  } catch (error) {
    app.say(`Saved without expected output: ${error.message}`, "rejected");
  }
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = el("a", { href: address, download: `${app.fileName()}.scenario` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
