// What stands beside the picture, as plain elements: findings, members, the chosen event, help.
// All that comes from a trace is set as text, never as markup.

import { ORDERS } from "./timelines.js";
import { spanOf, AXIS_WORDS } from "./axis.js";
import { FIELDS } from "./search.js";
import { AGAIN, NOWHERE, UNDELIVERED } from "./render_model.js";
import { el } from "../../../core/pages/assets/elements.js";
import { counted, plain } from "../../../core/pages/assets/text.js";

const MANY = 100;
const ORDER_WORDS = { ...AXIS_WORDS, ingest: "archive order", file_order: "as the file lists them" };

const goTo = (app, rows, label) =>
  el("button", { type: "button", class: "go", onclick: () => app.goTo(rows) }, label);

export function eventName(scene, row) {
  const kind = scene.kindOf(row);
  const id = scene.ids.at(row);
  const member = scene.members.at(row);
  // MEMBER:NUMBER has said where.
  const known = scene.member[row] === scene.nobody || (kind === "event" && id.startsWith(`${member}:`));
  const where = known ? "" : ` at ${member}`;
  return plain(`${id}${kind === "event" ? "" : ` ${kind}`}${where}`, 90);
}

/** What an event says; an arrival: what its sending says. */
export function saidBy(scene, row) {
  const texts = scene.data.texts("text");
  const sending = scene.sent ? scene.sent[row] : -1;
  return texts?.at(row) || (sending >= 0 ? texts?.at(sending) : "") || "";
}

function eventButton(app, row) {
  const said = saidBy(app.scene, row);
  return el("button", { type: "button", class: "event", onclick: () => app.reveal(row) },
    eventName(app.scene, row), said ? el("span", { class: "says" }, ` ${plain(said, 80)}`) : null);
}

function eventList(app, rows) {
  const shown = Array.from(rows.slice(0, MANY), (row) => el("li", {}, eventButton(app, row)));
  if (rows.length > MANY) shown.push(el("li", { class: "soft" }, `and ${(rows.length - MANY).toLocaleString("en")} more`));
  return el("ul", { class: "events" }, shown);
}

// -- findings ---------------------------------------------------------------------------------

export function findingsPanel(app) {
  const { meta } = app.scene;
  const parts = [
    el("p", { class: "lead" }, summaryOf(app)),
    el("h2", {}, "Findings"),
    meta.findings.length
      ? el("ol", { class: "findings" }, meta.findings.map((one) => findingItem(app, one)))
      : el("p", {}, nothingFound(meta)),
    ...inversionParts(app),
    ...skewParts(app),
    ...waitParts(app),
    ...missingParts(app),
    legend(app),
  ];
  return parts;
}

function nothingFound(meta) {
  if (meta.axes[0]?.compared) return "None: nothing was set aside, and no effect is before its cause by the time.";
  if (meta.edges) return "None: nothing was set aside, and no effect is before its cause.";
  return meta.by === "events" ? "None; no times to compare arrivals and sendings by." : "None; no event names a cause that is there, so no order could be compared.";
}

function summaryOf(app) {
  const { meta, lanes, runs } = app.scene;
  const how = { events: "sendings and arrivals", clocks: "vector clocks", causes: "declared causes" };
  const source = meta.causality_source === "member sequence" ? "each member's own numbers" : how[meta.by];
  const told = meta.causality_source === "none" ? " Nothing tells what came before what (causality_source: none)." : ` What came before what is told by ${source}.`;
  const members = lanes.names.filter((_, k) => k < app.scene.nobody).length;
  const several = runs.size > 1 ? ` in ${counted(runs.size, "run")}` : "";
  return `${meta.format}: ${counted(meta.tiles ? meta.of : meta.events, "event")} of ${counted(members, "member")}${several}.${meta.events ? told : ""}`;
}

/** A sentence, what stands between `marks` as code. */
function sentence(text) {
  return plain(text, 900).split("`").map((part, k) => (k % 2 ? el("code", {}, part) : part));
}

function findingItem(app, one) {
  return el("li", {}, el("p", {}, sentence(one.what)),
    one.advice ? el("p", { class: "soft" }, sentence(one.advice)) : null,
    one.rows.length ? goTo(app, one.rows, "Show") : null);
}

function table(head, rows) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell)))))));
}

function inversionParts(app) {
  const { meta } = app.scene;
  const share = (one) => `${one.count.toLocaleString("en")} of ${one.compared.toLocaleString("en")}`;
  const rows = meta.orders.filter((one) => one.compared).map((one) => [
    ORDER_WORDS[one.order] ?? one.order, share(one), one.largest || "–",
    one.rows.length ? goTo(app, one.rows, "Show") : "",
  ]);
  if (meta.by === "events") {
    for (const one of meta.axes.slice(0, 1).filter((axis) => axis.compared)) {
      rows.unshift(["arrival before its sending", share(one),
        one.count ? spanOf(one.largest, 0) : "–", one.rows.length ? goTo(app, one.rows, "Show") : ""]);
    }
  }
  if (!rows.length) return [];
  return [el("h2", {}, "Effects before their cause"), table(["order", "edges", "largest step back", ""], rows)];
}

function skewParts(app) {
  const { skew } = app.scene.meta;
  if (!skew?.compared) return [];
  const title = el("h2", {}, "Clocks");
  if (!skew.pairs.length) {
    return [title, el("p", {}, `${counted(skew.compared, "pair")} of connected members compared: no clock needs a shift.`)];
  }
  const said = skew.hosts.length
    ? table(["clock that is off", "by at least", ""], skew.hosts.map((host) => [
        plain(host.host, 60), spanOf(-host.shift_ns, 0), host.rows.length ? goTo(app, host.rows, "Show") : ""]))
    : el("p", {}, "No constant shifts explain them all: a clock drifts or steps.");
  return [title, said, table(["pair", "least shift", "events outside", ""], skew.pairs.map((pair) => [
    plain(`${pair.of} against ${pair.against}`, 80),
    pair.least_shift_ns === null ? "none does" : spanOf(pair.least_shift_ns, 0),
    `${pair.violations.toLocaleString("en")} of ${pair.edges.toLocaleString("en")}`,
    pair.rows.length ? goTo(app, pair.rows, "Show") : ""]))];
}

function waitParts(app) {
  const { waits } = app.scene.meta;
  if (!waits.length) return [];
  return [el("h2", {}, "Longest waits"), table(["held for", "message", ""], waits.slice(0, 10).map((wait) => [
    spanOf(wait.ns, 0), eventName(app.scene, wait.delivered),
    goTo(app, [wait.received, wait.delivered], "Show")]))];
}

function missingParts(app) {
  const { missing } = app.scene.meta;
  if (!missing.ids) return [];
  const rows = missing.named.map((one) => [
    plain(one.id, 60) + (one.quarantined ? " (its own row was set aside)" : ""),
    one.references.toLocaleString("en"), one.rows.length ? goTo(app, one.rows, "Show") : ""]);
  const more = missing.ids - missing.named.length;
  return [el("h2", {}, `Causes that are nowhere (${missing.ids.toLocaleString("en")})`),
    table(["id", "references", "first"], rows),
    more > 0 ? el("p", { class: "soft" }, `and ${more.toLocaleString("en")} more`) : null];
}

function legend(app) {
  const { scene } = app;
  const told = scene.sent !== null;
  const lines = [
    ...(told ? [["▶", "sent"], ["○", "received"], ["■", "delivered"]] : []),
    ["●", told ? "another event" : "event"],
    ...(told ? [["▨", "bar: held from receipt to delivery"], ["┄✕", "sent, and never arrived"], ["┄○", "a copy that came again (dotted line)"]] : []),
    ["—·—", "an effect before its cause, by the axis"],
    ...(scene.meta.broken?.length ? [["✗", "red: it breaks a promise of the protocol"]] : []),
    ["×", "set aside: it has no place in the order"],
    ["▁●", "causal past of the chosen event: blue, underlined, solid lines"],
    ["▔●", "its future: orange, overlined, broken lines"],
    ["grey", "concurrent with it"],
    ["▌", "several events in a few pixels: the higher, the more"],
  ];
  return el("details", { class: "legend" }, el("summary", {}, "Marks"),
    el("dl", {}, lines.map(([mark, what]) => [el("dt", {}, mark), el("dd", {}, what)])));
}

// -- members ----------------------------------------------------------------------------------

export function membersPanel(app) {
  const { lanes } = app.scene;
  const order = el("select", { id: "order", onchange: (event) => app.arrange((l) => (l.order = event.target.value)) },
    Object.entries(ORDERS).map(([value, text]) => el("option", { value, selected: value === lanes.order }, text)));
  const rules = { "": "not at all", prefix: "by prefix of the name", topics: "by topic or room", role: "by role", source: "by file" };
  const there = Object.entries(rules).filter(([rule]) => !["topics", "role", "source"].includes(rule) || (app.scene.data.texts(rule)?.size ?? 0) > 1);
  const own = lanes.grouping.startsWith("=");
  const group = el("select", { id: "group", onchange: (event) => app.group(event.target.value) },
    there.map(([value, text]) => el("option", { value, selected: value === lanes.grouping }, text)),
    own ? el("option", { value: lanes.grouping, selected: true }, `by what is before “${lanes.grouping.slice(1)}”`) : null);
  const before = el("input", { id: "before", size: 4, maxLength: 20, value: own ? lanes.grouping.slice(1) : "", onchange: (event) => app.group(event.target.value ? `=${event.target.value}` : "") });
  const parts = [
    el("div", { class: "row" }, el("label", { htmlFor: "order" }, "Order"), order),
    el("div", { class: "row" }, el("label", { htmlFor: "group" }, "Group"), group,
      el("label", { htmlFor: "before" }, "or by what is before"), before),
  ];
  if (lanes.groups.length) {
    parts.push(el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.arrange((l) => l.groups.forEach((g) => l.folded.add(g))) }, "Fold all"),
      el("button", { type: "button", onclick: () => app.arrange((l) => l.folded.clear()) }, "Unfold all")));
    parts.push(el("ul", { class: "groups" }, lanes.groups.slice(0, MANY).map((name) => el("li", {},
      el("button", { type: "button", class: "link", "aria-expanded": String(!lanes.folded.has(name)), onclick: () => app.arrange((l) => (l.folded.delete(name) || l.folded.add(name))) },
        `${lanes.folded.has(name) ? "▸" : "▾"} ${plain(name, 60)}`)))));
  }
  parts.push(el("div", { class: "row" },
    el("button", { type: "button", onclick: () => app.arrange((l) => l.hidden.clear()) }, "Show all"),
    el("button", { type: "button", onclick: () => app.arrange((l) => l.names.forEach((_, k) => l.hidden.add(k))) }, "Hide all"),
    el("button", { type: "button", onclick: () => app.onlyRelated(), disabled: app.scene.chosen < 0 }, "Only those of the chosen event")));
  parts.push(memberList(app, lanes));
  return parts;
}

function memberList(app, lanes) {
  const there = [];
  lanes.names.forEach((_, member) => lanes.counts[member] && there.push(member));
  there.sort(lanes.comparison()); // hidden ones stay in their place, so that they can be had back
  const list = there.slice(0, 500).map((member) => el("li", {},
    el("label", {}, el("input", { type: "checkbox", checked: !lanes.hidden.has(member), onchange: () => app.arrange((l) => (l.hidden.delete(member) || l.hidden.add(member))) }),
      ` ${plain(lanes.names[member], 60)} `, el("span", { class: "soft" }, lanes.counts[member].toLocaleString("en"))),
    el("span", { class: "moves" },
      moveButton(app, member, -1, "up"), moveButton(app, member, 1, "down"))));
  const more = there.length - 500;
  return [el("ul", { class: "members" }, list),
    more > 0 ? el("p", { class: "soft" }, `and ${more.toLocaleString("en")} more: find them by search`) : null];
}

function moveButton(app, member, by, word) {
  const name = plain(app.scene.lanes.names[member], 40);
  return el("button", {
    type: "button", "aria-label": `Move ${name} ${word}`, class: "small",
    onclick: () => app.arrange((l) => {
      const at = l.laneOf[member];
      if (at < 0) return;
      const to = by < 0 ? at - 1 : at + 2;
      if (to >= 0 && to <= l.lanes.length) l.move(at, to);
    }),
  }, by < 0 ? "↑" : "↓");
}

// -- the chosen event -------------------------------------------------------------------------

export function eventPanel(app) {
  const { scene } = app;
  const row = scene.chosen;
  if (row < 0) {
    return [el("p", {}, "Choose an event: what led to it turns blue, what it could have influenced orange, and what is concurrent fades."),
      el("p", { class: "soft" }, "Click or tap one, or press Enter in the picture. ? lists all keys.")];
  }
  return [
    el("h2", {}, eventName(scene, row)),
    app.near.length > 1 ? el("details", {}, el("summary", {}, `${app.near.length.toLocaleString("en")} events at this place`), eventList(app, app.near)) : null,
    relations(app, row),
    waited(app, row),
    fields(app, row),
    el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.pinIt(row) }, app.pin === row ? "Unpin" : "Pin to compare"),
      el("button", { type: "button", onclick: () => app.centre(row) }, "Centre"),
      el("button", { type: "button", onclick: () => app.choose(-1) }, "Clear")),
    compared(app, row),
    neighbours(app, row),
    clock(app, row),
  ];
}

function relations(app, row) {
  const { scene } = app;
  if (!scene.alive[row]) return el("p", { class: "warn" }, "This row has no place in the order: it was set aside (a cycle, a repeat, or a clock that tells nothing).");
  let before = 0;
  let after = 0;
  let all = 0;
  const run = scene.runs.codes[row];
  for (let k = 0; k < scene.size; k++) {
    before += scene.past[k];
    after += scene.future[k];
    all += scene.alive[k] && scene.runs.codes[k] === run ? 1 : 0;
  }
  const counting = scene.meta.whole && scene.meta.of > scene.size && !scene.counts;
  if (scene.counts) [before, after, all] = [scene.counts.past, scene.counts.future, scene.counts.past + scene.counts.future + scene.counts.concurrent + 1];
  const part = (number, word, kind) => el("div", { class: `figure ${kind}` }, el("b", {}, counting ? "…" : number.toLocaleString("en")), ` ${word}`);
  const figures = el("div", { class: "figures" }, part(before, "before it", "past"), part(after, "after it", "future"),
    part(all - before - after - 1, "concurrent", "apart"));
  if (scene.meta.of <= scene.size || scene.counts) return figures;
  if (counting) return el("div", {}, figures, el("p", { class: "soft" }, "Counting in the whole trace…"));
  return el("div", {}, figures, el("p", { class: "warn" }, `Counted among the ${counted(scene.size, "event")} at hand, of ${scene.meta.of.toLocaleString("en")}: the whole past may hold more. antecede ask answers for all.`));
}

function waited(app, row) {
  const { scene } = app;
  const parts = [];
  if (scene.marks[row] & NOWHERE) parts.push(el("p", { class: "warn" }, "Sent, and no row tells of an arrival."));
  if (scene.marks[row] & AGAIN) parts.push(el("p", { class: "warn" }, "A copy that had come to this member before."));
  if (scene.marks[row] & UNDELIVERED) parts.push(el("p", { class: "warn" }, "Received, and never delivered at this member."));
  const delivery = scene.isReceipt(row) ? scene.holds.find((one) => scene.received[one] === row) : row;
  const found = delivery === undefined ? null : scene.waitedFor(delivery);
  if (found) {
    const times = scene.axes.event_time?.values;
    const held = times ? times[delivery] - times[scene.received[delivery]] : NaN;
    const said = Number.isNaN(held) ? "" : ` for ${spanOf(held, 0)}`;
    if (found.length) parts.push(el("p", {}, `Held${said}. Sent before it, and delivered here while it was held:`), eventList(app, found));
    else if (held > 0) parts.push(el("p", {}, `Held${said}; nothing that happened before its sending was delivered here meanwhile.`));
  }
  return parts.length ? el("div", {}, parts) : null;
}

function fields(app, row) {
  const { scene } = app;
  const { arrays } = scene.data;
  const lines = [];
  const add = (name, value) => value !== "" && lines.push(el("dt", {}, name), el("dd", {}, plain(value, 2000)));
  add("id", scene.ids.at(row));
  add("kind", scene.kindOf(row));
  add("member", scene.members.at(row));
  add("says", scene.data.texts("text")?.at(row) ?? "");
  add("run", scene.runs.at(row));
  add("topics", scene.data.texts("topics")?.at(row) ?? "");
  add("role", scene.data.texts("role")?.at(row) ?? "");
  for (const axis of Object.values(scene.axes)) {
    if (axis.timed && !Number.isNaN(arrays[`time.${axis.name}`][row])) add(AXIS_WORDS[axis.name], axis.exact(arrays[`time.${axis.name}`][row]));
  }
  if (scene.end && !Number.isNaN(scene.end[row])) add("lasts", spanOf(scene.end[row] - scene.axes.event_time.values[row], 0));
  if (scene.graph.depth[row] >= 0) add(...depthOf(scene, row));
  if (arrays.seq && !Number.isNaN(arrays.seq[row])) add("number", String(arrays.seq[row]));
  scene.own.forEach((name, k) => add(plain(name, 60), scene.data.texts(`own.${k}`)?.at(row) ?? ""));
  const source = scene.data.texts("source")?.at(row) ?? "";
  const line = arrays.line && !Number.isNaN(arrays.line[row]) ? `, line ${arrays.line[row]}` : "";
  add("in", source.split("/").pop() + line);
  return el("dl", { class: "fields" }, lines);
}

/** Causes in the longest chain before an event, of the whole trace where they are known. */
function depthOf(scene, row) {
  if (scene.counts) return ["depth", scene.counts.depth.toLocaleString("en")];
  if (scene.meta.of <= scene.size) return ["depth", scene.graph.depth[row].toLocaleString("en")];
  if (scene.meta.whole) return ["depth", "…"];
  return ["depth among the events at hand", scene.graph.depth[row].toLocaleString("en")];
}

function compared(app, row) {
  const { scene, pin } = app;
  if (pin < 0 || pin === row || !scene.alive[row] || !scene.alive[pin]) return null;
  const name = eventName(scene, pin);
  if (!scene.past[pin] && !scene.future[pin]) return el("p", {}, `Concurrent with the pinned ${name}: neither could have influenced the other.`);
  const [from, to] = scene.past[pin] ? [pin, row] : [row, pin];
  const chain = scene.graph.path(from, to);
  return el("div", {}, el("p", {}, `${scene.past[pin] ? "After" : "Before"} the pinned ${name}, by ${counted(chain.length - 1, "step")}:`), eventList(app, chain));
}

function neighbours(app, row) {
  const { scene } = app;
  const causes = Array.from(scene.causesOf(row));
  const effects = Array.from(scene.effectsOf(row));
  const lost = scene.data.texts("missing");
  const missing = [];
  if (lost) scene.data.arrays["missing.rows"].forEach((of, k) => of === row && missing.push(lost.at(k)));
  return el("div", {},
    el("h3", {}, `Immediate causes (${causes.length})`), eventList(app, causes),
    missing.length ? el("p", { class: "warn" }, `Causes that are nowhere: ${plain(missing.join(", "), 600)}`) : null,
    el("h3", {}, `Immediate effects (${effects.length})`), eventList(app, effects));
}

function clock(app, row) {
  const { scene } = app;
  const names = scene.data.texts("clock.members");
  const rows = [];
  let title = "Its clock, as logged";
  if (names) {
    const { "clock.offsets": offsets, "clock.counts": counts } = scene.data.arrays;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) rows.push([names.at(k), counts[k]]);
  } else {
    title = "Its clock: events of each member up to it";
    const count = new Map();
    for (let k = 0; k < scene.size; k++) {
      if (scene.past[k] || k === row) count.set(scene.member[k], (count.get(scene.member[k]) ?? 0) + 1);
    }
    for (const [member, number] of count) rows.push([scene.lanes.names[member], number]);
  }
  if (!rows.length) return null;
  return el("details", { open: rows.length <= 12 }, el("summary", {}, title),
    table(["member", "events"], rows.slice(0, 200).map(([name, number]) => [plain(name, 60), number.toLocaleString("en")])),
    rows.length > 200 ? el("p", { class: "soft" }, `and ${(rows.length - 200).toLocaleString("en")} more`) : null);
}

// -- help -------------------------------------------------------------------------------------

export function helpPanel(app) {
  const keys = [
    ["← →", "event before, event after, of the member"], ["↑ ↓", "nearest event of the lane above, below"],
    ["Shift + arrows", "move the picture"], ["+ −", "closer, farther"], ["Shift + + −", "lanes higher, lower"],
    ["0 or f", "all of it"], ["Enter", "choose the event nearest to the middle; centre the chosen one"],
    ["c  e", "a cause at another member; an effect at another"], ["i", "worst inversion"], ["w", "longest wait"],
    ["s", "most skewed pair"], ["[  ]", "finding before, finding after"], ["/", "search"], ["n  p", "next match, match before"],
    ["t", "light or dark"], ["Esc", "clear"], ["1 2 3 4", "findings, members, event, help"],
  ];
  return [
    el("h2", {}, "Keys"),
    el("dl", { class: "keys" }, keys.map(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
    el("h2", {}, "Mouse and touch"),
    el("p", {}, "Drag moves, the wheel zooms where the pointer is; Shift and wheel moves along; over the names the wheel scrolls lanes, Ctrl and wheel makes them higher. Drag a name to move its lane. Two fingers zoom."),
    el("h2", {}, "Search"),
    el("p", {}, `Words are found in ids, texts, members and topics, and in what else the table holds; all must be there. member:alice, kind:send, -text:heartbeat, "several words", /an expression/. Fields: ${FIELDS.join(", ")}. An id is found as it stands, also with a colon in it.`),
    ...(app.scene.own.length ? [el("p", {}, `Fields of this table, in quotes where they have blanks: ${app.scene.own.map((name) => plain(name, 40)).join(", ")}.`)] : []),
    el("h2", {}, "Share"),
    el("p", {}, "The address holds what is seen: whoever has the file opens the same view with it. Export writes it as SVG or PNG; PDF is the browser's own print, with the picture as lines and text."),
  ];
}
