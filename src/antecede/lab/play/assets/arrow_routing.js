// Arrow routing: straight, or bent around marks of other messages.
//
// A straight arrow over a mark of another member would look as if that member had relayed the message.
// A flat arrow over a later mark of its own timeline would look as if it started there. The route takes
// the smallest bend that stays clear of marks, as antecede.lab.diagram.svg_layout does for SVG files.

const CLEARANCE = 13; // least distance of a route from the center of a passed mark, px
const SAMPLES = 28;
const HEAD = 10;
const HEAD_GAP = 8; // gap between the arrowhead and the center of its mark, px

// Control points of the cubic curve as fractions along and across the route, and the shift of its
// middle along the time axis, px; in order of preference.
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

/** Return [start, control, control, end], each [x, y]: the first shape that stays clear of `marks`, or
 * the shape farthest from them. `reach`: scale of the marks; `allows`: test of a shape. */
export function findRoute(start, end, marks, reach = 1, allows = () => true) {
  let best = null;
  let widest = -1;
  const far = 110 * reach; // maximum sideways extent of a shape
  const [low, high] = [Math.min(start[0], end[0]) - far, Math.max(start[0], end[0]) + far];
  const near = marks.filter(([x]) => x >= low && x <= high);
  for (const shape of SHAPES) {
    const found = bent(start, end, shape, reach);
    if (!allows(found)) continue;
    const clearance = findClearance(found, near, widest);
    if (clearance >= CLEARANCE * reach) return found;
    if (clearance > widest) [best, widest] = [found, clearance];
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

/** Return the point at a fraction of the route, 0 to 1. */
export function pointOn([a, b, c, d], part) {
  const rest = 1 - part;
  const of = (k) =>
    rest * rest * rest * a[k] + 3 * rest * rest * part * b[k] + 3 * rest * part * part * c[k] + part * part * part * d[k];
  return [of(0), of(1)];
}

/** Return the distance of a route from the nearest mark; the search stops below `enough`. */
function findClearance(route, marks, enough) {
  let min = Infinity;
  for (let k = 1; k < SAMPLES; k++) {
    const [x, y] = pointOn(route, k / SAMPLES);
    for (const [mx, my] of marks) {
      const square = (x - mx) * (x - mx) + (y - my) * (y - my);
      if (square < min) min = square;
    }
    if (min <= enough * enough && enough >= 0) break;
  }
  return Math.sqrt(min);
}

/** Return a route as straight segments [x1, y1, x2, y2]. */
export function routeSegments(route, count = 10) {
  const points = Array.from({ length: count + 1 }, (_, k) => pointOn(route, k / count));
  return points.slice(1).map((point, k) => [...points[k], ...point]);
}

function direction([a, b, c, d]) {
  const from = [c, b, a].find((point) => Math.hypot(d[0] - point[0], d[1] - point[1]) > 0.5) ?? a;
  const length = Math.hypot(d[0] - from[0], d[1] - from[1]) || 1;
  return [(d[0] - from[0]) / length, (d[1] - from[1]) / length];
}

/** Return the shaft up to the arrowhead, as the `d` of an SVG path. */
export function shaftPath(route, size = 1, short = HEAD_GAP) {
  const [ux, uy] = direction(route);
  const [a, b, c, d] = route;
  const back = (short + HEAD * 0.7) * size;
  const end = [d[0] - back * ux, d[1] - back * uy];
  return `M${px(a)}C${px(b)} ${px(c)} ${px(end)}`;
}

/** Return the corners of the arrowhead. */
export function headPoints(route, size = 1, short = HEAD_GAP) {
  const [ux, uy] = direction(route);
  const [x, y] = route[3];
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
