// Side panels: findings, members, selected event, help.
// Content of a trace is set as text, never as markup.

import { ORDERS } from "./timelines.js";
import { formatDuration, AXIS_WORDS } from "./axis.js";
import { FIELDS } from "./search.js";
import { REPEATED_COPY, NOT_RECEIVED, UNDELIVERED } from "./render_model.js";
import { el } from "../../../core/pages/assets/elements.js";
import { counted, plain } from "../../../core/pages/assets/text.js";

const MANY = 100;
const ORDER_WORDS = { ...AXIS_WORDS, ingest: "archive order", file_order: "as the file lists them" };

const goTo = (app, rows, label) =>
  el("button", { type: "button", class: "go", onclick: () => app.goTo(rows) }, label);

export function eventName(model, row) {
  const kind = model.kindOf(row);
  const id = model.ids.at(row);
  const member = model.members.at(row);
  // The id MEMBER:NUMBER contains the member.
  const known = model.member[row] === model.noMember || (kind === "event" && id.startsWith(`${member}:`));
  const where = known ? "" : ` at ${member}`;
  return plain(`${id}${kind === "event" ? "" : ` ${kind}`}${where}`, 90);
}

/** Return the text of an event; for an arrival, that of its send. */
export function eventText(model, row) {
  const texts = model.data.texts("text");
  const sending = model.sent ? model.sent[row] : -1;
  return texts?.at(row) || (sending >= 0 ? texts?.at(sending) : "") || "";
}

function eventButton(app, row) {
  const text = eventText(app.model, row);
  return el("button", { type: "button", class: "event", onclick: () => app.reveal(row) },
    eventName(app.model, row), text ? el("span", { class: "says" }, ` ${plain(text, 80)}`) : null);
}

function eventList(app, rows) {
  const shown = Array.from(rows.slice(0, MANY), (row) => el("li", {}, eventButton(app, row)));
  if (rows.length > MANY) shown.push(el("li", { class: "soft" }, `and ${(rows.length - MANY).toLocaleString("en")} more`));
  return el("ul", { class: "events" }, shown);
}

// -- findings ---------------------------------------------------------------------------------

export function findingsPanel(app) {
  const { meta } = app.model;
  const parts = [
    el("p", { class: "lead" }, summaryOf(app)),
    el("h2", {}, "Findings"),
    meta.findings.length
      ? el("ol", { class: "findings" }, meta.findings.map((one) => findingItem(app, one)))
      : el("p", {}, nothingFound(meta)),
    ...skewParts(app),
    ...inversionParts(app),
    ...waitParts(app),
    ...missingParts(app),
    legend(app),
  ];
  return parts;
}

function nothingFound(meta) {
  if (meta.axes[0]?.compared) return "None: no row was quarantined, and no effect is before its cause by the time.";
  if (meta.edges) return "None: no row was quarantined, and no effect is before its cause.";
  return meta.by === "events" ? "None; no times to compare arrivals with sends." : "None; no event has a cause in the trace, so no order was compared.";
}

function summaryOf(app) {
  const { meta, timelines, runs } = app.model;
  const how = { events: "sends and arrivals", clocks: "vector clocks", causes: "declared causes" };
  const source = meta.causality_source === "member sequence" ? "each member's own numbers" : how[meta.by];
  const sourceText = meta.causality_source === "none" ? " No source of causality (causality_source: none)." : ` Source of causality: ${source}.`;
  const members = timelines.names.filter((_, k) => k < app.model.noMember).length;
  const several = runs.size > 1 ? ` in ${counted(runs.size, "run")}` : "";
  return `${meta.format}: ${counted(meta.tiles ? meta.of : meta.events, "event")} of ${counted(members, "member")}${several}.${meta.of ? sourceText : ""}`;
}

/** Return a sentence as nodes; text between backquotes becomes code. */
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
  const { meta } = app.model;
  const share = (one) => `${one.count.toLocaleString("en")} of ${one.compared.toLocaleString("en")}`;
  const rows = meta.orders.filter((one) => one.compared).map((one) => [
    ORDER_WORDS[one.order] ?? one.order, share(one), one.largest || "–",
    one.rows.length ? goTo(app, one.rows, "Show") : "",
  ]);
  if (meta.by === "events") {
    for (const one of meta.axes.slice(0, 1).filter((axis) => axis.compared)) {
      rows.unshift(["arrival before its send", share(one),
        one.count ? formatDuration(one.largest, 0) : "–", one.rows.length ? goTo(app, one.rows, "Show") : ""]);
    }
  }
  if (!rows.length) return [];
  return [el("h2", {}, "Effects before their cause"), table(["order", "edges", "largest step back", ""], rows)];
}

function skewParts(app) {
  const { skew } = app.model.meta;
  if (!skew?.compared) return [];
  const title = el("h2", {}, "Clocks");
  if (!skew.pairs.length) {
    return [title, el("p", {}, `${counted(skew.compared, "pair")} of connected members compared: no clock needs a shift.`)];
  }
  const text = skew.hosts.length
    ? table(["inaccurate clock", "deviation, at least", ""], skew.hosts.map((host) => [
        plain(host.host, 60), formatDuration(-host.shift_ns, 0), host.rows.length ? goTo(app, host.rows, "Show") : ""]))
    : el("p", {}, "No constant shifts explain all of them: a clock drifts or steps.");
  const corrected = app.model.axis.name === "corrected";
  const correct = "corrected" in app.model.axes
    ? el("div", { class: "row" }, el("button", { type: "button", id: "correct", "aria-pressed": String(corrected), onclick: () => { app.setAxis(corrected ? "event_time" : "corrected"); app.show(); } },
      corrected ? "Show the recorded times" : "Correct the clocks"))
    : null;
  return [title, text, correct, table(["pair", "least shift", "events outside", ""], skew.pairs.map((pair) => [
    plain(`${pair.of} against ${pair.against}`, 80),
    pair.least_shift_ns === null ? "none does" : formatDuration(pair.least_shift_ns, 0),
    `${pair.violations.toLocaleString("en")} of ${pair.edges.toLocaleString("en")}`,
    pair.rows.length ? goTo(app, pair.rows, "Show") : ""]))];
}

function waitParts(app) {
  const { waits } = app.model.meta;
  if (!waits.length) return [];
  return [el("h2", {}, "Longest waits"), table(["held for", "message", ""], waits.slice(0, 10).map((wait) => [
    formatDuration(wait.ns, 0), plain(`${wait.message} at ${wait.member}`, 90),
    goTo(app, [wait.received, wait.delivered], "Show")]))];
}

function missingParts(app) {
  const { missing } = app.model.meta;
  if (!missing.ids) return [];
  const rows = missing.named.map((one) => [
    plain(one.id, 60) + (one.quarantined ? " (its own row is quarantined)" : ""),
    one.references.toLocaleString("en"), one.rows.length ? goTo(app, one.rows, "Show") : ""]);
  const more = missing.ids - missing.named.length;
  return [el("h2", {}, `Missing causes (${missing.ids.toLocaleString("en")})`),
    table(["id", "references", "first"], rows),
    more > 0 ? el("p", { class: "soft" }, `and ${more.toLocaleString("en")} more`) : null];
}

function legend(app) {
  const { model } = app;
  const hasArrivals = model.sent !== null;
  const lines = [
    ...(hasArrivals ? [["▶", "sent"], ["○", "received"], ["■", "delivered"]] : []),
    ["●", hasArrivals ? "another event" : "event"],
    ...(hasArrivals ? [["▨", "bar: held from receipt to delivery"], ["┄✕", "sent, no arrival"], ["┄○", "repeated copy (dotted line)"]] : []),
    ["—·—", "an effect before its cause, by the axis"],
    ...(model.meta.broken?.length ? [["✗", "red: violation of a promise of the protocol"]] : []),
    ...(model.meta.in_transit?.length ? [["┄", "in transit at the end, with the name of the receiver"]] : []),
    ["×", "quarantined: not part of the order"],
    ...(model.hasErrors ? [["◇", "red: error; brown: warning"], ["▂", "red, below a bar: the bar contains errors"]] : []),
    ["◎", "selected event; dashed ring: pinned event"],
    ["▁●", "causal past of the selected event: blue, underlined, solid lines"],
    ["▔●", "causal future of the selected event: orange, overlined, broken lines"],
    ["grey", "concurrent with the selected event"],
    ["━▶", "shortest chain between the pinned and the selected event"],
    ["▌", "several events in a few pixels; the height is the logarithm of their number"],
  ];
  return el("details", { class: "legend" }, el("summary", {}, "Legend"),
    el("dl", {}, lines.map(([mark, what]) => [el("dt", {}, mark), el("dd", {}, what)])));
}

// -- members ----------------------------------------------------------------------------------

export function membersPanel(app) {
  const { timelines } = app.model;
  const order = el("select", { id: "order", onchange: (event) => app.arrange((l) => (l.order = event.target.value)) },
    Object.entries(ORDERS).map(([value, text]) => el("option", { value, selected: value === timelines.order }, text)));
  const rules = { "": "not at all", prefix: "by prefix of the name", topics: "by topic or room", role: "by role", source: "by file" };
  const there = Object.entries(rules).filter(([rule]) => !["topics", "role", "source"].includes(rule) || (app.model.data.texts(rule)?.size ?? 0) > 1);
  const own = timelines.grouping.startsWith("=");
  const group = el("select", { id: "group", onchange: (event) => app.group(event.target.value) },
    there.map(([value, text]) => el("option", { value, selected: value === timelines.grouping }, text)),
    own ? el("option", { value: timelines.grouping, selected: true }, `by the part before “${timelines.grouping.slice(1)}”`) : null);
  const before = el("input", { id: "before", size: 4, maxLength: 20, value: own ? timelines.grouping.slice(1) : "", onchange: (event) => app.group(event.target.value ? `=${event.target.value}` : "") });
  const parts = [
    el("div", { class: "row" }, el("label", { htmlFor: "order" }, "Order"), order),
    el("div", { class: "row" }, el("label", { htmlFor: "group" }, "Group"), group,
      el("label", { htmlFor: "before" }, "or by the part before"), before),
  ];
  if (timelines.groups.length) {
    parts.push(el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.arrange((l) => l.groups.forEach((g) => l.folded.add(g))) }, "Fold all"),
      el("button", { type: "button", onclick: () => app.arrange((l) => l.folded.clear()) }, "Unfold all")));
    parts.push(el("ul", { class: "groups" }, timelines.groups.slice(0, MANY).map((name) => el("li", {},
      el("button", { type: "button", class: "link", "aria-expanded": String(!timelines.folded.has(name)), onclick: () => app.arrange((l) => (l.folded.delete(name) || l.folded.add(name))) },
        `${timelines.folded.has(name) ? "▸" : "▾"} ${plain(name, 60)}`)))));
  }
  parts.push(el("div", { class: "row" },
    el("button", { type: "button", onclick: () => app.arrange((l) => l.hidden.clear()) }, "Show all"),
    el("button", { type: "button", onclick: () => app.arrange((l) => l.names.forEach((_, k) => l.hidden.add(k))) }, "Hide all"),
    el("button", { type: "button", onclick: () => app.onlyRelated(), disabled: app.model.chosen < 0 }, "Show only related members")));
  parts.push(memberList(app, timelines));
  return parts;
}

function memberList(app, timelines) {
  const there = [];
  timelines.names.forEach((_, member) => timelines.counts[member] && there.push(member));
  there.sort(timelines.comparison()); // hidden members stay listed
  const list = there.slice(0, 500).map((member) => el("li", {},
    el("label", {}, el("input", { type: "checkbox", checked: !timelines.hidden.has(member), onchange: () => app.arrange((l) => (l.hidden.delete(member) || l.hidden.add(member))) }),
      ` ${plain(timelines.names[member], 60)} `, el("span", { class: "soft" }, timelines.counts[member].toLocaleString("en"))),
    el("span", { class: "moves" },
      moveButton(app, member, -1, "up"), moveButton(app, member, 1, "down"))));
  const more = there.length - 500;
  return [el("ul", { class: "members" }, list),
    more > 0 ? el("p", { class: "soft" }, `and ${more.toLocaleString("en")} more: find them by search`) : null];
}

function moveButton(app, member, by, word) {
  const name = plain(app.model.timelines.names[member], 40);
  return el("button", {
    type: "button", "aria-label": `Move ${name} ${word}`, class: "small",
    onclick: () => app.arrange((l) => {
      const at = l.timelineOf[member];
      if (at < 0) return;
      const to = by < 0 ? at - 1 : at + 2;
      if (to >= 0 && to <= l.list.length) l.move(at, to);
    }),
  }, by < 0 ? "↑" : "↓");
}

// -- selected event ---------------------------------------------------------------------------

export function eventPanel(app) {
  const { model } = app;
  const row = model.chosen;
  if (row < 0) {
    return [el("p", {}, "Select an event: its causal past turns blue, its causal future orange, and concurrent events fade."),
      el("p", {}, "Pin it and select a second event: the diagram shows the shortest chain between the two."),
      el("p", { class: "soft" }, "Click or tap an event, or press Enter in the diagram. ? lists all keys.")];
  }
  return [
    el("h2", {}, eventName(model, row)),
    app.near.length > 1 ? el("details", {}, el("summary", {}, `${app.near.length.toLocaleString("en")} events at this place`), eventList(app, app.near)) : null,
    relations(app, row),
    compared(app, row),
    waited(app, row),
    fields(app, row),
    el("div", { class: "row" },
      el("button", { type: "button", onclick: () => app.togglePin(row) }, model.pin === row ? "Unpin" : "Pin to compare"),
      el("button", { type: "button", onclick: () => app.centre(row) }, "Centre"),
      el("button", { type: "button", onclick: () => app.choose(-1) }, "Clear")),
    neighbours(app, row),
    clock(app, row),
  ];
}

function relations(app, row) {
  const { model } = app;
  if (!model.alive[row]) return el("p", { class: "warn" }, "This row is not part of the order: it is quarantined (a cycle, a repeat, or a clock without its own entry).");
  let before = 0;
  let after = 0;
  let all = 0;
  const run = model.runs.codes[row];
  for (let k = 0; k < model.size; k++) {
    before += model.past[k];
    after += model.future[k];
    all += model.alive[k] && model.runs.codes[k] === run ? 1 : 0;
  }
  const counting = model.meta.whole && model.meta.of > model.size && !model.counts;
  if (model.counts) [before, after, all] = [model.counts.past, model.counts.future, model.counts.past + model.counts.future + model.counts.concurrent + 1];
  const part = (number, word, kind) => el("div", { class: `figure ${kind}` }, el("b", {}, counting ? "…" : number.toLocaleString("en")), ` ${word}`);
  const figures = el("div", { class: "figures" }, part(before, "before it", "past"), part(after, "after it", "future"),
    part(all - before - after - 1, "concurrent", "apart"));
  if (model.meta.of <= model.size || model.counts) return figures;
  if (counting) return el("div", {}, figures, el("p", { class: "soft" }, "Counting in the whole trace…"));
  return el("div", {}, figures, el("p", { class: "warn" }, `Counted among ${counted(model.size, "event")} of ${model.meta.of.toLocaleString("en")}: the whole past may be larger. antecede ask counts the whole trace.`));
}

function waited(app, row) {
  const { model } = app;
  const parts = [];
  if (model.marks[row] & NOT_RECEIVED) parts.push(el("p", { class: "warn" }, "Sent, without an arrival in the trace."));
  if (model.marks[row] & REPEATED_COPY) parts.push(el("p", { class: "warn" }, "Repeated copy: it had arrived at this member before."));
  if (model.marks[row] & UNDELIVERED) parts.push(el("p", { class: "warn" }, "Received, but not delivered at this member."));
  const delivery = model.isReceipt(row) ? model.holds.find((one) => model.received[one] === row) : row;
  const found = delivery === undefined ? null : model.waitedFor(delivery);
  if (found) {
    const times = model.axes.event_time?.values;
    const held = times ? times[delivery] - times[model.received[delivery]] : NaN;
    const text = Number.isNaN(held) ? "" : ` for ${formatDuration(held, 0)}`;
    if (found.length) parts.push(el("p", {}, `Held${text}. Causally earlier messages delivered here meanwhile:`), eventList(app, found));
    else if (held > 0) parts.push(el("p", {}, `Held${text}; no causally earlier message was delivered here meanwhile.`));
  }
  return parts.length ? el("div", {}, parts) : null;
}

function fields(app, row) {
  const { model } = app;
  const { arrays } = model.data;
  const lines = [];
  const add = (name, value) => value !== "" && lines.push(el("dt", {}, name), el("dd", {}, plain(value, 2000)));
  add("id", model.ids.at(row));
  add("kind", model.kindOf(row));
  add("member", model.members.at(row));
  add("text", model.data.texts("text")?.at(row) ?? "");
  add("run", model.runs.at(row));
  add("topics", model.data.texts("topics")?.at(row) ?? "");
  add("role", model.data.texts("role")?.at(row) ?? "");
  for (const axis of Object.values(model.axes)) {
    if (axis.isTimed && !Number.isNaN(arrays[`time.${axis.name}`][row])) add(AXIS_WORDS[axis.name], axis.exact(arrays[`time.${axis.name}`][row]));
  }
  if (model.lasts && !Number.isNaN(model.lasts[row])) add("duration", formatDuration(model.lasts[row], 0));
  if (model.graph.depth[row] >= 0) add(...depthOf(model, row));
  if (arrays.seq && !Number.isNaN(arrays.seq[row])) add("number", String(arrays.seq[row]));
  model.own.forEach((name, k) => add(plain(name, 60), model.data.texts(`own.${k}`)?.at(row) ?? ""));
  const source = model.data.texts("source")?.at(row) ?? "";
  const line = arrays.line && !Number.isNaN(arrays.line[row]) ? `, line ${arrays.line[row]}` : "";
  add("source", source.split("/").pop() + line);
  return el("dl", { class: "fields" }, lines);
}

/** Return label and value of an event's depth, in the whole trace if it is known. */
function depthOf(model, row) {
  const exact = model.data.arrays["time.logical"];
  if (exact) return ["depth", exact[row].toLocaleString("en")];
  if (model.counts) return ["depth", model.counts.depth.toLocaleString("en")];
  if (model.meta.of <= model.size) return ["depth", model.graph.depth[row].toLocaleString("en")];
  if (model.meta.whole) return ["depth", "…"];
  return ["depth among the loaded events", model.graph.depth[row].toLocaleString("en")];
}

/** Describe the relation of the selected event to the pinned one, and list their chain. */
function compared(app, row) {
  const { model } = app;
  const { place } = model.data.arrays;
  if (!(app.pinned >= 0) || app.pinned === place[row] || !model.alive[row]) return null;
  const far = model.wholeChain && app.chainData;
  const list = far ? far.meta.chain : model.chain?.map((one) => place[one]);
  const name = model.pin < 0 ? "event" : eventName(model, model.pin);
  const unpin = el("button", { type: "button", onclick: () => app.togglePin(model.pin) }, "Unpin");
  if (model.meta.whole && !model.wholeChain) return el("p", {}, "Searching for the shortest chain…");
  if (!list?.length) return el("div", {}, el("p", {}, `Concurrent with the pinned ${name}: neither could have influenced the other.`), unpin);
  return el("div", {}, el("p", {}, `${list[0] === app.pinned ? "After" : "Before"} the pinned ${name}. Shortest chain, ${counted(list.length - 1, "step")}:`),
    el("div", { class: "row" },
      el("button", { type: "button", id: "alone", "aria-pressed": String(model.alone), onclick: () => app.setAlone(!model.alone) }, model.alone ? "Show all events" : "Show only the chain"), unpin),
    far ? chainList(app, far) : eventList(app, model.chain));
}

/** List the events of a chain, most of which may be in other tiles. */
function chainList(app, data) {
  const { chain } = data.meta;
  const row = new Map(Array.from(data.arrays.place, (place, k) => [place, k]));
  const text = (name, place) => data.texts(name)?.at(row.get(place)) ?? "";
  return el("ul", { class: "events" }, chain.slice(0, MANY).map((place) => el("li", {},
    el("button", { type: "button", class: "event", onclick: () => app.goTo([place]) },
      plain(text("id", place), 90), el("span", { class: "says" }, ` ${plain(text("text", place), 80)}`)))));
}

function neighbours(app, row) {
  const { model } = app;
  const causes = Array.from(model.causesOf(row));
  const effects = Array.from(model.effectsOf(row));
  const lost = model.data.texts("missing");
  const missing = [];
  if (lost) model.data.arrays["missing.rows"].forEach((of, k) => of === row && missing.push(lost.at(k)));
  return el("div", {},
    el("h3", {}, `Immediate causes (${causes.length})`), eventList(app, causes),
    missing.length ? el("p", { class: "warn" }, `Missing causes: ${plain(missing.join(", "), 600)}`) : null,
    el("h3", {}, `Immediate effects (${effects.length})`), eventList(app, effects));
}

function clock(app, row) {
  const { model } = app;
  const names = model.data.texts("clock.members");
  const rows = [];
  let title = "Its clock, as logged";
  if (names) {
    const { "clock.offsets": offsets, "clock.counts": counts } = model.data.arrays;
    for (let k = offsets[row]; k < offsets[row + 1]; k++) rows.push([names.at(k), counts[k]]);
  } else {
    title = "Its clock: events of each member up to it";
    const count = new Map();
    for (let k = 0; k < model.size; k++) {
      if (model.past[k] || k === row) count.set(model.member[k], (count.get(model.member[k]) ?? 0) + 1);
    }
    for (const [member, number] of count) rows.push([model.timelines.names[member], number]);
  }
  if (!rows.length) return null;
  return el("details", { open: rows.length <= 12 }, el("summary", {}, title),
    table(["member", "events"], rows.slice(0, 200).map(([name, number]) => [plain(name, 60), number.toLocaleString("en")])),
    rows.length > 200 ? el("p", { class: "soft" }, `and ${(rows.length - 200).toLocaleString("en")} more`) : null);
}

// -- help -------------------------------------------------------------------------------------

export function helpPanel(app) {
  const keys = [
    ["← →", "previous and next event of the member"], ["↑ ↓", "nearest event of the timeline above, below"],
    ["Shift + arrows", "move the diagram"], ["+ −", "zoom in, out"], ["Shift + + −", "timelines higher, lower"],
    ["0 or f", "whole trace"], ["Enter", "select the event nearest to the middle; centre the selected one"],
    ["c  e", "a cause at another member; an effect at another"], ["i", "worst inversion"], ["w", "longest wait"],
    ["s", "most skewed pair"], ["[  ]", "previous, next finding"], ["/", "search"], ["n  p", "next, previous match"],
    ["t", "light or dark"], ["Esc", "clear"], ["1 2 3 4", "findings, members, event, help"],
  ];
  return [
    el("h2", {}, "Keys"),
    el("dl", { class: "keys" }, keys.map(([key, what]) => [el("dt", {}, key), el("dd", {}, what)])),
    el("h2", {}, "Mouse and touch"),
    el("p", {}, "Shift and a click pin the selected event and select another one. Drag to move. The wheel zooms at the pointer; with Shift it moves along the axis; over the names it scrolls; with Ctrl it changes the height of timelines. Drag a name to move its timeline. Two fingers zoom."),
    el("h2", {}, "Search"),
    el("p", {}, `Words are searched in ids, texts, members, topics and the other columns of the table; all must match. member:alice, kind:send, -text:heartbeat, "several words", /an expression/. Fields: ${FIELDS.join(", ")}. An id may contain colons.`),
    ...(app.model.own.length ? [el("p", {}, `Columns of this table (quote names with blanks): ${app.model.own.map((name) => plain(name, 40)).join(", ")}.`)] : []),
    el("h2", {}, "Share"),
    el("p", {}, "The address contains the state of the view. Export writes the diagram as SVG or PNG; PDF uses the print function of the browser, with lines and text."),
  ];
}
