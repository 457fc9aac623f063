/** Points on the graphics card: drawn in one call, however many there are. */

import { Geometry, Mesh, Program, Renderer } from "ogl";

const VERTEX = `
  attribute vec2 position;
  attribute vec4 colour;
  uniform vec2 scale;
  uniform vec2 middle;
  uniform float size;
  varying vec4 shown;
  void main() {
    shown = colour;
    gl_Position = vec4((position - middle) * scale, 0.0, 1.0);
    gl_PointSize = size * (colour.a > 0.5 ? 1.0 : 0.7);
  }
`;
const FRAGMENT = `
  precision mediump float;
  varying vec4 shown;
  uniform float ring;
  void main() {
    float far = length(gl_PointCoord - 0.5) * 2.0;
    if (far > 1.0) discard;
    vec3 inner = shown.a > 0.95 && far > 0.55 ? vec3(ring) : shown.rgb;
    gl_FragColor = vec4(inner, shown.a * smoothstep(1.0, 0.75, far));
  }
`;

export interface Window {
  /** What lies in the middle, and how many pixels a step of one takes. */
  x: number;
  y: number;
  zoom: number;
}

export class Points {
  private renderer: Renderer;
  private geometry: Geometry;
  private program: Program;
  private mesh: Mesh;

  constructor(
    private canvas: HTMLCanvasElement,
    places: Float32Array,
  ) {
    this.renderer = new Renderer({ canvas, dpr: Math.min(2, devicePixelRatio), alpha: true, depth: false });
    const { gl } = this.renderer;
    const colours = new Uint8Array(places.length * 2);
    this.geometry = new Geometry(gl, {
      position: { size: 2, data: places },
      colour: { size: 4, data: colours, type: gl.UNSIGNED_BYTE, normalized: true },
    });
    this.program = new Program(gl, {
      vertex: VERTEX,
      fragment: FRAGMENT,
      uniforms: { scale: { value: [1, 1] }, middle: { value: [0, 0] }, size: { value: 4 }, ring: { value: 0 } },
      transparent: true,
      depthTest: false,
    });
    this.mesh = new Mesh(gl, { mode: gl.POINTS, geometry: this.geometry, program: this.program, frustumCulled: false });
  }

  /** What is chosen, with an alpha of 255, gets a ring: dark on light, or light on dark. */
  paint(colours: Uint8Array, dark: boolean): void {
    this.program.uniforms.ring!.value = dark ? 1 : 0;
    const attribute = this.geometry.attributes.colour!;
    attribute.data = colours;
    attribute.needsUpdate = true;
  }

  resize(width: number, height: number): void {
    this.renderer.setSize(width, height);
  }

  draw({ x, y, zoom }: Window): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const count = this.geometry.attributes.position!.count ?? 1;
    const size = Math.min(14, Math.max(3, 2.2 * Math.sqrt((zoom * 40) / Math.sqrt(count))));
    this.program.uniforms.scale!.value = [(2 * zoom) / width, (2 * zoom) / height];
    this.program.uniforms.middle!.value = [x, y];
    this.program.uniforms.size!.value = size * this.renderer.dpr;
    this.renderer.render({ scene: this.mesh });
  }

  end(): void {
    this.renderer.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }
}

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
