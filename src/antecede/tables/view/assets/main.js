// The page: one scene, one view of it, and what moves them.

import { inflated, unpacked } from "./data.js";
import { SearchError, parseSearch } from "./search.js";
import { Scene } from "./render_model.js";
import { AXIS_WORDS } from "./axis.js";
import { THEMES, TOP, hit, paint } from "./paint.js";
import { SvgContext } from "./svg.js";
import { counted, plain } from "../../../core/pages/assets/text.js";
import { hashOf, stateOf } from "./state.js";
import { listen } from "../../../core/pages/assets/gestures.js";
import { el } from "../../../core/pages/assets/elements.js";
import { eventName, eventPanel, findingsPanel, helpPanel, membersPanel, saidBy } from "./panels.js";

const PANELS = { findings: findingsPanel, members: membersPanel, event: eventPanel, help: helpPanel };
const FULL = 4000; // lines of messages when nothing moves
const NEAR = 200; // events around one that is gone to
const REST = 140; // ms after which nothing moves
const byId = (id) => document.getElementById(id);

class App {
  constructor(data) {
    this.scene = new Scene(data);
    // Where causality orders nothing (all on cycles, say), rows are shown as they are listed.
    if (!this.scene.rows.length && !this.scene.meta.tiles) this.scene.setAxis("file");
    this.canvas = byId("picture");
    this.ctx = this.canvas.getContext("2d", { alpha: false });
    this.view = { x0: 0, x1: 1, y: 0, laneH: 30, left: 120, width: 100, height: 100 };
    this.near = [];
    this.pin = -1;
    this.tab = "findings";
    this.query = "";
    this.terms = [];
    this.searchError = "";
    this.finding = -1;
    this.fast = 1500;
    this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.setUp();
    this.size();
    this.begin();
    this.restore(stateOf(location.hash));
    const { around } = this.scene.meta;
    if (around >= 0 && !location.hash.includes("event=")) {
      if (this.scene.meta.piece) this.within(this.scene.meta.piece, around);
      this.centre(around);
    }
    this.show();
  }

  setUp() {
    listen(this.canvas, this.verbs());
    listen(byId("overview"), this.overviewVerbs());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    addEventListener("keydown", (event) => {
      if (event.target === document.body) this.key(event);
    });
    addEventListener("hashchange", () => {
      if (location.hash !== this.written) this.restore(stateOf(location.hash), true);
    });
    new ResizeObserver(() => {
      this.size();
      this.draw();
    }).observe(byId("stage"));
    this.setUpBar();
    for (const name of Object.keys(PANELS)) {
      byId(`tab-${name}`).addEventListener("click", () => this.setTab(name));
    }
    byId("tabs").addEventListener("keydown", (event) => {
      const names = Object.keys(PANELS);
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      this.setTab(names[(names.indexOf(this.tab) + by + names.length) % names.length]);
      byId(`tab-${this.tab}`).focus();
    });
  }

  setUpBar() {
    const axis = byId("axis");
    for (const name of Object.keys(this.scene.axes)) axis.append(el("option", { value: name }, AXIS_WORDS[name]));
    axis.addEventListener("change", () => this.setAxis(axis.value));
    const { runs } = this.scene;
    axis.value = this.scene.axis.name;
    byId("runs").hidden = runs.size < 2;
    if (runs.size > 1) {
      for (let k = 0; k < Math.min(runs.size, 2000); k++) byId("run").append(el("option", { value: String(k) }, plain(runs.value(k), 60)));
      byId("run").append(el("option", { value: "-1" }, `all ${runs.size.toLocaleString("en")} runs`));
    }
    byId("run").addEventListener("change", () => this.setRun(Number(byId("run").value)));
    byId("search").addEventListener("input", () => this.search(byId("search").value));
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.scene.meta.tiles && this.terms.length) this.find();
      else if (event.key === "Enter") this.nextMatch(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        byId("search").value = "";
        this.search("");
        this.canvas.focus();
      }
    });
    byId("only").addEventListener("change", () => this.setOnly(byId("only").checked));
    const on = (id, work) => byId(id).addEventListener("click", work);
    on("next", () => this.nextMatch(1));
    on("previous", () => this.nextMatch(-1));
    on("closer", () => this.zoom(1.6, this.middle()));
    on("farther", () => this.zoom(1 / 1.6, this.middle()));
    on("all", () => this.fit(true));
    on("theme", () => this.setTheme(this.theme === "dark" ? "light" : "dark"));
    on("svg", () => this.save(new Blob([this.svg()], { type: "image/svg+xml" }), "svg"));
    on("png", () => this.canvas.toBlob((blob) => this.save(blob, "png")));
    on("pdf", () => this.print());
    this.setUpMenu(document.querySelector("details.menu"));
  }

  /** A menu that closes when something is chosen, something else is pressed, or on Escape. */
  setUpMenu(menu) {
    menu.addEventListener("click", (event) => {
      if (event.target.closest("button")) menu.open = false;
    });
    addEventListener("pointerdown", (event) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !menu.open) return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }

  verbs() {
    return {
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x) => this.zoom(factor, x),
      zoomLanes: (factor, y) => this.zoomLanes(factor, y),
      wheel: ([x, y], dx, dy, event) => {
        if (event.ctrlKey) this.zoomLanes(Math.exp(-dy / 300), y);
        else if (x < this.view.left) this.pan(0, -dy);
        else if (event.shiftKey) this.pan(-(dx || dy), 0);
        else if (Math.abs(dx) > Math.abs(dy)) this.pan(-dx, 0);
        else this.zoom(Math.exp(-dy / 300), x);
      },
      click: (x, y, more) => this.click(x, y, more),
      double: (x) => this.zoom(2, x),
      hover: (x, y) => this.hover(x, y),
      away: () => (byId("tip").hidden = true),
      grab: (x, y) => {
        this.taken = x < this.view.left && y > TOP ? this.laneAt(y) : -1;
        return this.taken >= 0 && this.taken < this.scene.lanes.lanes.length;
      },
      drag: (x, y) => {
        this.canvas.style.cursor = "grabbing";
        this.drawn(() => this.dropLine(y));
      },
      drop: (x, y) => {
        this.canvas.style.cursor = "";
        const to = Math.max(0, Math.min(this.scene.lanes.lanes.length, Math.round((y - TOP + this.view.y) / this.view.laneH)));
        this.arrange((lanes) => lanes.move(this.taken, to));
      },
    };
  }

  overviewVerbs() {
    const to = (x) => {
      const { low, high } = this.scene;
      const share = (x - this.view.left) / Math.max(1, this.view.width - this.view.left);
      const half = (this.view.x1 - this.view.x0) / 2;
      const at = low + share * (high - low);
      this.look(at - half, at + half);
    };
    return { grab: () => true, drag: to, drop: to, click: to, pan() {}, zoom() {}, zoomLanes() {}, wheel: ([x], dx, dy) => this.zoom(Math.exp(-dy / 300), x) };
  }

  // -- where one looks ----------------------------------------------------------------------

  size() {
    const box = byId("stage").getBoundingClientRect();
    const view = this.view;
    const ratio = Math.min(2, devicePixelRatio || 1);
    view.width = Math.max(60, Math.floor(box.width));
    view.height = Math.max(80, Math.floor(box.height));
    this.canvas.width = view.width * ratio;
    this.canvas.height = view.height * ratio;
    this.ratio = view.ratio = ratio;
    view.text = innerWidth >= 1800 ? 1.25 : 1; // a projector's screen is seen from afar
    this.gutter();
    this.limit();
  }

  gutter() {
    let longest = 6;
    for (const lane of this.scene.lanes.lanes) longest = Math.max(longest, lane.label.length);
    this.view.left = Math.round(Math.max(56, Math.min((longest * 7.3 + 4) * this.view.text + 22, 240 * this.view.text, this.view.width * 0.28)));
  }

  fit(now = false) {
    const room = this.view.height - TOP;
    this.view.laneH = Math.max(20, Math.min(140, room / Math.max(1, this.scene.lanes.lanes.length)));
    this.view.y = 0;
    this.spread();
    if (now) this.note();
  }

  /** Look at all, or at nearly all where a few times far off would make a dot of the others. */
  begin() {
    this.fit();
    const { scene, view } = this;
    if (!scene.axis.timed || scene.meta.tiles || scene.rows.length < 200) return;
    const times = Float64Array.from(scene.rows, (row) => scene.axis.values[row]).sort();
    const few = Math.floor(times.length / 200);
    const [from, to] = [times[few], times[times.length - 1 - few]];
    if (!(to > from) || (to - from) * 4 > scene.high - scene.low) return;
    const pad = (to - from) * 0.05;
    this.look(from - pad, to + pad);
    this.far = { count: times.filter((time) => time < view.x0 || time > view.x1).length, x0: view.x0 };
  }

  /** Look from end to end. */
  spread() {
    const { low, high } = this.scene;
    const pad = (high - low) * 0.03 || (this.scene.axis.timed ? 1e6 : 1);
    this.look(low - pad, high + pad);
  }

  look(x0, x1) {
    this.view.x0 = x0;
    this.view.x1 = x1;
    this.limit();
    this.move();
  }

  /** Keep some of the trace in sight. */
  limit() {
    const { view, scene } = this;
    const whole = scene.high - scene.low || 1;
    const least = scene.axis.timed ? 50 : 2;
    let width = Math.min(Math.max(view.x1 - view.x0, least), whole * 3 + least);
    if (!Number.isFinite(width)) width = whole;
    const middle = Math.min(Math.max((view.x0 + view.x1) / 2, scene.low - width * 0.4), scene.high + width * 0.4);
    view.x0 = middle - width / 2;
    view.x1 = middle + width / 2;
    const tall = scene.lanes.lanes.length * view.laneH;
    view.y = Math.max(0, Math.min(view.y, tall - (view.height - TOP)));
  }

  pan(dx, dy) {
    const scale = (this.view.x1 - this.view.x0) / (this.view.width - this.view.left);
    this.view.y -= dy;
    this.look(this.view.x0 - dx * scale, this.view.x1 - dx * scale);
  }

  zoom(factor, x) {
    const { view } = this;
    const share = (x - view.left) / (view.width - view.left);
    const at = view.x0 + share * (view.x1 - view.x0);
    const width = (view.x1 - view.x0) / factor;
    this.look(at - share * width, at + (1 - share) * width);
  }

  zoomLanes(factor, y) {
    const lane = (y - TOP + this.view.y) / this.view.laneH;
    this.view.laneH = Math.max(3, Math.min(140, this.view.laneH * factor));
    this.view.y = lane * this.view.laneH - (y - TOP);
    this.limit();
    this.move();
  }

  middle() {
    return (this.view.left + this.view.width) / 2;
  }

  laneAt(y) {
    return Math.floor((y - TOP + this.view.y) / this.view.laneH);
  }

  // -- drawing ------------------------------------------------------------------------------

  /** Something moves: draw soon, with fewer lines, and all of them when it rests. */
  move() {
    this.moving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.moving = false;
      this.draw();
      this.note();
      this.fetchPiece();
    }, REST);
    this.draw();
  }

  draw() {
    if (this.asked) return;
    this.asked = requestAnimationFrame((now) => {
      this.asked = 0;
      this.pace(now);
      this.drawn();
    });
  }

  drawn(after = null) {
    const begin = performance.now();
    this.ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const told = paint(this.ctx, this.scene, this.view, THEMES[this.theme], { lines: this.moving ? this.fast : FULL });
    after?.();
    this.overview();
    this.spent = performance.now() - begin;
    this.status(told);
  }

  /** While something moves: fewer lines where frames come late, more where they are in time. */
  pace(now) {
    const apart = now - (this.before ?? now);
    this.before = now;
    if (!this.moving || apart > 400) return;
    if (apart > 22) this.fast = Math.max(100, this.fast * 0.8);
    else if (apart < 18) this.fast = Math.min(FULL, this.fast * 1.05);
  }

  dropLine(y) {
    const at = Math.round((y - TOP + this.view.y) / this.view.laneH) * this.view.laneH + TOP - this.view.y;
    this.ctx.fillStyle = THEMES[this.theme].chosen;
    this.ctx.fillRect(0, at - 1, this.view.width, 2);
  }

  overview() {
    const canvas = byId("overview");
    const { view, scene, ratio } = this;
    const height = 36;
    const key = [view.width, view.left, ratio, scene.version, this.theme, scene.chosen, scene.axis.name].join();
    if (this.overviewKey !== key) {
      this.overviewKey = key;
      this.overviewBack = this.overviewOf(height);
      canvas.width = view.width * ratio;
      canvas.height = height * ratio;
    }
    const ctx = canvas.getContext("2d");
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(this.overviewBack, 0, 0);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scale = (view.width - view.left) / (scene.high - scene.low || 1);
    const x = view.left + (view.x0 - scene.low) * scale;
    const width = Math.max(3, (view.x1 - view.x0) * scale);
    const from = Math.max(view.left, x);
    ctx.strokeStyle = THEMES[this.theme].ink;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(from + 0.75, 1.5, Math.max(2, Math.min(view.width - 2, x + width) - from - 1.5), height - 3);
  }

  overviewOf(height) {
    const { view, scene, ratio } = this;
    const made = document.createElement("canvas");
    made.width = view.width * ratio;
    made.height = height * ratio;
    const ctx = made.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const size = Math.max(1, Math.floor((view.width - view.left) / 2));
    const counts = { all: new Uint32Array(size), past: new Uint32Array(size), future: new Uint32Array(size) };
    const scale = (size - 1) / (scene.high - scene.low || 1);
    let most = 1;
    const whole = scene.data.arrays["overview.rows"]; // of a trace in pieces
    whole?.forEach((rows, k) => {
      const bin = Math.min(size - 1, Math.floor((k / whole.length) * size));
      most = Math.max(most, (counts.all[bin] += rows));
    });
    for (const row of whole ? [] : scene.rows) {
      const bin = Math.floor((scene.axis.values[row] - scene.low) * scale);
      most = Math.max(most, ++counts.all[bin]);
      if (scene.past) {
        counts.past[bin] += scene.past[row];
        counts.future[bin] += scene.future[row];
      }
    }
    const theme = THEMES[this.theme];
    const tall = (count) => (Math.log1p(count) / Math.log1p(most)) * (height - 6);
    for (const [name, colour] of [["all", scene.past ? theme.dim : theme.soft], ["past", theme.past], ["future", theme.future]]) {
      ctx.fillStyle = colour;
      counts[name].forEach((count, k) => count && ctx.fillRect(view.left + k * 2, height - 2 - tall(count), 2, tall(count)));
    }
    return made;
  }

  status(told) {
    const { scene } = this;
    const parts = this.notice ? [this.notice] : [];
    if (this.searchError) parts.push(plain(`search: ${this.searchError}`, 300));
    if (scene.meta.grid) parts.push(`${told.events.toLocaleString("en")} of ${counted(scene.meta.of, "event")} in view; come closer for messages and single events${this.terms.length ? ", Enter finds the next match" : ""}`);
    else parts.push(`${counted(told.events, "event")} in view`);
    if (told.lines) parts.push(told.drawn < told.lines ? `${told.drawn.toLocaleString("en")} of ${counted(told.lines, "line")} drawn (zoom in for all)` : counted(told.lines, "line"));
    if (!told.singly) parts.push("bars where events are dense");
    if (this.far?.count && this.far.x0 === this.view.x0) parts.push(`${counted(this.far.count, "event")} far off in time: All shows them too`);
    if (scene.matches && !scene.meta.grid) parts.push(scene.meta.tiles ? `${this.matchWords()} at hand; Enter finds the next one in all` : this.matchWords());
    const left = scene.meta.tiles ? 0 : scene.size - scene.rows.length;
    if (left && scene.run < 0 && !scene.only && !scene.lanes.hidden.size) parts.push(`${counted(left, "event")} without a place on this axis`);
    const said = parts.join(" · ");
    if (byId("status").textContent !== said) byId("status").textContent = said;
  }

  /** Show another state of the trace: what is chosen, hidden and seen stays. */
  replace(data, keep = false) {
    const { scene, view } = this;
    const event = scene.chosen < 0 ? null : [scene.ids.at(scene.chosen), scene.members.at(scene.chosen), scene.kind[scene.chosen]];
    const atEnd = !keep && scene.high <= view.x1;
    const before = BigInt(scene.axis.base ?? 0);
    const { lanes } = scene;
    const names = (set) => new Set([...set].map((member) => lanes.names[member]));
    const [hidden, own] = [names(lanes.hidden), lanes.own.map((member) => lanes.names[member])];
    const next = new Scene(data);
    next.setAxis(scene.axis.name);
    if (scene.run < next.runs.size) next.setRun(scene.run);
    const numbers = new Map(next.lanes.names.map((name, k) => [name, k]));
    next.lanes.hidden = new Set([...hidden].map((name) => numbers.get(name)).filter((k) => k !== undefined));
    next.lanes.own = own.map((name) => numbers.get(name)).filter((k) => k !== undefined);
    next.lanes.order = lanes.order;
    next.only = scene.only;
    this.scene = next;
    this.near = [];
    this.pin = -1;
    if (lanes.grouping && !["topics", "role", "source"].includes(lanes.grouping)) next.lanes.group(lanes.grouping);
    next.lanes.arrange();
    next.place();
    next.match(this.terms);
    const shift = next.axis.timed ? Number(before - next.axis.base) : 0;
    let width = view.x1 - view.x0;
    if (atEnd && scene.low >= view.x0) width = Math.max(width, (next.high - next.low) * 1.06);
    const end = atEnd ? next.high + width * 0.03 : view.x1 + shift;
    this.gutter();
    if (event) {
      for (let row = 0; row < next.size; row++) {
        if (next.kind[row] === event[2] && next.ids.at(row) === event[0] && next.members.at(row) === event[1]) {
          next.choose(row);
          this.relate();
          break;
        }
      }
    }
    if (!keep) this.look(end - width, end);
    this.show();
  }

  /** Of a trace in pieces: ask for what is seen, unless the piece at hand has it. */
  async fetchPiece() {
    const { view, scene } = this;
    const { piece, tiles } = scene.meta;
    if (!tiles || (piece && view.x0 >= piece.from - 1 && view.x1 <= piece.to + 1)) return;
    const [first, last] = [Math.max(view.x0, scene.low), Math.min(view.x1, scene.high)];
    if (piece && first >= piece.from && last <= piece.to) return;
    const asked = `?x0=${Math.floor(first)}&x1=${Math.ceil(last)}`;
    if (asked === this.askedFor) return;
    this.askedFor = asked;
    try {
      const data = await opened(asked);
      if (asked === this.askedFor) this.replace(data, true);
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Look no further than a piece goes, with a row of it in the middle. */
  within(piece, row) {
    const value = this.scene.axis.values[row];
    const half = Math.min(value - piece.from, piece.to - value, (this.view.x1 - this.view.x0) / 2);
    this.look(value - half, value + half);
  }

  /** Of a trace in pieces: go to the next event that matches the search, of all pieces. */
  async find() {
    const { scene } = this;
    const chosen = scene.chosen >= 0;
    const asked = new URLSearchParams({
      find: JSON.stringify(this.terms),
      from: chosen ? Math.floor(scene.axis.values[scene.chosen]) : -1,
      place: chosen ? scene.data.arrays.place[scene.chosen] : -1,
    });
    try {
      const data = await opened(`?${asked}`);
      this.replace(data, true);
      this.within(data.meta.piece, data.meta.around);
      this.reveal(data.meta.around);
      if (data.meta.wrapped) this.say("No match behind the chosen event: search went on from the start.");
    } catch (error) {
      this.say([error.message, ...this.unknownFields()].join(". "));
    }
  }

  // -- choosing -----------------------------------------------------------------------------

  click(x, y, more) {
    if (x < this.view.left && y > TOP) {
      const lane = this.scene.lanes.lanes[this.laneAt(y)];
      if (lane?.group) this.arrange((lanes) => lanes.folded.delete(lane.group) || lanes.folded.add(lane.group));
      return undefined;
    }
    if (this.scene.meta.grid) return this.say("From afar only counts are at hand: come closer to choose an event.");
    const found = hit(this.scene, this.view, x, y);
    if (more && found.row >= 0 && this.scene.chosen >= 0) this.pin = this.scene.chosen;
    this.near = Array.from(found.rows.slice(0, 2000));
    return this.choose(found.row);
  }

  choose(row) {
    this.scene.choose(row);
    if (row < 0) this.near = [];
    else {
      this.setTab("event", false);
      const { scene } = this;
      byId("live").textContent = `${eventName(scene, row)}. ${plain(scene.data.texts("text")?.at(row) ?? "", 120)}`;
    }
    this.show();
    this.note();
    this.relate();
  }

  /** Of a trace in pieces whose whole is at hand: ask for past and future beyond the piece. */
  async relate() {
    const { scene } = this;
    if (!scene.meta.whole || scene.chosen < 0) return;
    try {
      scene.relate(await opened(`?related=${scene.data.arrays.place[scene.chosen]}`));
      this.overviewKey = "";
      this.show();
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Choose a row and bring it into sight. */
  reveal(row) {
    this.bring([row]);
    this.near = [row];
    this.choose(row);
  }

  /** Choose a row and stand over it, so close that the events around it can be told apart. */
  centre(row) {
    this.bring([row]); // first: it may change the axis
    const { scene, view } = this;
    const { values } = scene.axis;
    const at = values[row];
    if (!scene.meta.tiles && !Number.isNaN(at)) {
      const apart = Float64Array.from(scene.rows, (one) => Math.abs(values[one] - at)).sort();
      const half = Math.min((view.x1 - view.x0) / 2, apart.length > NEAR && apart[NEAR] > 0 ? apart[NEAR] : Infinity);
      this.look(at - half, at + half);
    }
    this.reveal(row);
  }

  /** Show rows together, the last one chosen. */
  goTo(rows) {
    this.bring(rows);
    this.near = [];
    this.choose(rows[rows.length - 1]);
  }

  bring(rows) {
    const { scene, view } = this;
    const run = scene.runs.codes[rows[0]];
    if (scene.run >= 0 && run !== scene.run) this.setRun(run);
    for (const row of rows) {
      if (scene.lanes.hidden.delete(scene.member[row])) scene.lanes.arrange();
    }
    if (scene.only && rows.some((row) => scene.matches && !scene.matches[row])) this.setOnly(false);
    if (rows.some((row) => Number.isNaN(scene.axis.values[row]))) this.setAxis("file");
    scene.place();
    const values = rows.map((row) => scene.axis.values[row]);
    const low = Math.min(...values);
    const high = Math.max(...values);
    let width = view.x1 - view.x0;
    if (rows.length > 1 && high > low) width = Math.min(width, Math.max((high - low) * 4, (scene.high - scene.low) / 2000));
    if (rows.length > 1) width = Math.max(width, (high - low) * 1.6);
    const inside = low > view.x0 + width * 0.04 && high < view.x1 - width * 0.04;
    if (!inside || rows.length > 1) this.look((low + high - width) / 2, (low + high + width) / 2);
    const lanes = rows.map((row) => scene.lane[row]).filter((lane) => lane >= 0);
    const top = Math.min(...lanes) * view.laneH;
    const bottom = (Math.max(...lanes) + 1) * view.laneH;
    const room = view.height - TOP;
    if (top < view.y || bottom > view.y + room) view.y = (top + bottom - room) / 2;
    this.limit();
  }

  pinIt(row) {
    this.pin = this.pin === row ? -1 : row;
    this.show();
    this.note();
  }

  step(by) {
    const { scene } = this;
    if (scene.chosen < 0) return this.chooseMiddle();
    const lane = scene.lane[scene.chosen];
    if (lane < 0) return undefined;
    const at = scene.rows.subarray(scene.start[lane], scene.start[lane + 1]).indexOf(scene.chosen) + scene.start[lane] + by;
    if (at >= scene.start[lane] && at < scene.start[lane + 1]) this.reveal(scene.rows[at]);
    return undefined;
  }

  across(by) {
    const { scene } = this;
    if (scene.chosen < 0) return this.chooseMiddle();
    const value = scene.axis.values[scene.chosen];
    for (let lane = scene.lane[scene.chosen] + by; lane >= 0 && lane < scene.lanes.lanes.length; lane += by) {
      if (scene.start[lane] === scene.start[lane + 1]) continue;
      return this.reveal(this.nearestOn(lane, value));
    }
    return undefined;
  }

  nearestOn(lane, value) {
    const { scene } = this;
    const at = Math.min(scene.firstAt(lane, value), scene.start[lane + 1] - 1);
    const before = Math.max(scene.start[lane], at - 1);
    const apart = (k) => Math.abs(scene.axis.values[scene.rows[k]] - value);
    return scene.rows[apart(before) < apart(at) ? before : at];
  }

  chooseMiddle() {
    const { scene, view } = this;
    const middle = (view.x0 + view.x1) / 2;
    let lane = Math.min(scene.lanes.lanes.length - 1, Math.max(0, this.laneAt((view.height + TOP) / 2)));
    while (lane > 0 && scene.start[lane] === scene.start[lane + 1]) lane--;
    if (scene.rows.length) this.reveal(this.nearestOn(lane, middle));
  }

  elsewhere(rows) {
    const { scene } = this;
    const found = Array.from(rows).filter((row) => scene.member[row] !== scene.member[scene.chosen]);
    const row = found[0] ?? rows[0];
    if (row !== undefined) this.reveal(row);
  }

  // -- what is shown ------------------------------------------------------------------------

  setAxis(name) {
    const { scene, view } = this;
    const old = scene.axis;
    const share = (view.x1 - view.x0) / (scene.high - scene.low || 1);
    scene.setAxis(name);
    byId("axis").value = scene.axis.name;
    if (old === scene.axis) return;
    const width = Math.min(1.06, share) * (scene.high - scene.low || 1);
    const middle = scene.chosen >= 0 ? scene.axis.values[scene.chosen] : (scene.low + scene.high) / 2;
    if (share > 0.9 || Number.isNaN(middle)) this.fit();
    else this.look(middle - width / 2, middle + width / 2);
    this.note();
  }

  setRun(run) {
    this.scene.setRun(run);
    byId("run").value = String(run);
    this.gutter();
    this.fit();
    this.show();
    this.note();
  }

  setTheme(name) {
    this.theme = name in THEMES ? name : "light";
    document.documentElement.dataset.theme = this.theme;
    byId("theme").setAttribute("aria-pressed", String(this.theme === "dark"));
    this.draw();
    this.note();
  }

  setTab(name, focus = true) {
    this.tab = name in PANELS ? name : "findings";
    document.body.dataset.tab = this.tab;
    if (focus) this.show();
    this.note();
  }

  arrange(change) {
    change(this.scene.lanes);
    this.scene.lanes.arrange();
    this.scene.place();
    this.gutter();
    this.limit();
    this.show();
    this.note();
  }

  group(rule) {
    const { scene } = this;
    const column = ["topics", "role", "source"].includes(rule) ? scene.data.texts(rule) : null;
    let byMember = null;
    if (column) {
      const first = new Int32Array(scene.nobody + 1).fill(-1);
      for (let row = scene.size - 1; row >= 0; row--) if (column.codes[row] >= 0) first[scene.member[row]] = column.codes[row];
      byMember = (member) => column.value(first[member]);
    }
    scene.lanes.group(rule, byMember);
    this.arrange(() => {});
  }

  /** Hide members that have nothing to do with the chosen event. */
  onlyRelated() {
    const { scene } = this;
    const kept = new Set([scene.member[scene.chosen]]);
    for (let row = 0; row < scene.size; row++) if (scene.past[row] || scene.future[row]) kept.add(scene.member[row]);
    this.arrange((lanes) => lanes.names.forEach((_, member) => kept.has(member) || lanes.hidden.add(member)));
  }

  search(text) {
    this.query = text;
    this.searchError = "";
    this.terms = [];
    try {
      this.terms = parseSearch(text, this.scene.own);
      byId("search").removeAttribute("aria-invalid");
    } catch (error) {
      if (!(error instanceof SearchError)) throw error;
      byId("search").setAttribute("aria-invalid", "true");
      this.searchError = error.message;
    }
    this.scene.match(this.terms);
    this.limit();
    this.show();
    this.note();
  }

  /** Words that look like FIELD:WORD and name no field. */
  unknownFields() {
    return this.terms.map((term) => term.unknown).filter(Boolean);
  }

  setOnly(only) {
    const { scene, view } = this;
    const whole = view.x0 <= scene.low && view.x1 >= scene.high;
    if (only && !scene.only) this.seen = { x0: view.x0, x1: view.x1, axis: scene.axis };
    const back = !only && scene.only && this.seen?.axis === scene.axis ? this.seen : null;
    scene.only = only;
    byId("only").checked = only;
    scene.place();
    if (back && whole) this.look(back.x0, back.x1); // nobody has moved since
    else if (whole && only) this.spread();
    else this.limit();
    this.show();
    this.note();
  }

  matchWords() {
    let count = 0;
    for (const one of this.scene.matches) count += one;
    return [counted(count, "match", "matches"), ...(count ? [] : this.unknownFields())].join(": ");
  }

  nextMatch(by) {
    const { scene } = this;
    if (!scene.matches) return;
    const order = Array.from(scene.sorted()).filter((row) => scene.matches[row]);
    if (!order.length) return;
    const at = order.indexOf(scene.chosen);
    this.reveal(order[at < 0 ? (by > 0 ? 0 : order.length - 1) : (at + by + order.length) % order.length]);
  }

  show() {
    const panel = byId("panel");
    const before = panel.scrollTop;
    const same = panel.dataset.tab === this.tab && panel.dataset.event === String(this.scene.chosen);
    const focus = "button, input, select, summary";
    const at = Array.from(panel.querySelectorAll(focus)).indexOf(document.activeElement);
    panel.replaceChildren(...PANELS[this.tab](this).flat().filter(Boolean));
    panel.dataset.tab = this.tab;
    panel.dataset.event = String(this.scene.chosen);
    panel.scrollTop = same ? before : 0;
    if (at >= 0) (same ? panel.querySelectorAll(focus)[at] ?? panel : panel).focus({ preventScroll: true });
    for (const name of Object.keys(PANELS)) {
      byId(`tab-${name}`).setAttribute("aria-selected", String(name === this.tab));
      byId(`tab-${name}`).tabIndex = name === this.tab ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `tab-${this.tab}`);
    this.draw();
  }

  hover(x, y) {
    const tip = byId("tip");
    const found = hit(this.scene, this.view, x, y, 6);
    tip.hidden = found.row < 0;
    if (found.row < 0) return;
    const { scene } = this;
    const value = scene.axis.values[found.row];
    const more = found.rows.length > 1 ? ` (and ${(found.rows.length - 1).toLocaleString("en")} more here)` : "";
    const said = saidBy(scene, found.row);
    tip.replaceChildren(el("b", {}, eventName(scene, found.row)), more, el("br"), scene.axis.exact(value), ...(said ? [el("br"), plain(said, 160)] : []));
    tip.style.left = `${Math.min(x + 14, this.view.width - 250)}px`;
    tip.style.top = `${Math.min(y + 14, this.view.height - 70)}px`;
  }

  // -- keys ---------------------------------------------------------------------------------

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 90;
    const shifted = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
    const { meta, chosen } = this.scene;
    const worst = meta.axes.find((one) => one.rows.length) ?? meta.orders.find((one) => one.rows.length);
    const verbs = {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), ArrowUp: () => this.across(-1), ArrowDown: () => this.across(1),
      "+": () => (event.shiftKey && event.code === "NumpadAdd" ? this.zoomLanes(1.25, this.view.height / 2) : this.zoom(1.4, this.middle())),
      "=": () => this.zoom(1.4, this.middle()), "-": () => this.zoom(1 / 1.4, this.middle()),
      "*": () => this.zoomLanes(1.25, this.view.height / 2), _: () => this.zoomLanes(0.8, this.view.height / 2),
      0: () => this.fit(true), f: () => this.fit(true), Enter: () => (chosen < 0 ? this.chooseMiddle() : this.centre(chosen)),
      c: () => chosen >= 0 && this.elsewhere(this.scene.causesOf(chosen)), e: () => chosen >= 0 && this.elsewhere(this.scene.effectsOf(chosen)),
      i: () => worst ? this.goTo(worst.rows) : this.say("No effect is before its cause."),
      w: () => meta.waits.length ? this.goTo([meta.waits[0].received, meta.waits[0].delivered]) : this.say("Nothing waited."),
      s: () => meta.skew?.pairs[0]?.rows.length ? this.goTo(meta.skew.pairs[0].rows) : this.say("No clocks are skewed."),
      "[": () => this.stepFinding(-1), "]": () => this.stepFinding(1), "/": () => byId("search").focus(),
      n: () => this.nextMatch(1), p: () => this.nextMatch(-1), t: () => this.setTheme(this.theme === "dark" ? "light" : "dark"),
      Escape: () => this.choose(-1), "?": () => this.setTab("help"),
      1: () => this.setTab("findings"), 2: () => this.setTab("members"), 3: () => this.setTab("event"), 4: () => this.setTab("help"),
    };
    if (event.shiftKey && shifted[event.key]) this.pan(...shifted[event.key]);
    else if (verbs[event.key]) verbs[event.key]();
    else return;
    event.preventDefault();
  }

  stepFinding(by) {
    const there = this.scene.meta.findings.filter((one) => one.rows.length);
    if (!there.length) return this.say("No finding names an event.");
    this.finding = (this.finding + by + there.length) % there.length;
    this.goTo(there[this.finding].rows);
    return this.say(there[this.finding].what);
  }

  /** Tell something for a few seconds, below the picture and to who listens. */
  say(text) {
    this.notice = plain(text, 300);
    byId("live").textContent = this.notice;
    clearTimeout(this.forgets);
    this.forgets = setTimeout(() => {
      this.notice = "";
      this.draw();
    }, 6000);
    this.draw();
  }

  // -- address and files --------------------------------------------------------------------

  /** Write what is seen into the address; not too often, which browsers refuse. */
  note() {
    if (this.restoring) return;
    clearTimeout(this.noting);
    const wait = 250 - (performance.now() - (this.noted ?? -250));
    if (wait > 0) {
      this.noting = setTimeout(() => this.note(), wait);
      return;
    }
    this.noted = performance.now();
    const { scene, view } = this;
    const { lanes } = scene;
    const round = (value) => Number(value.toPrecision(12));
    this.written = hashOf({
      axis: scene.axis.name === Object.keys(scene.axes)[0] ? "" : scene.axis.name,
      run: scene.runs.size > 1 ? scene.run : undefined,
      x0: round(view.x0), x1: round(view.x1), y: Math.round(view.y) || undefined, h: round(view.laneH),
      event: scene.chosen >= 0 ? scene.chosen : undefined, pin: this.pin >= 0 ? this.pin : undefined,
      q: this.query, only: scene.only, order: lanes.order === "first" ? "" : lanes.order,
      own: lanes.order === "own" && lanes.own.length <= 500 ? lanes.own : [], hide: [...lanes.hidden].slice(0, 200), group: lanes.grouping, fold: [...lanes.folded].slice(0, 50),
      theme: this.theme, tab: this.tab === "findings" ? "" : this.tab,
    });
    history.replaceState(null, "", this.written);
  }

  /** Show what an address says; `anew`: in a page that shows something else already. */
  restore(state, anew = false) {
    this.restoring = true; // half of it is not to be written over the whole
    if (anew) this.forget();
    this.restored(state);
    this.restoring = false;
    this.note();
  }

  /** Go back to what the page shows without an address. */
  forget() {
    const { scene } = this;
    const { lanes } = scene;
    lanes.hidden.clear();
    lanes.folded.clear();
    [lanes.own, lanes.order] = [[], "first"];
    this.group("");
    this.pin = -1;
    this.choose(-1);
    byId("search").value = "";
    this.search("");
    this.setOnly(false);
    if (scene.runs.size > 1) this.setRun(0);
    this.setAxis(Object.keys(scene.axes)[0]);
    this.fit();
  }

  restored(state) {
    const { scene } = this;
    const inside = (row) => row !== undefined && row >= 0 && row < scene.size && Number.isInteger(row);
    if (state.theme) this.setTheme(state.theme);
    else this.setTheme(this.theme);
    if (state.run !== undefined && state.run >= -1 && state.run < scene.runs.size && scene.runs.size > 1) this.setRun(state.run);
    if (state.axis in scene.axes) this.setAxis(state.axis);
    if (state.q !== undefined) {
      byId("search").value = state.q;
      this.search(state.q);
    }
    if (state.only) this.setOnly(true);
    if (state.group) this.group(state.group);
    this.arrange((lanes) => {
      if (state.own) [lanes.own, lanes.order] = [state.own, "own"];
      else if (state.order) lanes.order = state.order;
      for (const member of state.hide ?? []) lanes.hidden.add(member);
      for (const name of state.fold ?? []) lanes.folded.add(name);
    });
    if (inside(state.pin)) this.pin = state.pin;
    if (inside(state.event)) this.choose(state.event);
    if (state.h > 0) this.view.laneH = Math.max(3, Math.min(140, state.h));
    if (state.y) this.view.y = state.y;
    if (state.x1 > state.x0) this.look(state.x0, state.x1);
    this.setTab(state.tab ?? (inside(state.event) ? "event" : "findings"));
  }

  svg() {
    const ctx = new SvgContext(this.view.width, this.view.height);
    paint(ctx, this.scene, this.view, THEMES[this.theme], { lines: FULL });
    return ctx.text();
  }

  save(blob, ending) {
    const address = URL.createObjectURL(blob);
    const name = this.scene.meta.title.split(/[\\/]/).pop().replace(/[^\w.-]+/g, "_") || "trace";
    const link = el("a", { href: address, download: `${name}.${ending}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  /** The browser's own print, with the picture as SVG on the paper. */
  print() {
    const theme = this.theme;
    this.theme = "light";
    const parsed = new DOMParser().parseFromString(this.svg(), "image/svg+xml");
    this.theme = theme;
    byId("paper").replaceChildren(document.importNode(parsed.documentElement, true));
    globalThis.print();
  }
}

/** What the server has, or what stands in the page. */
async function opened(asked = "") {
  const { source } = document.documentElement.dataset;
  if (!source) return unpacked(await inflated(byId("data").textContent.trim()));
  const answer = await fetch(source + asked);
  if (!answer.ok) throw new Error(await answer.text());
  const version = answer.headers.get("X-Trace-Version");
  return Object.assign(unpacked(await answer.arrayBuffer()), { version });
}

/** Ask the server whether there is more, and show it; at the end of time, follow. */
function follow(app, version) {
  let known = version;
  setInterval(async () => {
    try {
      if ((await (await fetch("version")).text()) === known) return;
      const data = await opened();
      known = data.version;
      app.replace(data);
    } catch {
      byId("status").textContent = "The server does not answer any more: this is what it said last.";
    }
  }, 2000);
}

opened().then(
  (data) => {
    byId("loading").remove();
    globalThis.antecede = new App(data);
    if (document.documentElement.dataset.grows) follow(globalThis.antecede, data.version);
  },
  (error) => {
    byId("loading").textContent = `This page could not be opened: ${error.message} (it needs a browser of 2023 or later)`;
  },
);
