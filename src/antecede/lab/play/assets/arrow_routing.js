// The course of an arrow: straight, or bent around marks that it has nothing to do with.
//
// A straight arrow over a mark of another member looks as if that member had passed the message on,
// and a flat one over a later mark of its own lane as if it began there. So it goes around, with the
// least bend that stays clear (as antecede.lab.diagram.svg_layout does for pictures on paper).

const CLEAR = 13; // px an arrow stays away from the middle of marks it passes
const SAMPLES = 28;
const HEAD = 10;
const SHORT = 8; // px by which an arrow ends before the middle of its mark

// Where the two control points of a cubic curve stand, as parts of the way along and across, and by
// how many px the middle is moved along the axis; in order of preference.
const SHAPES = [
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, 0],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, 22],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, -22],
  [0.2, 0.5, 0.2, 0.5, 0],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, 44],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, -44],
  [0.1, 0.7, 0.1, 0.7, 0],
  [0.05, 0.8, 0.45, 0.1, 0],
  [0.45, 0.1, 0.05, 0.8, 0],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, 66],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, -66],
  [0.0, 0.9, 0.0, 0.9, 0],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, 92],
  [1 / 3, 1 / 3, 1 / 3, 1 / 3, -92],
];

/** [start, control, control, end], each [x, y]: the first shape that stays clear of `marks`, or the
 * one that comes least near to any. `reach`: how large marks are drawn. */
export function courseOf(start, end, marks, reach = 1) {
  let best = null;
  let widest = -1;
  const far = 110 * reach; // no shape reaches farther to the side
  const [low, high] = [Math.min(start[0], end[0]) - far, Math.max(start[0], end[0]) + far];
  const near = marks.filter(([x]) => x >= low && x <= high);
  for (const shape of SHAPES) {
    const found = bent(start, end, shape, reach);
    const room = roomOf(found, near, widest);
    if (room >= CLEAR * reach) return found;
    if (room > widest) [best, widest] = [found, room];
  }
  return best;
}

function bent([x1, y1], [x2, y2], [along1, across1, along2, across2, push], reach) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  return [
    [x1, y1],
    [x1 + along1 * dx + push * reach, y1 + across1 * dy],
    [x2 - along2 * dx + push * reach, y2 - across2 * dy],
    [x2, y2],
  ];
}

/** The point after a part of the way, 0 to 1. */
export function pointOn([a, b, c, d], part) {
  const rest = 1 - part;
  const of = (k) =>
    rest * rest * rest * a[k] + 3 * rest * rest * part * b[k] + 3 * rest * part * part * c[k] + part * part * part * d[k];
  return [of(0), of(1)];
}

/** How near a course comes to a mark; at most `enough`, it may be less. */
function roomOf(course, marks, enough) {
  let least = Infinity;
  for (let k = 1; k < SAMPLES; k++) {
    const [x, y] = pointOn(course, k / SAMPLES);
    for (const [mx, my] of marks) {
      const square = (x - mx) * (x - mx) + (y - my) * (y - my);
      if (square < least) least = square;
    }
    if (least <= enough * enough && enough >= 0) break;
  }
  return Math.sqrt(least);
}

/** A course as short straight lines [x1, y1, x2, y2]. */
export function piecesOf(course, count = 10) {
  const points = Array.from({ length: count + 1 }, (_, k) => pointOn(course, k / count));
  return points.slice(1).map((point, k) => [...points[k], ...point]);
}

function direction([a, b, c, d]) {
  const from = [c, b, a].find((point) => Math.hypot(d[0] - point[0], d[1] - point[1]) > 0.5) ?? a;
  const length = Math.hypot(d[0] - from[0], d[1] - from[1]) || 1;
  return [(d[0] - from[0]) / length, (d[1] - from[1]) / length];
}

/** The line up to its head, as the d of a path. */
export function shaftOf(course, size = 1, short = SHORT) {
  const [ux, uy] = direction(course);
  const [a, b, c, d] = course;
  const back = (short + HEAD * 0.7) * size;
  const end = [d[0] - back * ux, d[1] - back * uy];
  return `M${px(a)}C${px(b)} ${px(c)} ${px(end)}`;
}

/** The points of its head. */
export function headOf(course, size = 1, short = SHORT) {
  const [ux, uy] = direction(course);
  const [x, y] = course[3];
  const tip = [x - short * size * ux, y - short * size * uy];
  const sides = [1, -1].map((s) => [
    tip[0] - HEAD * size * ux - s * 4.4 * size * uy,
    tip[1] - HEAD * size * uy + s * 4.4 * size * ux,
  ]);
  return [tip, ...sides].map(px).join(" ");
}

function px([x, y]) {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
