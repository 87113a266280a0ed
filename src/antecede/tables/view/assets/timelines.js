// Assignment of members to timelines: order, hidden members, folded groups.

export const ORDERS = {
  first: "by first event",
  name: "by name",
  traffic: "by traffic",
  own: "as dragged",
};

/** Members and their timelines. Member numbers are those of the data; the last is "no member". */
export class Timelines {
  constructor(names, counts, firsts) {
    this.names = names;
    this.counts = counts;
    this.firsts = firsts;
    this.order = "first";
    this.own = [];
    this.hidden = new Set();
    this.only = null; // a set of members: all others are hidden as well
    this.grouping = "";
    this.folded = new Set();
    this.groupOf = () => "";
    this.arrange();
  }

  /** Compute `list`, each { label, members, folded, group }, and `timelineOf` [members], -1: hidden. */
  arrange() {
    const shown = [];
    for (let member = 0; member < this.names.length; member++) {
      if (this.only ? this.only.has(member) : this.counts[member] && !this.hidden.has(member)) shown.push(member);
    }
    shown.sort(this.comparison());
    const groups = new Map();
    for (const member of shown) {
      const group = this.groupOf(member);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(member);
    }
    this.groups = [...groups.keys()].filter((name) => name);
    this.list = [];
    for (const [group, members] of groups) {
      if (group && this.folded.has(group) && !this.only) {
        const label = `${group} (${members.length})`;
        this.list.push({ label, members, folded: true, group });
      } else {
        for (const member of members) {
          const label = this.names[member];
          this.list.push({ label, members: [member], folded: false, group });
        }
      }
    }
    this.timelineOf = new Int32Array(this.names.length).fill(-1);
    this.list.forEach((timeline, k) => timeline.members.forEach((member) => (this.timelineOf[member] = k)));
  }

  comparison() {
    const compare = new Intl.Collator("en", { numeric: true }).compare;
    const byName = (a, b) => compare(this.names[a], this.names[b]) || a - b;
    const byFirst = (a, b) => this.firsts[a] - this.firsts[b] || byName(a, b);
    if (this.order === "name") return byName;
    if (this.order === "traffic") return (a, b) => this.counts[b] - this.counts[a] || byName(a, b);
    if (this.order === "own") {
      const place = new Map(this.own.map((member, k) => [member, k]));
      const of = (member) => place.get(member) ?? this.own.length;
      return (a, b) => of(a) - of(b) || byFirst(a, b);
    }
    return byFirst;
  }

  /** Move a timeline before another one; `to` = number of timelines: to the end. */
  move(from, to) {
    const order = this.list.map((timeline) => timeline.members);
    const [moved] = order.splice(from, 1);
    order.splice(to > from ? to - 1 : to, 0, moved);
    this.own = order.flat();
    this.order = "own";
    this.arrange();
  }

  /** Group members: "" not at all, "prefix" by the part before the first of -_.:/@ and digits,
   * "=TEXT" by the part before TEXT, or by a function of the member.
   */
  group(rule, byMember = null) {
    this.grouping = rule;
    if (byMember) this.groupOf = byMember;
    else if (rule === "prefix") this.groupOf = (member) => prefixOf(this.names[member]);
    else if (rule.startsWith("=")) {
      this.groupOf = (member) => {
        const at = this.names[member].indexOf(rule.slice(1));
        return at > 0 ? this.names[member].slice(0, at) : "";
      };
    } else this.groupOf = () => "";
    this.folded.clear();
    this.arrange();
  }
}

function prefixOf(name) {
  const found = /^[^\s\-_.:/@0-9]+/.exec(name);
  return found && found[0].length < name.length ? found[0] : "";
}
