// Happened-before on the graph of immediate causes.
// The results equal those of antecede.tables.causality; a test compares them.

export class Graph {
  /** `offsets` [n + 1] index `causes` [edges]; `alive` [n]: rows that are part of the order. */
  constructor(offsets, causes, alive) {
    this.size = alive.length;
    this.offsets = offsets;
    this.causes = causes;
    this.alive = alive;
    this.computeEffects();
    this.sort();
  }

  /** Compute the effects of each row, with offsets in `after`. */
  computeEffects() {
    const count = new Int32Array(this.size + 1);
    for (const cause of this.causes) count[cause + 1]++;
    for (let k = 0; k < this.size; k++) count[k + 1] += count[k];
    this.after = count;
    this.effects = new Int32Array(this.causes.length);
    const next = count.slice();
    for (let row = 0; row < this.size; row++) {
      for (let e = this.offsets[row]; e < this.offsets[row + 1]; e++) {
        this.effects[next[this.causes[e]]++] = row;
      }
    }
  }

  /** Sort rows, causes first, and compute depths: 0 without causes. */
  sort() {
    const waits = new Int32Array(this.size);
    const order = new Int32Array(this.size);
    const depth = new Int32Array(this.size).fill(-1);
    let end = 0;
    for (let row = 0; row < this.size; row++) {
      for (let e = this.offsets[row]; e < this.offsets[row + 1]; e++) {
        waits[row] += this.alive[this.causes[e]];
      }
      if (this.alive[row] && !waits[row]) {
        order[end++] = row;
        depth[row] = 0;
      }
    }
    for (let at = 0; at < end; at++) {
      const row = order[at];
      for (let e = this.after[row]; e < this.after[row + 1]; e++) {
        const effect = this.effects[e];
        if (!this.alive[effect]) continue;
        if (depth[effect] <= depth[row]) depth[effect] = depth[row] + 1;
        if (!--waits[effect]) order[end++] = effect;
      }
    }
    this.order = order.subarray(0, end);
    this.depth = depth;
    this.rank = new Int32Array(this.size).fill(-1);
    for (let k = 0; k < end; k++) this.rank[order[k]] = k;
  }

  /** Return the mask of the causal past of a row. */
  past(row) {
    return this.walk(row, this.offsets, this.causes);
  }

  /** Return the mask of the causal future of a row. */
  future(row) {
    return this.walk(row, this.after, this.effects);
  }

  walk(start, offsets, targets) {
    const found = new Uint8Array(this.size);
    if (!this.alive[start]) return found;
    const stack = [start];
    while (stack.length) {
      const row = stack.pop();
      for (let e = offsets[row]; e < offsets[row + 1]; e++) {
        const next = targets[e];
        if (this.alive[next] && !found[next]) {
          found[next] = 1;
          stack.push(next);
        }
      }
    }
    return found;
  }

  /** Return a shortest chain of causes between two rows, both included; [] without one. */
  path(from, to) {
    const back = new Int32Array(this.size).fill(-1);
    let line = [to];
    back[to] = to;
    while (line.length && back[from] < 0) {
      const next = [];
      for (const row of line) {
        for (let e = this.offsets[row]; e < this.offsets[row + 1]; e++) {
          const cause = this.causes[e];
          if (back[cause] < 0 && this.alive[cause]) {
            back[cause] = row;
            next.push(cause);
          }
        }
      }
      line = next;
    }
    if (back[from] < 0 || from === to) return [];
    const chain = [from];
    while (chain[chain.length - 1] !== to) chain.push(back[chain[chain.length - 1]]);
    return chain;
  }
}
