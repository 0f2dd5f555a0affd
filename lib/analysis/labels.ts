/**
 * Where to write names beside the points of a scatter plot, so that names, markers and error bars stay readable.
 * Greedy, in several orders: each label takes the spot around its point that covers the least and lies nearest;
 * the order that ends up covering least wins. Left out: moving a label once it stands.
 */

/** A point to be named; pixels, y grows downwards as on the screen. */
export interface LabelledPoint {
  readonly x: number;
  readonly y: number;
  /** The ends of the vertical error bar. */
  readonly top: number;
  readonly bottom: number;
  /** The label's size. */
  readonly width: number;
  readonly height: number;
}

/** A label's middle, in pixels from its point; `far` where a line should lead to it. */
export interface LabelPlace {
  readonly dx: number;
  readonly dy: number;
  readonly far: boolean;
}

interface Rectangle {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Pixels from a point's middle that its marker needs. */
const MARKER = 7;
const DIRECTIONS = 16;
/** Pixels between marker and label. */
const DISTANCES = [5, 14, 26, 40, 56, 74, 94];
/** What covering one square pixel costs, in pixels of distance; a label outside its bounds is as bad as it gets. */
const COST = { label: 4, marker: 3, leader: 3, bar: 1, outside: 1000 };

/** One place per point, in the same order. @param bounds labels stay inside this rectangle */
export function placeLabels(points: readonly LabelledPoint[], bounds: Rectangle): LabelPlace[] {
  const orders = [
    points.map((_, i) => i),
    sortedBy(points, (point) => point.y),
    sortedBy(points, (point) => -point.y),
    sortedBy(points, (point) => point.x),
    sortedBy(points, (point) => -point.x),
  ];
  const tries = orders.map((order) => placeInOrder(points, bounds, order));
  return tries.reduce((best, next) => (next.cost < best.cost ? next : best)).places;
}

function placeInOrder(points: readonly LabelledPoint[], bounds: Rectangle, order: readonly number[]) {
  const markers = points.map(({ x, y }) => around(x, y, 2 * MARKER, 2 * MARKER));
  const bars = points.map(({ x, top, bottom }) => ({ left: x - 2, right: x + 2, top, bottom }));
  const labels: Rectangle[] = [];
  const leaders: Rectangle[] = [];
  const places: LabelPlace[] = [];
  let cost = 0;
  for (const i of order) {
    const point = points[i]!;
    const others = markers.filter((_, m) => m !== i);
    let best: { place: LabelPlace; box: Rectangle; leader: Rectangle[]; cost: number } | undefined;
    for (const place of candidates(point)) {
      const box = around(point.x + place.dx, point.y + place.dy, point.width, point.height);
      const leader = leaderOf(point, place);
      const inside = overlap(box, bounds) / (point.width * point.height);
      const crossed = leader.reduce((sum, dot) => sum + total(dot, labels) + total(dot, others), 0);
      const paid =
        Math.hypot(place.dx / 2, place.dy) +
        COST.outside * (1 - inside) +
        COST.label * total(box, labels) +
        COST.marker * total(box, markers) +
        COST.leader * (total(box, leaders) + crossed) +
        COST.bar * total(box, bars);
      if (!best || paid < best.cost) best = { place, box, leader, cost: paid };
    }
    labels.push(best!.box);
    leaders.push(...best!.leader);
    places[i] = best!.place;
    cost += best!.cost;
  }
  return { places, cost };
}

/** The line from a point to a far label, as a row of dots. */
function leaderOf({ x, y }: LabelledPoint, { dx, dy, far }: LabelPlace): Rectangle[] {
  if (!far) return [];
  return [0.25, 0.4, 0.55, 0.7, 0.85].map((t) => around(x + t * dx, y + t * dy, 4, 4));
}

function sortedBy(points: readonly LabelledPoint[], key: (point: LabelledPoint) => number): number[] {
  return points.map((_, i) => i).sort((i, j) => key(points[i]!) - key(points[j]!));
}

/** Spots all around the point, the label's edge at each of the distances from the marker. */
function* candidates({ width, height }: LabelledPoint): Generator<LabelPlace> {
  for (const distance of DISTANCES) {
    for (let i = 0; i < DIRECTIONS; i++) {
      const angle = (2 * Math.PI * i) / DIRECTIONS;
      yield {
        dx: Math.round(Math.cos(angle) * (MARKER + distance + width / 2)),
        dy: Math.round(Math.sin(angle) * (MARKER + distance + height / 2)),
        far: distance > DISTANCES[0]!,
      };
    }
  }
}

function around(x: number, y: number, width: number, height: number): Rectangle {
  return { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

function overlap(a: Rectangle, b: Rectangle): number {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return Math.max(0, width) * Math.max(0, height);
}

function total(box: Rectangle, others: readonly Rectangle[]): number {
  return others.reduce((sum, other) => sum + overlap(box, other), 0);
}
