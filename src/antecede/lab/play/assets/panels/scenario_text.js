// The text of the scene: read, changed by hand, opened from a file, saved to one.

import { asked } from "../requests.js";
import { el } from "../../../../core/pages/assets/elements.js";
import { plain } from "../../../../core/pages/assets/text.js";

const LARGEST = 256 * 1024;

export function textPanel(app) {
  const area = el("textarea", { id: "text", rows: 18, spellcheck: false, "aria-label": "The scene as text", value: app.draft ?? app.text, oninput: (event) => (app.draft = event.target.value) });
  const said = app.textRefusal;
  return [
    el("h2", {}, "The scene as text"),
    el("p", { class: "soft" }, "A line an action: send P1 a · arrive P2 a · lose P2 a · tick 1 · join D sponsor A · leave C. “antecede explain” reads the same file."),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      app.applyText(area.value);
    } }, area,
      said ? el("p", { class: "warn", role: "alert" }, `${said.line ? `Line ${said.line}: ` : ""}${plain(said.message, 400)}`) : null,
      el("div", { class: "row" }, el("button", { class: "main" }, "Show this"),
        el("button", { type: "button", onclick: () => {
          app.draft = null;
          app.textRefusal = null;
          app.redrawPanel();
        } }, "As it was"))),
    setupForm(app),
  ];
}

/** Bounds, clocks, topics: what sets the scene and has no place on the picture. */
function setupForm(app) {
  const line = el("input", { placeholder: "subscribe P1 news", "aria-label": "A line that sets the scene", autocomplete: "off", spellcheck: false });
  return el("form", { onsubmit: (event) => {
    event.preventDefault();
    app.edit({ kind: "setup", line: line.value.trim() });
  } },
    el("h3", {}, "What sets the scene"),
    el("p", { class: "soft" }, "bounds accuracy=0.1 least=0.5 most=2 · clock P1 0.3 · subscribe P1 news sport · protocol bss"),
    el("div", { class: "row grow" }, line, el("button", {}, "Add")));
}

/** Have a file chosen, and put it on the bench. */
export function openFile(app) {
  const input = el("input", { type: "file", accept: ".scenario,.txt,text/plain" });
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    if (file.size > LARGEST) app.say(`${plain(file.name, 80)} is too large for a scene (${LARGEST / 1024} KiB at most).`, "refused");
    else await opened(app, await file.text(), file.name);
  });
  input.click();
}

/** Under the protocols that are shown where the file's own is one of them; else under its own. */
async function opened(app, text, name) {
  let protocols = app.protocolsShown();
  try {
    const { protocol } = await asked("run", { text, protocols: [], judge: null });
    if (!protocols.includes(protocol)) protocols = [protocol];
  } catch {
    // what is wrong with the text is said below
  }
  await app.openText(text, name, protocols, app.judge);
}

/** Save the scene, with what its own protocol prints, so that it can be kept as a test. */
export async function saveFile(app) {
  let { text } = app;
  try {
    ({ text } = await asked("text", { text }));
  } catch (error) {
    app.say(`Saved without the output of its actions: ${error.message}`, "refused");
  }
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const name = (app.bench.title || "scene").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "scene";
  const link = el("a", { href: address, download: `${name}.scenario` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
