// Label placement: among the candidates that cover nothing, in order of preference, the one that
// crosses the fewest lines. Boxes are [left, top, right, bottom] in px.

export class LabelPlacement {
  /** `clear`: distance of a label from a line, px. */
  constructor(clear) {
    this.clear = clear;
    this.boxes = [];
    this.lines = [];
  }

  block(box) {
    this.boxes.push(box);
  }

  /** `weight`: cost of crossing the line. */
  addLine(piece, weight = 1) {
    this.lines.push([piece, weight]);
  }

  /** Return the best free candidate and block it; null if every candidate covers something.
   *
   * `costs`: cost of each candidate, in crossed lines.
   */
  take(candidates, costs) {
    let best = null;
    let min = Infinity;
    candidates.forEach((box, k) => {
      if (costs[k] >= min || this.isTaken(box)) return;
      const crossed = costs[k] + this.crossed(box, min - costs[k]);
      if (crossed < min) [best, min] = [box, crossed];
    });
    if (best) this.boxes.push(best);
    return best;
  }

  isTaken(box) {
    return this.boxes.some((taken) => meet(box, taken));
  }

  /** Return the weight of the lines that a box crosses or nearly touches; counting stops at `limit`. */
  crossed([left, top, right, bottom], limit) {
    const box = [left - this.clear, top, right + this.clear, bottom];
    let sum = 0;
    for (const [piece, weight] of this.lines) {
      if (!crosses(box, piece)) continue;
      sum += weight;
      if (sum >= limit) break;
    }
    return sum;
  }
}

export function meet(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function areApart(box, [x1, y1, x2, y2]) {
  return (x1 < box[0] && x2 < box[0]) || (x1 > box[2] && x2 > box[2]) || (y1 < box[1] && y2 < box[1]) || (y1 > box[3] && y2 > box[3]);
}

/** Return whether a segment touches a box (clipping of Liang and Barsky). */
export function crosses(box, [x1, y1, x2, y2]) {
  if (areApart(box, [x1, y1, x2, y2])) return false;
  let [enter, leave] = [0, 1];
  for (const [delta, low, high] of [
    [x2 - x1, box[0] - x1, box[2] - x1],
    [y2 - y1, box[1] - y1, box[3] - y1],
  ]) {
    if (delta === 0) {
      if (low > 0 || high < 0) return false;
      continue;
    }
    const [near, far] = [low / delta, high / delta].sort((a, b) => a - b);
    enter = Math.max(enter, near);
    leave = Math.min(leave, far);
    if (enter > leave) return false;
  }
  return true;
}
