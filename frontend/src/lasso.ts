/** Which points lie within a closed line. */
export function inside(line: [number, number][], places: Float32Array, among: Int32Array): Set<number> {
  const xs = line.map(([x]) => x);
  const ys = line.map(([, y]) => y);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const found = new Set<number>();
  for (const row of among) {
    const x = places[2 * row]!;
    const y = places[2 * row + 1]!;
    if (x >= left && x <= right && y >= low && y <= high && within(line, x, y)) found.add(row);
  }
  return found;
}

function within(line: [number, number][], x: number, y: number): boolean {
  let odd = false;
  for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
    const [ax, ay] = line[i]!;
    const [bx, by] = line[j]!;
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}
