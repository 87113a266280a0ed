// Controller of the page: render model, view range, input, address.

import { inflate, unpackBlock } from "./data.js";
import { SearchError, parseSearch } from "./search.js";
import { ERROR, RenderModel } from "./render_model.js";
import { AXIS_WORDS } from "./axis.js";
import { THEMES, TOP, hit, paint } from "./paint.js";
import { SvgContext } from "./svg.js";
import { counted, plain } from "../../../core/pages/assets/text.js";
import { stateToHash, hashToState } from "./state.js";
import { listen } from "../../../core/pages/assets/gestures.js";
import { el } from "../../../core/pages/assets/elements.js";
import { eventName, eventPanel, findingsPanel, helpPanel, membersPanel, eventText } from "./panels.js";

const PANELS = { findings: findingsPanel, members: membersPanel, event: eventPanel, help: helpPanel };
const FULL = 4000; // message lines drawn at rest
const NEAR = 200; // events in view around a centred event
const REST = 140; // ms without input until the page is at rest
const byId = (id) => document.getElementById(id);

class App {
  constructor(data) {
    this.model = new RenderModel(data);
    // If no row is part of the causal order (all on cycles), show the order of the file.
    if (!this.model.rows.length && !this.model.meta.tiles) this.model.setAxis("file");
    this.canvas = byId("picture");
    this.ctx = this.canvas.getContext("2d", { alpha: false });
    this.view = { x0: 0, x1: 1, y: 0, timelineHeight: 30, left: 120, width: 100, height: 100 };
    this.near = [];
    this.pinned = this.selected = -1; // places of the two selected events
    this.exact = false; // the events of a finding are shown alone
    this.tab = "findings";
    this.query = "";
    this.terms = [];
    this.searchError = "";
    this.finding = -1;
    this.fast = 1500;
    this.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    this.setUp();
    this.resize();
    this.setInitialRange();
    const state = hashToState(location.hash);
    this.restore(state);
    if (["event", "x0", "q"].every((name) => state[name] === undefined)) this.openAt(this.model.meta);
    this.show();
  }

  /** Select the event that the page was made for, otherwise the first error beside the findings. */
  openAt({ around, first_error: error, piece }) {
    const row = around >= 0 ? around : this.loaded([error ?? -1])[0];
    if (row < 0) return;
    if (piece) this.showWithin(piece, row);
    this.centre(row);
    if (around < 0) this.setTab("findings");
  }

  setUp() {
    listen(this.canvas, this.verbs());
    listen(byId("overview"), this.overviewVerbs());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    addEventListener("keydown", (event) => {
      if (event.target === document.body) this.key(event);
    });
    addEventListener("hashchange", () => {
      if (location.hash !== this.written) this.restore(hashToState(location.hash), true);
    });
    new ResizeObserver(() => {
      this.resize();
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
    for (const name of Object.keys(this.model.axes)) axis.append(el("option", { value: name }, AXIS_WORDS[name]));
    axis.addEventListener("change", () => this.setAxis(axis.value));
    const { runs } = this.model;
    axis.value = this.model.axis.name;
    byId("runs").hidden = runs.size < 2;
    if (runs.size > 1) {
      for (let k = 0; k < Math.min(runs.size, 2000); k++) byId("run").append(el("option", { value: String(k) }, plain(runs.value(k), 60)));
      byId("run").append(el("option", { value: "-1" }, `all ${runs.size.toLocaleString("en")} runs`));
    }
    byId("run").addEventListener("change", () => this.setRun(Number(byId("run").value)));
    byId("search").addEventListener("input", () => this.search(byId("search").value));
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && this.model.meta.tiles && this.terms.length) this.find();
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

  /** Close a menu after a choice, on a click outside, and on Escape. */
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
      zoomLanes: (factor, y) => this.zoomTimelines(factor, y),
      wheel: ([x, y], dx, dy, event) => {
        if (event.ctrlKey) this.zoomTimelines(Math.exp(-dy / 300), y);
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
        this.draggedTimeline = x < this.view.left && y > TOP ? this.timelineAt(y) : -1;
        return this.draggedTimeline >= 0 && this.draggedTimeline < this.model.timelines.list.length;
      },
      drag: (x, y) => {
        this.canvas.style.cursor = "grabbing";
        this.drawNow(() => this.dropLine(y));
      },
      drop: (x, y) => {
        this.canvas.style.cursor = "";
        const to = Math.max(0, Math.min(this.model.timelines.list.length, Math.round((y - TOP + this.view.y) / this.view.timelineHeight)));
        this.arrange((timelines) => timelines.move(this.draggedTimeline, to));
      },
    };
  }

  overviewVerbs() {
    const to = (x) => {
      const { low, high } = this.model;
      const share = (x - this.view.left) / Math.max(1, this.view.width - this.view.left);
      const half = (this.view.x1 - this.view.x0) / 2;
      const at = low + share * (high - low);
      this.setRange(at - half, at + half);
    };
    return { grab: () => true, drag: to, drop: to, click: to, pan() {}, zoom() {}, zoomLanes() {}, wheel: ([x], dx, dy) => this.zoom(Math.exp(-dy / 300), x) };
  }

  // -- view range ----------------------------------------------------------------------------

  resize() {
    const box = byId("stage").getBoundingClientRect();
    const view = this.view;
    const ratio = Math.min(2, devicePixelRatio || 1);
    view.width = Math.max(60, Math.floor(box.width));
    view.height = Math.max(80, Math.floor(box.height));
    this.canvas.width = view.width * ratio;
    this.canvas.height = view.height * ratio;
    this.ratio = view.ratio = ratio;
    view.text = innerWidth >= 1800 ? 1.25 : 1; // projectors need larger text
    this.setGutter();
    this.clampView();
  }

  setGutter() {
    let longest = 6;
    for (const timeline of this.model.timelines.list) longest = Math.max(longest, timeline.label.length);
    this.view.left = Math.round(Math.max(56, Math.min((longest * 7.3 + 4) * this.view.text + 22, 240 * this.view.text, this.view.width * 0.28)));
  }

  fit(now = false) {
    const room = this.view.height - TOP;
    this.view.timelineHeight = Math.max(20, Math.min(140, room / Math.max(1, this.model.timelines.list.length)));
    this.view.y = 0;
    this.spread();
    if (now) this.writeAddress();
  }

  /** Show the whole range; leave out a few outliers that would compress the others to a dot. */
  setInitialRange() {
    this.fit();
    const { model, view } = this;
    if (!model.axis.isTimed || model.meta.tiles || model.rows.length < 200) return;
    const times = Float64Array.from(model.rows, (row) => model.axis.values[row]).sort();
    const few = Math.floor(times.length / 200);
    const [from, to] = [times[few], times[times.length - 1 - few]];
    if (!(to > from) || (to - from) * 4 > model.high - model.low) return;
    const pad = (to - from) * 0.05;
    this.setRange(from - pad, to + pad);
    this.far = { count: times.filter((time) => time < view.x0 || time > view.x1).length, x0: view.x0 };
  }

  /** Show the whole range of the axis. */
  spread() {
    this.exact = false;
    const { low, high } = this.model;
    const pad = (high - low) * 0.03 || (this.model.axis.isTimed ? 1e6 : 1);
    this.setRange(low - pad, high + pad);
  }

  setRange(x0, x1) {
    this.view.x0 = x0;
    this.view.x1 = x1;
    this.clampView();
    this.scheduleDraw();
  }

  /** Clamp range and scroll position, so that some of the trace stays visible. */
  clampView() {
    const { view, model } = this;
    const whole = model.high - model.low || 1;
    const least = model.axis.isTimed ? 50 : 2;
    let width = Math.min(Math.max(view.x1 - view.x0, least), whole * 3 + least);
    if (!Number.isFinite(width)) width = whole;
    const middle = Math.min(Math.max((view.x0 + view.x1) / 2, model.low - width * 0.4), model.high + width * 0.4);
    view.x0 = middle - width / 2;
    view.x1 = middle + width / 2;
    const tall = model.timelines.list.length * view.timelineHeight;
    view.y = Math.max(0, Math.min(view.y, tall - (view.height - TOP)));
  }

  pan(dx, dy) {
    this.exact = false;
    const scale = (this.view.x1 - this.view.x0) / (this.view.width - this.view.left);
    this.view.y -= dy;
    this.setRange(this.view.x0 - dx * scale, this.view.x1 - dx * scale);
  }

  zoom(factor, x) {
    const { view } = this;
    this.exact = false;
    const share = (x - view.left) / (view.width - view.left);
    const at = view.x0 + share * (view.x1 - view.x0);
    const width = (view.x1 - view.x0) / factor;
    this.setRange(at - share * width, at + (1 - share) * width);
  }

  zoomTimelines(factor, y) {
    const timeline = (y - TOP + this.view.y) / this.view.timelineHeight;
    this.view.timelineHeight = Math.max(3, Math.min(140, this.view.timelineHeight * factor));
    this.view.y = timeline * this.view.timelineHeight - (y - TOP);
    this.clampView();
    this.scheduleDraw();
  }

  middle() {
    return (this.view.left + this.view.width) / 2;
  }

  timelineAt(y) {
    return Math.floor((y - TOP + this.view.y) / this.view.timelineHeight);
  }

  // -- drawing ------------------------------------------------------------------------------

  /** Draw with fewer lines while the view moves, and with all lines afterwards. */
  scheduleDraw() {
    this.moving = true;
    clearTimeout(this.resting);
    this.resting = setTimeout(() => {
      this.moving = false;
      this.draw();
      this.writeAddress();
      this.fetchPiece();
    }, REST);
    this.draw();
  }

  draw() {
    if (this.asked) return;
    this.asked = requestAnimationFrame((now) => {
      this.asked = 0;
      this.pace(now);
      this.drawNow();
    });
  }

  drawNow(after = null) {
    const begin = performance.now();
    this.ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const stats = paint(this.ctx, this.model, this.view, THEMES[this.theme], { lines: this.moving ? this.fast : FULL });
    after?.();
    this.overview();
    this.spent = performance.now() - begin;
    this.status(stats);
  }

  /** Adapt the number of lines to the frame rate while the view moves. */
  pace(now) {
    const apart = now - (this.before ?? now);
    this.before = now;
    if (!this.moving || apart > 400) return;
    if (apart > 22) this.fast = Math.max(100, this.fast * 0.8);
    else if (apart < 18) this.fast = Math.min(FULL, this.fast * 1.05);
  }

  dropLine(y) {
    const at = Math.round((y - TOP + this.view.y) / this.view.timelineHeight) * this.view.timelineHeight + TOP - this.view.y;
    this.ctx.fillStyle = THEMES[this.theme].chosen;
    this.ctx.fillRect(0, at - 1, this.view.width, 2);
  }

  overview() {
    const canvas = byId("overview");
    const { view, model, ratio } = this;
    const height = 36;
    const key = [view.width, view.left, ratio, model.version, this.theme, model.chosen, model.pin, model.axis.name, this.query].join();
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
    const scale = (view.width - view.left) / (model.high - model.low || 1);
    const x = view.left + (view.x0 - model.low) * scale;
    const width = Math.max(3, (view.x1 - view.x0) * scale);
    const from = Math.max(view.left, x);
    ctx.strokeStyle = THEMES[this.theme].ink;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(from + 0.75, 1.5, Math.max(2, Math.min(view.width - 2, x + width) - from - 1.5), height - 3);
  }

  overviewOf(height) {
    const { view, model, ratio } = this;
    const made = document.createElement("canvas");
    made.width = view.width * ratio;
    made.height = height * ratio;
    const ctx = made.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const size = Math.max(1, Math.floor((view.width - view.left) / 2));
    const counts = Object.fromEntries(["all", "past", "future", "match", "error"].map((name) => [name, new Uint32Array(size)]));
    const marked = model.inChain ?? (model.past ? null : model.matches);
    const scale = (size - 1) / (model.high - model.low || 1);
    let most = 1;
    const whole = model.data.arrays["overview.rows"]; // of a tiled trace
    const errors = model.data.arrays["overview.errors"];
    whole?.forEach((rows, k) => {
      const bin = Math.min(size - 1, Math.floor((k / whole.length) * size));
      most = Math.max(most, (counts.all[bin] += rows));
      counts.error[bin] += errors[k];
      for (const name of model.counts ? ["past", "future"] : []) counts[name][bin] += model.overviews[`overview.${name}`][k];
    });
    for (const row of whole ? [] : model.rows) {
      const bin = Math.floor((model.axis.values[row] - model.low) * scale);
      most = Math.max(most, ++counts.all[bin]);
      if (model.severity[row] === ERROR) counts.error[bin]++;
      if (marked) counts.match[bin] += marked[row];
      else if (model.past) {
        counts.past[bin] += model.past[row];
        counts.future[bin] += model.future[row];
      }
    }
    const theme = THEMES[this.theme];
    const tall = (count) => (Math.log1p(count) / Math.log1p(most)) * (height - 9);
    for (const [name, colour] of [["all", model.past || marked ? theme.dim : theme.soft], ["past", theme.past], ["future", theme.future], ["match", model.chain ? theme.chosen : theme.match]]) {
      ctx.fillStyle = colour;
      counts[name].forEach((count, k) => count && ctx.fillRect(view.left + k * 2, height - 2 - tall(count), 2, tall(count)));
    }
    ctx.fillStyle = theme.broken;
    counts.error.forEach((count, k) => count && ctx.fillRect(view.left + k * 2 - 0.5, 0, 3, 6)); // above the bars
    return made;
  }

  status(stats) {
    const { model } = this;
    const parts = this.notice ? [this.notice] : [];
    if (this.searchError) parts.push(plain(`search: ${this.searchError}`, 300));
    if (model.meta.grid) parts.push(`${stats.events.toLocaleString("en")} of ${counted(model.meta.of, "event")} in view; zoom in for messages and single events${this.terms.length ? ", Enter finds the next match" : ""}`);
    else parts.push(`${counted(stats.events, "event")} in view`);
    for (const side of ["above", "below"]) if (stats[side]) parts.push(`${stats[side].toLocaleString("en")} ${side} (scroll)`);
    const all = model.timelines.list.length;
    if (stats.timelines < all) parts.push(`${stats.timelines.toLocaleString("en")} of ${counted(all, "timeline")} in view`);
    if (stats.lines) parts.push(stats.drawn < stats.lines ? `${stats.drawn.toLocaleString("en")} of ${counted(stats.lines, "line")} drawn (zoom in for all)` : counted(stats.lines, "line"));
    if (!stats.singly) parts.push("bars where events are dense");
    if (this.far?.count && this.far.x0 === this.view.x0) parts.push(`${counted(this.far.count, "event")} far off in time: “Fit all” includes them`);
    if (model.matches && !model.meta.grid) parts.push(model.meta.tiles ? `${this.matchWords()} among the loaded events; Enter finds the next match of the whole trace` : this.matchWords());
    const left = model.meta.tiles ? 0 : model.size - model.rows.length;
    if (model.alone) parts.push("only the chain is shown");
    else if (left && model.run < 0 && !model.only && !model.timelines.hidden.size) parts.push(`${counted(left, "event")} without a place on this axis`);
    const said = parts.join(" · ");
    if (byId("status").textContent !== said) byId("status").textContent = said;
  }

  /** Replace the data; selection, hidden members and range stay. */
  replace(data, keep = false) {
    const { model, view } = this;
    const event = model.chosen < 0 ? null : [model.ids.at(model.chosen), model.members.at(model.chosen), model.kind[model.chosen]];
    const atEnd = !keep && model.high <= view.x1;
    const before = BigInt(model.axis.base ?? 0);
    const { timelines } = model;
    const names = (set) => new Set([...set].map((member) => timelines.names[member]));
    const [hidden, own] = [names(timelines.hidden), timelines.own.map((member) => timelines.names[member])];
    const next = new RenderModel(data);
    next.setAxis(model.axis.name);
    if (model.run < next.runs.size) next.setRun(model.run);
    const numbers = new Map(next.timelines.names.map((name, k) => [name, k]));
    next.timelines.hidden = new Set([...hidden].map((name) => numbers.get(name)).filter((k) => k !== undefined));
    next.timelines.own = own.map((name) => numbers.get(name)).filter((k) => k !== undefined);
    next.timelines.order = timelines.order;
    next.only = model.only;
    this.model = next;
    this.askedFor = "";
    this.near = [];
    if (timelines.grouping && !["topics", "role", "source"].includes(timelines.grouping)) next.timelines.group(timelines.grouping);
    next.timelines.arrange();
    next.place();
    next.match(this.terms);
    const shift = next.axis.isTimed ? Number(before - next.axis.base) : 0;
    let width = view.x1 - view.x0;
    if (atEnd && model.low >= view.x0) width = Math.max(width, (next.high - next.low) * 1.06);
    const end = atEnd ? next.high + width * 0.03 : view.x1 + shift;
    this.setGutter();
    if (next.meta.tiles) {
      const [pin, row] = next.rowsAt([this.pinned, this.selected]);
      next.pin = pin;
      if (row >= 0) next.choose(row);
      if (row >= 0) this.relate();
    } else {
      this.pinned = -1;
      for (let row = 0; event && row < next.size; row++) {
        if (next.kind[row] === event[2] && next.ids.at(row) === event[0] && next.members.at(row) === event[1]) {
          next.choose(row);
          this.relate();
          break;
        }
      }
    }
    if (!keep) this.setRange(end - width, end);
    this.show();
  }

  /** Tiled trace: request the visible range, unless the current tile covers it. */
  async fetchPiece() {
    const { view, model } = this;
    const { piece, tiles } = model.meta;
    if (!tiles) return;
    const [first, last] = [Math.max(view.x0, model.low), Math.min(view.x1, model.high)];
    if (piece?.exact && (model.alone || this.exact)) return;
    if (piece && !piece.exact && piece.axis === model.axis.name && first >= piece.from - 1 && last <= piece.to + 1) return;
    const asked = `?axis=${model.axis.name}&x0=${Math.floor(first)}&x1=${Math.ceil(last)}`;
    if (asked === this.askedFor) return;
    this.askedFor = asked;
    try {
      const data = await loadData(asked);
      if (asked !== this.askedFor) return;
      this.replace(data, true);
      this.askedFor = asked;
    } catch (error) {
      this.showNotice(error.message);
    }
  }

  /** Centre a row and clamp the range to its tile. */
  showWithin(piece, row) {
    const value = this.model.axis.values[row];
    const half = Math.min(value - piece.from, piece.to - value, (this.view.x1 - this.view.x0) / 2);
    this.setRange(value - half, value + half);
  }

  /** Tiled trace: go to the next match of the search in all tiles. */
  async find() {
    const { model } = this;
    const chosen = model.chosen >= 0;
    const [first] = Object.values(model.axes);
    const asked = new URLSearchParams({
      axis: model.axis.name,
      find: JSON.stringify(this.terms),
      from: chosen ? Math.floor(first.values[model.chosen]) : -1,
      place: chosen ? model.data.arrays.place[model.chosen] : -1,
    });
    try {
      const data = await loadData(`?${asked}`);
      this.replace(data, true);
      this.showWithin(data.meta.piece, data.meta.around);
      this.reveal(data.meta.around);
      if (data.meta.wrapped) this.showNotice("No match after the selected event: the search continued at the start.");
    } catch (error) {
      this.showNotice([error.message, ...this.unknownFields()].join(". "));
    }
  }

  // -- selection -----------------------------------------------------------------------------

  click(x, y, more) {
    if (x < this.view.left && y > TOP) {
      const timeline = this.model.timelines.list[this.timelineAt(y)];
      if (timeline?.group) this.arrange((timelines) => timelines.folded.delete(timeline.group) || timelines.folded.add(timeline.group));
      return undefined;
    }
    if (this.model.meta.grid) return this.showNotice("Only counts are loaded: zoom in to select an event.");
    const found = hit(this.model, this.view, x, y);
    if (more && found.row >= 0 && this.model.chosen >= 0) this.setPin(this.model.chosen);
    this.near = Array.from(found.rows.slice(0, 2000));
    return this.choose(found.row);
  }

  choose(row) {
    this.model.choose(row);
    this.selected = row < 0 ? -1 : this.model.data.arrays.place[row];
    if (row < 0) this.near = [];
    else {
      this.setTab("event", false);
      const { model } = this;
      byId("live").textContent = `${eventName(model, row)}. ${plain(model.data.texts("text")?.at(row) ?? "", 120)}`;
    }
    this.show();
    this.writeAddress();
    this.relate();
  }

  /** Tiled trace: request past, future and chain in the whole trace, if the server has it. */
  async relate() {
    const { model } = this;
    if (!model.meta.whole || model.chosen < 0) return;
    const place = model.data.arrays.place[model.chosen];
    try {
      model.relate(await loadData(`?axis=${model.axis.name}&related=${place}`));
      if (this.pinned >= 0 && this.pinned !== place) {
        const data = await loadData(`?axis=${model.axis.name}&chain=${this.pinned}.${place}`);
        if (model.data.arrays.place[model.chosen] !== place) return;
        this.chainData = data;
        model.wholeChain = data.meta.chain;
        model.link();
      }
      this.overviewKey = "";
      this.show();
    } catch (error) {
      this.showNotice(error.message);
    }
  }

  /** Tiled trace: show the chain of an address. */
  async openChain({ pin, event, axis }) {
    try {
      this.chainData = await loadData(`?axis=${axis ?? this.model.axis.name}&chain=${pin}.${event}`);
      this.replace(this.chainData, true);
      this.setAlone(true);
    } catch (error) {
      this.showNotice(error.message);
    }
  }

  /** Return the rows of findings, which are places in a tiled trace; -1: not loaded. */
  loaded(rows) {
    return this.model.meta.tiles ? this.model.rowsAt(rows) : rows;
  }

  /** Tiled trace: load a tile with the rows of a finding; return their rows. */
  async load(rows) {
    if (this.loaded(rows).includes(-1)) {
      this.replace(await loadData(`?axis=${this.model.axis.name}&places=${rows.join(".")}`), true);
      this.exact = Boolean(this.model.meta.piece.exact);
      this.showWithin(this.model.meta.piece, this.loaded(rows)[0]);
    }
    return this.loaded(rows);
  }

  /** Select a row and scroll to it. */
  reveal(row) {
    this.bringIntoView([row]);
    this.near = [row];
    this.choose(row);
  }

  /** Select a row; in a large trace, centre it and zoom in until its neighbours are apart. */
  centre(row) {
    this.bringIntoView([row]); // before the rest: it may change the axis
    const { model, view } = this;
    const { values } = model.axis;
    const at = values[row];
    if (!Number.isNaN(at) && model.rows.length > NEAR) {
      const apart = Float64Array.from(model.rows, (one) => Math.abs(values[one] - at)).sort();
      const half = Math.min((view.x1 - view.x0) / 2, apart[NEAR] > 0 ? apart[NEAR] : Infinity);
      this.setRange(at - half, at + half);
    }
    this.reveal(row);
  }

  /** Show the rows of a finding together and select the last one. */
  async goTo(found) {
    try {
      const rows = await this.load(found);
      this.bringIntoView(rows);
      this.near = [];
      this.choose(rows[rows.length - 1]);
    } catch (error) {
      this.showNotice(error.message);
    }
  }

  bringIntoView(rows) {
    const { model, view } = this;
    const run = model.runs.codes[rows[0]];
    if (model.run >= 0 && run !== model.run) this.setRun(run);
    for (const row of rows) {
      if (model.timelines.hidden.delete(model.member[row])) model.timelines.arrange();
    }
    if (model.only && rows.some((row) => model.matches && !model.matches[row])) this.setOnly(false);
    if (rows.some((row) => Number.isNaN(model.axis.values[row]))) this.setAxis("file");
    model.place();
    const values = rows.map((row) => model.axis.values[row]);
    const low = Math.min(...values);
    const high = Math.max(...values);
    let width = view.x1 - view.x0;
    if (rows.length > 1 && high > low) width = Math.min(width, Math.max((high - low) * 4, (model.high - model.low) / 2000));
    if (rows.length > 1) width = Math.max(width, (high - low) * 1.6);
    const inside = low > view.x0 + width * 0.02 && high < view.x1 - width * 0.02;
    if (!inside || rows.length > 1) this.setRange((low + high - width) / 2, (low + high + width) / 2);
    const timelines = rows.map((row) => model.timeline[row]).filter((timeline) => timeline >= 0);
    const top = Math.min(...timelines) * view.timelineHeight;
    const bottom = (Math.max(...timelines) + 1) * view.timelineHeight;
    const room = view.height - TOP;
    if (top < view.y || bottom > view.y + room) view.y = (top + bottom - room) / 2;
    this.clampView();
  }

  /** Pin a row or, if it is pinned, unpin it. */
  togglePin(row) {
    this.setPin(this.model.pin === row ? -1 : row);
    this.show();
    this.writeAddress();
  }

  setPin(row) {
    this.model.setPin(row);
    this.pinned = row < 0 ? -1 : this.model.data.arrays.place[row];
    this.relate();
    this.setGutter();
  }

  /** Show only the chain between the two selected events, or all events. */
  setAlone(alone) {
    if (alone && this.model.wholeChain && !this.model.meta.piece.exact) this.replace(this.chainData, true);
    const { model } = this;
    model.setAlone(alone);
    this.setGutter();
    if (model.alone) {
      this.fit();
      const values = model.chain.map((row) => model.axis.values[row]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const pad = (high - low) * 0.08 || (model.axis.isTimed ? 1e6 : 1);
      this.setRange(low - pad, high + pad);
    } else this.fit();
    this.show();
    this.writeAddress();
  }

  step(by) {
    const { model } = this;
    if (model.chosen < 0) return this.chooseMiddle();
    const timeline = model.timeline[model.chosen];
    if (timeline < 0) return undefined;
    const at = model.rows.subarray(model.start[timeline], model.start[timeline + 1]).indexOf(model.chosen) + model.start[timeline] + by;
    if (at >= model.start[timeline] && at < model.start[timeline + 1]) this.reveal(model.rows[at]);
    return undefined;
  }

  stepAcross(by) {
    const { model } = this;
    if (model.chosen < 0) return this.chooseMiddle();
    const value = model.axis.values[model.chosen];
    for (let timeline = model.timeline[model.chosen] + by; timeline >= 0 && timeline < model.timelines.list.length; timeline += by) {
      if (model.start[timeline] === model.start[timeline + 1]) continue;
      return this.reveal(this.nearestOn(timeline, value));
    }
    return undefined;
  }

  nearestOn(timeline, value) {
    const { model } = this;
    const at = Math.min(model.firstAt(timeline, value), model.start[timeline + 1] - 1);
    const before = Math.max(model.start[timeline], at - 1);
    const apart = (k) => Math.abs(model.axis.values[model.rows[k]] - value);
    return model.rows[apart(before) < apart(at) ? before : at];
  }

  chooseMiddle() {
    const { model, view } = this;
    const middle = (view.x0 + view.x1) / 2;
    let timeline = Math.min(model.timelines.list.length - 1, Math.max(0, this.timelineAt((view.height + TOP) / 2)));
    while (timeline > 0 && model.start[timeline] === model.start[timeline + 1]) timeline--;
    if (model.rows.length) this.reveal(this.nearestOn(timeline, middle));
  }

  revealElsewhere(rows) {
    const { model } = this;
    const found = Array.from(rows).filter((row) => model.member[row] !== model.member[model.chosen]);
    const row = found[0] ?? rows[0];
    if (row !== undefined) this.reveal(row);
  }

  // -- settings -----------------------------------------------------------------------------

  setAxis(name) {
    const { model, view } = this;
    const old = model.axis;
    const share = (view.x1 - view.x0) / (model.high - model.low || 1);
    model.setAxis(name);
    byId("axis").value = model.axis.name;
    if (old === model.axis) return;
    const width = Math.min(1.06, share) * (model.high - model.low || 1);
    const middle = model.chosen >= 0 ? model.axis.values[model.chosen] : (model.low + model.high) / 2;
    if (share > 0.9 || !Number.isFinite(middle)) this.fit();
    else this.setRange(middle - width / 2, middle + width / 2);
    this.writeAddress();
  }

  setRun(run) {
    this.model.setRun(run);
    byId("run").value = String(run);
    this.setGutter();
    this.fit();
    this.show();
    this.writeAddress();
  }

  setTheme(name) {
    this.theme = name in THEMES ? name : "light";
    document.documentElement.dataset.theme = this.theme;
    byId("theme").setAttribute("aria-pressed", String(this.theme === "dark"));
    this.draw();
    this.writeAddress();
  }

  setTab(name, focus = true) {
    this.tab = name in PANELS ? name : "findings";
    document.body.dataset.tab = this.tab;
    if (focus) this.show();
    this.writeAddress();
  }

  arrange(change) {
    change(this.model.timelines);
    this.model.timelines.arrange();
    this.model.place();
    this.setGutter();
    this.clampView();
    this.show();
    this.writeAddress();
  }

  group(rule) {
    const { model } = this;
    const column = ["topics", "role", "source"].includes(rule) ? model.data.texts(rule) : null;
    let byMember = null;
    if (column) {
      const first = new Int32Array(model.noMember + 1).fill(-1);
      for (let row = model.size - 1; row >= 0; row--) if (column.codes[row] >= 0) first[model.member[row]] = column.codes[row];
      byMember = (member) => column.value(first[member]);
    }
    model.timelines.group(rule, byMember);
    this.arrange(() => {});
  }

  /** Hide members without an event in past or future of the selected event. */
  onlyRelated() {
    const { model } = this;
    const kept = new Set([model.member[model.chosen]]);
    for (let row = 0; row < model.size; row++) if (model.past[row] || model.future[row]) kept.add(model.member[row]);
    this.arrange((timelines) => timelines.names.forEach((_, member) => kept.has(member) || timelines.hidden.add(member)));
  }

  search(text) {
    this.query = text;
    this.searchError = "";
    this.terms = [];
    try {
      this.terms = parseSearch(text, this.model.own);
      byId("search").removeAttribute("aria-invalid");
    } catch (error) {
      if (!(error instanceof SearchError)) throw error;
      byId("search").setAttribute("aria-invalid", "true");
      this.searchError = error.message;
    }
    this.model.match(this.terms);
    this.clampView();
    this.show();
    this.writeAddress();
  }

  /** Return warnings for FIELD:WORD terms with an unknown field. */
  unknownFields() {
    return this.terms.map((term) => term.unknown).filter(Boolean);
  }

  setOnly(only) {
    const { model, view } = this;
    const whole = view.x0 <= model.low && view.x1 >= model.high;
    if (only && !model.only) this.savedRange = { x0: view.x0, x1: view.x1, axis: model.axis };
    const back = !only && model.only && this.savedRange?.axis === model.axis ? this.savedRange : null;
    model.only = only;
    byId("only").checked = only;
    model.place();
    if (back && whole) this.setRange(back.x0, back.x1); // the range was not changed since
    else if (whole && only) this.spread();
    else this.clampView();
    this.show();
    this.writeAddress();
  }

  matchWords() {
    let count = 0;
    for (const one of this.model.matches) count += one;
    return [counted(count, "match", "matches"), ...(count ? [] : this.unknownFields())].join(": ");
  }

  nextMatch(by) {
    const { model } = this;
    if (!model.matches) return;
    const order = Array.from(model.sorted()).filter((row) => model.matches[row]);
    if (!order.length) return;
    const at = order.indexOf(model.chosen);
    this.reveal(order[at < 0 ? (by > 0 ? 0 : order.length - 1) : (at + by + order.length) % order.length]);
  }

  show() {
    const panel = byId("panel");
    const before = panel.scrollTop;
    const same = panel.dataset.tab === this.tab && panel.dataset.event === String(this.model.chosen);
    const focus = "button, input, select, summary";
    const at = Array.from(panel.querySelectorAll(focus)).indexOf(document.activeElement);
    panel.replaceChildren(...PANELS[this.tab](this).flat().filter(Boolean));
    panel.dataset.tab = this.tab;
    panel.dataset.event = String(this.model.chosen);
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
    const found = hit(this.model, this.view, x, y, 6);
    tip.hidden = found.row < 0;
    if (found.row < 0) return;
    const { model } = this;
    const value = model.axis.values[found.row];
    const more = found.rows.length > 1 ? ` (and ${(found.rows.length - 1).toLocaleString("en")} more here)` : "";
    const said = eventText(model, found.row);
    tip.replaceChildren(el("b", {}, eventName(model, found.row)), more, el("br"), model.axis.exact(value), ...(said ? [el("br"), plain(said, 160)] : []));
    tip.style.left = `${Math.min(x + 14, this.view.width - 250)}px`;
    tip.style.top = `${Math.min(y + 14, this.view.height - 70)}px`;
  }

  // -- keys ---------------------------------------------------------------------------------

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 90;
    const shifted = { ArrowLeft: [far, 0], ArrowRight: [-far, 0], ArrowUp: [0, far], ArrowDown: [0, -far] };
    const { meta, chosen } = this.model;
    const worst = meta.axes.find((one) => one.rows.length) ?? meta.orders.find((one) => one.rows.length);
    const verbs = {
      ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1), ArrowUp: () => this.stepAcross(-1), ArrowDown: () => this.stepAcross(1),
      "+": () => (event.shiftKey && event.code === "NumpadAdd" ? this.zoomTimelines(1.25, this.view.height / 2) : this.zoom(1.4, this.middle())),
      "=": () => this.zoom(1.4, this.middle()), "-": () => this.zoom(1 / 1.4, this.middle()),
      "*": () => this.zoomTimelines(1.25, this.view.height / 2), _: () => this.zoomTimelines(0.8, this.view.height / 2),
      0: () => this.fit(true), f: () => this.fit(true), Enter: () => (chosen < 0 ? this.chooseMiddle() : this.centre(chosen)),
      c: () => chosen >= 0 && this.revealElsewhere(this.model.causesOf(chosen)), e: () => chosen >= 0 && this.revealElsewhere(this.model.effectsOf(chosen)),
      i: () => worst ? this.goTo(worst.rows) : this.showNotice("No effect is before its cause."),
      w: () => meta.waits.length ? this.goTo([meta.waits[0].received, meta.waits[0].delivered]) : this.showNotice("No message was held."),
      s: () => meta.skew?.pairs[0]?.rows.length ? this.goTo(meta.skew.pairs[0].rows) : this.showNotice("No clock skew."),
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
    const there = this.model.meta.findings.filter((one) => one.rows.length);
    if (!there.length) return this.showNotice("No finding refers to an event.");
    this.finding = (this.finding + by + there.length) % there.length;
    this.goTo(there[this.finding].rows);
    return this.showNotice(there[this.finding].what);
  }

  /** Show a notice for 6 s in the status line and the live region. */
  showNotice(text) {
    this.notice = plain(text, 300);
    byId("live").textContent = this.notice;
    clearTimeout(this.forgets);
    this.forgets = setTimeout(() => {
      this.notice = "";
      this.draw();
    }, 6000);
    this.draw();
  }

  // -- address and export-------------------------------------------------------------------

  /** Write the state into the address; at most every 250 ms, as browsers limit the rate. */
  writeAddress() {
    if (this.restoring) return;
    clearTimeout(this.noting);
    const wait = 250 - (performance.now() - (this.noted ?? -250));
    if (wait > 0) {
      this.noting = setTimeout(() => this.writeAddress(), wait);
      return;
    }
    this.noted = performance.now();
    const { model, view } = this;
    const { timelines } = model;
    const tiles = Boolean(model.meta.tiles);
    const given = (row, place) => (tiles ? place : row) >= 0 ? (tiles ? place : row) : undefined;
    const round = (value) => Number(value.toPrecision(12));
    this.written = stateToHash({
      axis: model.axis.name === Object.keys(model.axes)[0] ? "" : model.axis.name,
      run: model.runs.size > 1 ? model.run : undefined,
      x0: round(view.x0), x1: round(view.x1), y: Math.round(view.y) || undefined, h: round(view.timelineHeight),
      event: given(model.chosen, this.selected), pin: given(model.pin, this.pinned), chain: model.alone,
      q: this.query, only: model.only, order: timelines.order === "first" ? "" : timelines.order,
      own: timelines.order === "own" && timelines.own.length <= 500 ? timelines.own : [], hide: [...timelines.hidden].slice(0, 200), group: timelines.grouping, fold: [...timelines.folded].slice(0, 50),
      theme: this.theme, tab: this.tab === "findings" ? "" : this.tab,
    });
    history.replaceState(null, "", this.written);
  }

  /** Apply the state of an address; `anew`: reset the page first. */
  restore(state, anew = false) {
    this.restoring = true; // do not write a partial state into the address
    if (anew) this.reset();
    this.applyState(state);
    this.restoring = false;
    this.writeAddress();
  }

  /** Return to the state of a page without an address. */
  reset() {
    const { model } = this;
    const { timelines } = model;
    timelines.hidden.clear();
    timelines.folded.clear();
    [timelines.own, timelines.order] = [[], "first"];
    this.group("");
    this.setPin(-1);
    this.choose(-1);
    byId("search").value = "";
    this.search("");
    this.setOnly(false);
    if (model.runs.size > 1) this.setRun(0);
    this.setAxis(Object.keys(model.axes)[0]);
    this.fit();
  }

  applyState(state) {
    const { model } = this;
    const inside = (row) => row !== undefined && row >= 0 && row < model.size && Number.isInteger(row);
    if (state.theme) this.setTheme(state.theme);
    else this.setTheme(this.theme);
    if (state.run !== undefined && state.run >= -1 && state.run < model.runs.size && model.runs.size > 1) this.setRun(state.run);
    if (state.axis in model.axes) this.setAxis(state.axis);
    if (state.q !== undefined) {
      byId("search").value = state.q;
      this.search(state.q);
    }
    if (state.only) this.setOnly(true);
    if (state.group) this.group(state.group);
    this.arrange((timelines) => {
      if (state.own) [timelines.own, timelines.order] = [state.own, "own"];
      else if (state.order) timelines.order = state.order;
      for (const member of state.hide ?? []) timelines.hidden.add(member);
      for (const name of state.fold ?? []) timelines.folded.add(name);
    });
    const [pin, event] = this.loaded([state.pin ?? -1, state.event ?? -1]);
    if (inside(pin)) this.setPin(pin);
    if (inside(event)) this.choose(event);
    if (model.meta.whole && state.chain) this.openChain(state);
    if (model.meta.tiles) [this.pinned, this.selected] = [state.pin ?? -1, state.event ?? -1]; // loaded with the range
    if (state.chain) this.setAlone(true);
    if (state.h > 0) this.view.timelineHeight = Math.max(3, Math.min(140, state.h));
    if (state.y) this.view.y = state.y;
    if (state.x1 > state.x0) this.setRange(state.x0, state.x1);
    this.setTab(state.tab ?? (state.event >= 0 ? "event" : "findings"));
  }

  svg() {
    const ctx = new SvgContext(this.view.width, this.view.height);
    paint(ctx, this.model, this.view, THEMES[this.theme], { lines: FULL });
    return ctx.text();
  }

  save(blob, ending) {
    const address = URL.createObjectURL(blob);
    const name = this.model.meta.title.split(/[\\/]/).pop().replace(/[^\w.-]+/g, "_") || "trace";
    const link = el("a", { href: address, download: `${name}.${ending}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  /** Print the diagram as SVG. */
  print() {
    const theme = this.theme;
    this.theme = "light";
    const parsed = new DOMParser().parseFromString(this.svg(), "image/svg+xml");
    this.theme = theme;
    byId("paper").replaceChildren(document.importNode(parsed.documentElement, true));
    globalThis.print();
  }
}

/** Return the data of the server, or of the page itself. */
async function loadData(asked = "") {
  const { source } = document.documentElement.dataset;
  if (!source) return unpackBlock(await inflate(byId("data").textContent.trim()));
  const answer = await fetch(source + asked);
  if (!answer.ok) throw new Error(await answer.text());
  const version = answer.headers.get("X-Trace-Version");
  return Object.assign(unpackBlock(await answer.arrayBuffer()), { version });
}

/** Poll the server for a new version every 2 s and show it. */
function follow(app, version) {
  let known = version;
  setInterval(async () => {
    try {
      if ((await (await fetch("version")).text()) === known) return;
      const data = await loadData();
      known = data.version;
      app.replace(data);
    } catch {
      byId("status").textContent = "The server does not respond: this is its last state.";
    }
  }, 2000);
}

loadData().then(
  (data) => {
    byId("loading").remove();
    globalThis.antecede = new App(data);
    if (document.documentElement.dataset.grows) follow(globalThis.antecede, data.version);
  },
  (error) => {
    byId("loading").textContent = `Cannot open the page: ${error.message} (a browser of 2023 or later is needed)`;
  },
);
