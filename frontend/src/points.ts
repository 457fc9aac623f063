/** The map's points. However many there are and whoever draws them, the page stays quick.
 *
 * A picture of all points, somewhat larger than the window, is drawn a part in each frame: as many points as a frame
 * bears, which on a graphics card soon are all, and a few thousand where the processor draws. Meanwhile the last picture
 * is shown, moved and scaled to where the window is by now.
 */

import { Mesh, Program, Renderer, RenderTarget, Triangle, type OGLRenderingContext } from "ogl";
import { Dots, type Window } from "./dots";

export type { Window } from "./dots";

const MARGIN = 0.25; // Of the window's size, on each side, so that there is something where it moves to.
const ENOUGH = 100_000; // Points that a picture may be shown with while the others are added.
const [FEWEST, FIRST] = [1000, 2000]; // Points of a frame.
const [QUICK, SLOW] = [25, 40]; // Milliseconds that a part may take.

const VERTEX = `
  attribute vec2 position;
  uniform vec2 scale;
  uniform vec2 shift;
  varying vec2 place;
  void main() {
    place = position * scale + shift;
    gl_Position = vec4(position, 0.0, 1.0);
  }
`;
const FRAGMENT = `
  precision highp float;
  uniform sampler2D picture;
  varying vec2 place;
  void main() {
    bool within = abs(place.x) <= 1.0 && abs(place.y) <= 1.0;
    gl_FragColor = within ? texture2D(picture, place * 0.5 + 0.5) : vec4(0.0);
  }
`;

interface Picture {
  target: RenderTarget;
  window: Window;
  /** Which colours it has. */
  paint: number;
  drawn: number;
}

export class Points {
  private renderer: Renderer;
  private gl: OGLRenderingContext;
  private dots: Dots;
  private sheet: Mesh;
  private shown: Picture | null = null;
  private next: Picture | null = null;
  private spare: RenderTarget[] = [];
  private wanted: Window | null = null;
  private paints = 0;
  private frame = 0;
  private atOnce = FIRST;
  private underway: { fence: WebGLSync | null; since: number } | null = null;
  private stale = true;

  constructor(
    private canvas: HTMLCanvasElement,
    places: Float32Array,
  ) {
    const dpr = Math.min(2, devicePixelRatio);
    this.renderer = new Renderer({ canvas, dpr, alpha: true, depth: false, premultipliedAlpha: true });
    this.gl = this.renderer.gl;
    this.dots = new Dots(this.gl, places);
    const uniforms = { picture: { value: null }, scale: { value: [1, 1] }, shift: { value: [0, 0] } };
    const program = new Program(this.gl, { vertex: VERTEX, fragment: FRAGMENT, uniforms, depthTest: false });
    this.sheet = new Mesh(this.gl, { geometry: new Triangle(this.gl), program, frustumCulled: false });
  }

  paint(colours: Uint32Array, dark: boolean): void {
    this.dots.paint(colours, dark);
    this.paints++;
    this.wake();
  }

  resize(width: number, height: number): void {
    this.renderer.setSize(width, height);
    if (this.next) this.spare.push(this.next.target);
    this.next = null; // What is shown stays until there is one of the new size.
    this.wake();
  }

  /** Show the map so, as soon as that is drawn. */
  show(window: Window): void {
    this.wanted = window;
    this.wake();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = -1;
  }

  private wake(): void {
    this.stale = true;
    delete this.canvas.dataset.drawn;
    this.frame ||= requestAnimationFrame(this.step);
  }

  private step = (now: number): void => {
    this.frame = 0;
    if (!this.wanted || !this.paints || !this.renderer.width) return;
    if (this.isFree(now)) this.drawPart(now);
    if (this.stale && this.shown) this.lay(this.shown);
    this.stale = false;
    if (this.shown) this.canvas.dataset.seen = String(this.shown.drawn);
    if (this.isDone()) this.canvas.dataset.drawn = String(this.dots.count);
    else this.frame = requestAnimationFrame(this.step);
  };

  /** Whether the part before is drawn; the next one is larger or smaller, by how long that took. */
  private isFree(now: number): boolean {
    if (!this.underway) return true;
    const { fence, since } = this.underway;
    const gl = this.gl as WebGL2RenderingContext;
    if (fence && gl.getSyncParameter(fence, gl.SYNC_STATUS) !== gl.SIGNALED) return false;
    if (fence) gl.deleteSync(fence);
    if (now - since < QUICK) this.atOnce *= 1.5;
    else if (now - since > SLOW) this.atOnce = Math.max(FEWEST, this.atOnce * 0.6);
    this.underway = null;
    return true;
  }

  private isDone(): boolean {
    return !this.next && !!this.shown && this.isRight(this.shown) && this.shown.drawn >= this.dots.count;
  }

  private isRight({ window, paint }: Picture): boolean {
    const { x, y, zoom } = this.wanted!;
    return window.x === x && window.y === y && window.zoom === zoom && paint === this.paints;
  }

  private drawPart(now: number): void {
    if (this.isDone()) return;
    const going = !this.next && this.shown && this.isRight(this.shown) ? this.shown : (this.next ??= this.begun());
    const count = Math.min(Math.ceil(this.atOnce), this.dots.count - going.drawn);
    this.dots.draw(going.target, going.window, this.renderer.dpr, going.drawn, count);
    going.drawn += count;
    const gl = this.gl as WebGL2RenderingContext;
    const fence = this.renderer.isWebgl2 ? gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0) : null;
    gl.flush();
    this.underway = { fence, since: now };
    const enough = this.shown ? Math.min(ENOUGH, this.dots.count) : 1; // Anything is better than an empty map.
    if (going === this.next && going.drawn >= enough) {
      if (this.shown) this.spare.push(this.shown.target);
      [this.shown, this.next] = [going, null];
    }
    this.stale ||= going === this.shown;
  }

  private begun(): Picture {
    const { width, height, dpr } = this.renderer;
    const sized = (side: number) => Math.round(side * dpr) + 2 * Math.round(MARGIN * side * dpr); // Pixel on pixel.
    const target =
      this.spare.pop() ?? new RenderTarget(this.gl, { width: sized(width), height: sized(height), depth: false });
    target.setSize(sized(width), sized(height));
    return { target, window: this.wanted!, paint: this.paints, drawn: 0 };
  }

  /** Lay a picture over the canvas, to where its points are by now. */
  private lay({ target, window }: Picture): void {
    const { width, height, dpr } = this.renderer;
    const { picture, scale, shift } = this.sheet.program.uniforms;
    const zoomed = window.zoom / this.wanted!.zoom;
    const step = 2 * window.zoom * dpr;
    picture!.value = target.texture;
    scale!.value = [(zoomed * width * dpr) / target.width, (zoomed * height * dpr) / target.height];
    shift!.value = [
      ((this.wanted!.x - window.x) * step) / target.width,
      ((this.wanted!.y - window.y) * step) / target.height,
    ];
    this.renderer.render({ scene: this.sheet });
  }
}
