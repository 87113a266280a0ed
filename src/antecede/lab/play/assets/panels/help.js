// Keys, gestures and marks.

import { legend } from "./details.js";
import { el } from "../../../../core/pages/assets/elements.js";

export function helpPanel() {
  const keys = [
    ["← →", "one step back, one step forward"], ["Home End", "to the start, to the end"], ["Alt + ← →", "move the chosen action (or the current step) earlier, later"],
    ["Enter", "details of this step"], ["Delete", "remove the chosen action"], ["s", "send"], ["a", "let all copies in flight arrive"],
    ["m", "add a member"], ["u  r", "undo, redo (also Ctrl + Z, Ctrl + Y)"], ["c", "draw a cut"], ["f", "find a counterexample"], ["e", "exercises"],
    ["l  d  x", "steps, details, scenario text"], ["h", "hide the outcome of later steps"], ["b", "show or hide the tables"], ["i", "export this step as SVG (Ctrl + P: print, or PDF)"], ["t", "light or dark"], ["p", "large mode for projectors"], ["Esc", "close the side panel"],
  ];
  return [
    el("h2", {}, "Mouse and touch"),
    el("p", {}, "Drag a mark along its timeline: its action happens earlier or later, under every protocol. Drag a copy in flight (the boxes at the right) to its arrival. Drag from one timeline to another, or double-click a timeline, to send. Drag a name up or down to reorder the members; click it to rename. Click a mark to see what each protocol did there."),
    el("p", {}, "The protocol decides when it delivers. A delivery released by another arrival cannot be dragged; drag its own arrival."),
    el("h2", {}, "Keys"),
    el("dl", { class: "keys" }, keys.map(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
    ...legend(),
    el("h2", {}, "Storage"),
    el("p", {}, "The scenario is stored in the address, so a reload keeps it. Save writes a file for “antecede draw” and “antecede play”. Nothing leaves this machine."),
  ];
}
