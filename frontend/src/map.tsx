import { select } from "d3-selection";
import { zoom as makeZoom, zoomIdentity, type ZoomTransform } from "d3-zoom";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import { isDark, onScheme, rgb } from "./colour";
import { Picture } from "./picture";
import { inside } from "./lasso";
import { Points } from "./points";
import * as store from "./store";
import { useStore } from "./store";

const MAPS = {
  pca: ["principal components", "The two directions in which images differ most; dccm serve --tsne keeps neighbours together."],
  tsne: ["t-SNE", "Neighbours stay neighbours; distances between groups mean little."],
} as const;
const [FAINT, BRIGHT] = [64, 220]; // Alpha of points outside of the filter and within; chosen ones have 255.
const NEAR = 12; // Pixels within which a point is under the pointer.

/** Every image as a point; what the filter lets through is bright, and a lasso narrows the grid. */
export function EmbeddingMap() {
  const state = useStore();
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const points = useRef<Points | null>(null);
  const transform = useRef<ZoomTransform>(zoomIdentity);
  const zooming = useRef<ReturnType<typeof makeZoom<HTMLCanvasElement, unknown>> | null>(null);
  const line = useRef<[number, number][]>([]);
  const [places, setPlaces] = useState<Float32Array | null>(null);
  const [clusters, setClusters] = useState<Int32Array | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [lassoing, setLassoing] = useState(false);
  const [path, setPath] = useState("");
  const [hover, setHover] = useState<{ row: number; x: number; y: number } | null>(null);
  const [scheme, setScheme] = useState(isDark());
  const [failed, setFailed] = useState("");
  const lasso = useRef(false);
  lasso.current = lassoing;

  const version = state.overview?.version;
  useEffect(() => void api.getMap().then(setPlaces, (error: Error) => setFailed(error.message)), [state.map]);
  useEffect(() => void api.getPoints().then(setClusters, () => undefined), [version]);
  useEffect(() => onScheme(() => setScheme(isDark())), []);

  /* How the map lies in the window: a step of one is `zoom` pixels. */
  const shown = () => {
    const { k, x, y } = transform.current;
    const unit = (Math.min(size.width, size.height) / 2.3) * k;
    return { zoom: unit, left: size.width / 2, top: size.height / 2, x, y, k };
  };
  const toMap = (px: number, py: number): [number, number] => {
    const { zoom, x, y, k } = shown();
    return [(px - x - (size.width / 2) * k) / zoom, -(py - y - (size.height / 2) * k) / zoom];
  };
  const draw = () => {
    if (!points.current || !size.width) return;
    const [x, y] = toMap(size.width / 2, size.height / 2);
    points.current.show({ x, y, zoom: shown().zoom });
  };

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = box.current!;
      setSize({ width, height });
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    if (!places || !canvas.current) return;
    try {
      points.current = new Points(canvas.current, places);
    } catch {
      setFailed("This browser draws no WebGL, which the map needs. The grid works without it.");
    }
    return () => {
      points.current?.stop();
      points.current = null;
    };
  }, [places]);

  useEffect(() => {
    if (!points.current || !clusters) return;
    points.current.paint(colours(clusters, store.shown(), state.chosen, scheme), scheme);
    draw();
  }, [places, clusters, state.rows, state.lasso, state.chosen, scheme]);

  useEffect(() => {
    points.current?.resize(size.width, size.height);
    draw();
  }, [size, places]);

  useEffect(() => {
    const target = select(canvas.current!);
    const zoom = makeZoom<HTMLCanvasElement, unknown>()
      .scaleExtent([0.5, 60])
      .filter((event: MouseEvent) => !lasso.current && !event.shiftKey && !event.button)
      .on("zoom", (event: { transform: ZoomTransform }) => {
        transform.current = event.transform;
        setHover(null);
        redraw.current();
      });
    zooming.current = zoom;
    target.call(zoom).on("dblclick.zoom", null);
    return () => void target.on(".zoom", null);
  }, []);
  const redraw = useRef(draw);
  redraw.current = draw;

  const spot = (event: PointerEvent): [number, number] => {
    const frame = canvas.current!.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };

  function onDown(event: PointerEvent) {
    if (!(lassoing || event.shiftKey) || event.button) return;
    event.preventDefault();
    canvas.current!.setPointerCapture(event.pointerId);
    line.current = [spot(event)];
  }

  function onMove(event: PointerEvent) {
    const here = spot(event);
    if (line.current.length) {
      line.current.push(here);
      setPath(`M${line.current.map((point) => point.join(" ")).join("L")}Z`);
    } else if (places && event.pointerType === "mouse" && !event.buttons) setHover(under(here));
  }

  function onUp() {
    const drawn = line.current;
    line.current = [];
    setPath("");
    if (drawn.length < 4 || !places || !state.rows) return;
    catchAll(drawn.map(([x, y]) => toMap(x, y)));
  }

  function catchAll(drawn: [number, number][]) {
    const caught = inside(drawn, places!, state.rows!);
    setLassoing(false);
    if (!caught.size) store.say("There is no image within that line.");
    store.set({ lasso: caught.size ? caught : null, chosen: caught });
  }

  /** The point under the pointer, if there is one. */
  function under([px, py]: [number, number]) {
    const [x, y] = toMap(px, py);
    const reach = NEAR / shown().zoom;
    let best = reach * reach;
    let row = -1;
    for (const other of store.shown() ?? []) {
      const dx = places![2 * other]! - x;
      const dy = places![2 * other + 1]! - y;
      const far = dx * dx + dy * dy;
      if (far < best) [best, row] = [far, other];
    }
    return row < 0 ? null : { row, x: px, y: py };
  }

  /** Without a pointer: arrows pan, + and - zoom, Enter takes what is in the window. */
  function onKey(event: KeyboardEvent) {
    const target = select(canvas.current!);
    const zoom = zooming.current!;
    const pans: Record<string, [number, number]> = {
      ArrowLeft: [60, 0],
      ArrowRight: [-60, 0],
      ArrowUp: [0, 60],
      ArrowDown: [0, -60],
    };
    const pan = pans[event.key];
    if (pan) zoom.translateBy(target, pan[0] / transform.current.k, pan[1] / transform.current.k);
    else if (event.key === "+" || event.key === "=") zoom.scaleBy(target, 1.4);
    else if (event.key === "-") zoom.scaleBy(target, 1 / 1.4);
    else if (event.key === "0") zoom.transform(target, zoomIdentity);
    else if (event.key === "Enter" && places && state.rows) takeWindow();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function takeWindow() {
    const { width, height } = size;
    catchAll([toMap(0, 0), toMap(width, 0), toMap(width, height), toMap(0, height)]);
  }

  const word = hover && state.details.get(hover.row);
  if (hover) store.wish(hover.row);
  return (
    <section class="map" aria-label="Map">
      <div class="tools" role="toolbar" aria-label="Map tools">
        <span class="hint" title={MAPS[state.map][1]}>
          {MAPS[state.map][0]}
        </span>
        <button type="button" aria-pressed={lassoing} onClick={() => setLassoing(!lassoing)}>
          Lasso
        </button>
        <button type="button" disabled={!places} onClick={takeWindow}>
          Select what is in view
        </button>
        <button type="button" onClick={() => zooming.current!.transform(select(canvas.current!), zoomIdentity)}>
          Whole map
        </button>
        {state.lasso && (
          <button type="button" onClick={() => store.set({ lasso: null })}>
            Drop the lasso ({state.lasso.size.toLocaleString("en")})
          </button>
        )}
      </div>
      <div class={`field${lassoing ? " lassoing" : ""}`} ref={box}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label="Map of the embedding. Arrows pan, plus and minus zoom, Enter selects what is in view."
          onPointerDown={onDown}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerLeave={() => setHover(null)}
          onDblClick={() => hover && store.set({ open: hover.row })}
          onKeyDown={onKey}
        />
        {path && (
          <svg class="line" aria-hidden="true">
            <path d={path} />
          </svg>
        )}
        {hover && (
          <figure
            class="hover"
            style={{
              left: `${Math.min(hover.x + 14, size.width - 130)}px`,
              top: `${Math.min(hover.y + 14, size.height - 150)}px`,
            }}
          >
            <Picture row={hover.row} alt="" />
            <figcaption>{word ? store.title(word[2]) : ""}</figcaption>
          </figure>
        )}
        {failed ? (
          <p class="empty over">{failed}</p>
        ) : (
          !places && <p class="empty over loading">Drawing the map …</p>
        )}
      </div>
    </section>
  );
}

/** Red, green, blue and alpha of each image, in one number. */
function colours(clusters: Int32Array, bright: Int32Array | null, chosen: Set<number>, dark: boolean): Uint32Array {
  const known = new Map<number, number>();
  const colour = (cluster: number) => {
    const [r, g, b] = rgb(cluster, dark);
    const made = r | (g << 8) | (b << 16);
    known.set(cluster, made);
    return made;
  };
  const alpha = (bright ? FAINT : BRIGHT) << 24;
  const made = Uint32Array.from(clusters, (cluster) => (known.get(cluster) ?? colour(cluster)) | alpha);
  const mask = 0xffffff;
  for (const row of bright ?? []) made[row] = (made[row]! & mask) | (BRIGHT << 24);
  for (const row of chosen) made[row] = made[row]! | (255 << 24);
  return made;
}
