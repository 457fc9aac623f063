/** Points as the graphics card draws them: any stretch of them, into a picture that can be shown again. */

import { Geometry, Mesh, Program, type OGLRenderingContext, type RenderTarget } from "ogl";

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
/* Colours are multiplied by their alpha, so that pictures can be laid over each other. */
const FRAGMENT = `
  precision mediump float;
  varying vec4 shown;
  uniform float ring;
  void main() {
    float far = length(gl_PointCoord - 0.5) * 2.0;
    if (far > 1.0) discard;
    vec3 inner = shown.a > 0.95 && far > 0.55 ? vec3(ring) : shown.rgb;
    float alpha = shown.a * smoothstep(1.0, 0.75, far);
    gl_FragColor = vec4(inner * alpha, alpha);
  }
`;

export interface Window {
  /** What lies in the middle, and how many pixels a step of one takes. */
  x: number;
  y: number;
  zoom: number;
}

export class Dots {
  readonly count: number;
  /** Any first part of the points is a fair sample of all. */
  private order: Uint32Array;
  private geometry: Geometry;
  private program: Program;
  private mesh: Mesh;

  constructor(
    private gl: OGLRenderingContext,
    places: Float32Array,
  ) {
    this.count = places.length / 2;
    this.order = mixed(this.count);
    const data = new Float32Array(places.length);
    for (let place = 0; place < this.count; place++) {
      data[2 * place] = places[2 * this.order[place]!]!;
      data[2 * place + 1] = places[2 * this.order[place]! + 1]!;
    }
    this.geometry = new Geometry(gl, {
      position: { size: 2, data },
      colour: { size: 4, data: new Uint8Array(4 * this.count), type: gl.UNSIGNED_BYTE, normalized: true },
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

  /** A colour for each point, four bytes; what has an alpha of 255 gets a ring: dark on light, or light on dark. */
  paint(colours: Uint32Array, dark: boolean): void {
    this.program.uniforms.ring!.value = dark ? 1 : 0;
    const attribute = this.geometry.attributes.colour!;
    attribute.data = new Uint8Array(this.order.map((row) => colours[row]!).buffer);
    attribute.needsUpdate = true;
  }

  /** Add so many points, from one of them on, to a picture; the first ones clear it. */
  draw(target: RenderTarget, { x, y, zoom }: Window, dpr: number, from: number, count: number): void {
    const apart = (2 * zoom) / Math.sqrt(this.count); // Pixels between points, if they lay evenly.
    const size = Math.min(14, Math.max(3, 1.8 * apart));
    const { scale, middle, size: diameter } = this.program.uniforms;
    scale!.value = [(2 * zoom * dpr) / target.width, (2 * zoom * dpr) / target.height];
    middle!.value = [x, y];
    diameter!.value = size * dpr;
    this.geometry.setDrawRange(from, count);
    this.gl.renderer.render({ scene: this.mesh, target, clear: !from });
  }
}

/** All numbers below this one, in an order that looks like chance and is the same each time. */
function mixed(count: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, place) => place);
  let seed = 1;
  for (let place = count - 1; place > 0; place--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const other = Math.floor((seed / 2 ** 32) * (place + 1));
    [order[place], order[other]] = [order[other]!, order[place]!];
  }
  return order;
}
