// Keys, gestures and marks.

import { legend } from "./details.js";
import { el } from "../../../../core/pages/assets/elements.js";

export function helpPanel() {
  const keys = [
    ["← →", "a step back, a step on"], ["Home End", "to the beginning, to the end"], ["Alt + ← →", "move the chosen action (or that of this step) earlier, later"],
    ["Enter", "what happened at this step"], ["Delete", "take the chosen action out"], ["s", "send"], ["a", "let all arrive that is on its way"],
    ["m", "one more member"], ["u  r", "undo, redo (also Ctrl + Z, Ctrl + Y)"], ["c", "draw a cut"], ["f", "find an execution that breaks it"], ["e", "exercises"],
    ["l  d  x", "steps, details, the scene as text"], ["h", "hide what the protocols will do, until the step shows it"], ["b", "tables beside the pictures, or not"], ["t", "light or dark"], ["p", "large, for a projector"], ["Esc", "close what is beside"],
  ];
  return [
    el("h2", {}, "Mouse and touch"),
    el("p", {}, "Drag a mark along its lane: its action happens earlier or later, under every protocol. Drag a copy on its way (the boxes at the right) to where it arrives. Drag from a lane to another with the mouse, or double-click a lane: somebody sends. Drag a name up or down: members in another order; click it to rename. Click a mark: what each protocol did there."),
    el("p", {}, "A protocol decides when it delivers, so what an arrival sets free cannot be dragged by itself: drag its arrival."),
    el("h2", {}, "Keys"),
    el("dl", { class: "keys" }, keys.map(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
    ...legend(),
    el("h2", {}, "Kept"),
    el("p", {}, "The scene is in the address: a reload keeps it. Save writes it as a file that “antecede explain” and “antecede play” read. Nothing leaves this machine."),
  ];
}
