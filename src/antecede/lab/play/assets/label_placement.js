// A free place for each label: it tries a few in order of preference and takes the one that crosses
// the least of lines, among those that cover nothing. Boxes are [left, top, right, bottom] in px.

export class Placing {
  constructor() {
    this.boxes = [];
    this.lines = [];
  }

  block(box) {
    this.boxes.push(box);
  }

  /** `weight`: how bad it is to be crossed. */
  line(piece, weight = 1) {
    this.lines.push([piece, weight]);
  }

  /** The best free candidate, taken from now on; null where each covers something. */
  take(candidates) {
    let best = null;
    let least = Infinity;
    for (const box of candidates) {
      if (this.boxes.some((taken) => meet(box, taken))) continue;
      const crossed = this.crossed(box, least);
      if (crossed < least) [best, least] = [box, crossed];
      if (least === 0) break; // the first that crosses nothing is the best there can be
    }
    if (best) this.boxes.push(best);
    return best;
  }

  /** What a box crosses, counted as far as `enough`. */
  crossed(box, enough) {
    let sum = 0;
    for (const [piece, weight] of this.lines) {
      if (apart(box, piece) || !crosses(box, piece)) continue;
      sum += weight;
      if (sum >= enough) break;
    }
    return sum;
  }
}

export function meet(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function apart(box, [x1, y1, x2, y2]) {
  return (x1 < box[0] && x2 < box[0]) || (x1 > box[2] && x2 > box[2]) || (y1 < box[1] && y2 < box[1]) || (y1 > box[3] && y2 > box[3]);
}

/** Whether a straight line touches a box (clipping after Liang and Barsky). */
function crosses(box, [x1, y1, x2, y2]) {
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
