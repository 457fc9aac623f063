import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { css, isDark } from "./colour";
import { Picture } from "./picture";
import * as store from "./store";
import { useStore } from "./store";

const GAP = 4;
const AHEAD = 3; // Rows of tiles that are drawn before they are seen.
const TALLEST = 15_000_000; // Pixels; browsers know no taller element.

/** The images in order; only those near the window exist, so 60,000 scroll like 60. */
export function Grid() {
  const state = useStore();
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [top, setTop] = useState(0);
  const [focus, setFocus] = useState(0);
  const anchor = useRef(0);
  const rows = store.shown();

  useLayoutEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const order = JSON.stringify(state.filter) + state.example;
  useEffect(() => {
    box.current!.scrollTop = 0;
    setTop(0);
    setFocus(0);
    anchor.current = 0;
  }, [order, state.lasso]);

  const side = state.tile + GAP;
  const columns = Math.max(1, Math.floor((size.width - GAP) / side));
  const tile = (size.width - GAP) / columns;
  const total = rows?.length ?? 0;
  const lines = Math.ceil(total / columns);
  const height = lines * tile + GAP;
  const sheet = Math.min(height, TALLEST);
  /* A pixel of the scroll bar is so many of the images: more than one where these would be too tall. */
  const ratio = sheet > size.height ? (height - size.height) / (sheet - size.height) : 1;
  const offset = top * ratio;
  const first = Math.max(0, Math.floor(offset / tile) - AHEAD) * columns;
  const last = Math.min(total, (Math.ceil((offset + size.height) / tile) + AHEAD) * columns);
  const here = Math.min(focus, Math.max(0, total - 1));

  const range = (from: number, to: number) => rows!.subarray(Math.min(from, to), Math.max(from, to) + 1);

  function select(place: number, event: { shiftKey: boolean; ctrlKey: boolean; metaKey: boolean }) {
    const row = rows![place]!;
    const chosen = new Set(state.chosen);
    if (event.shiftKey) {
      for (const other of range(anchor.current, place)) chosen.add(other);
    } else {
      if (chosen.has(row)) chosen.delete(row);
      else chosen.add(row);
      anchor.current = place;
    }
    setFocus(place);
    store.choose(chosen);
  }

  function goTo(place: number, extend: boolean) {
    const next = Math.max(0, Math.min(total - 1, place));
    const element = box.current!;
    const y = Math.floor(next / columns) * tile;
    const seen = element.scrollTop * ratio;
    if (y < seen) element.scrollTop = y / ratio;
    else if (y + tile > seen + size.height) element.scrollTop = Math.ceil((y + tile - size.height + GAP) / ratio);
    if (extend) {
      const chosen = new Set(state.chosen);
      for (const row of range(here, next)) chosen.add(row);
      store.choose(chosen);
    } else anchor.current = next;
    setFocus(next);
  }

  function onKey(event: KeyboardEvent) {
    if (!total || event.altKey) return;
    const page = columns * Math.max(1, Math.floor(size.height / tile) - 1);
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns,
      PageUp: -page,
      PageDown: page,
      Home: -total,
      End: total,
    };
    const step = steps[event.key];
    if (step !== undefined) goTo(here + step, event.shiftKey);
    else if (event.key === " " || event.key === "x") select(here, event);
    else if (event.key === "Enter") store.set({ open: rows![here]! });
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) store.choose(rows!);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  const tiles = [];
  for (let place = first; place < last; place++) {
    const row = rows![place]!;
    const image = state.details.get(row);
    store.wish(row);
    const chosen = state.chosen.has(row);
    const cluster = image?.[2];
    const mark = image?.[4] ?? "";
    const sure = image?.[3] ?? null;
    tiles.push(
      <div
        key={row}
        id={`tile-${row}`}
        role="option"
        aria-selected={chosen}
        aria-setsize={total}
        aria-posinset={place + 1}
        aria-label={image ? label(image) : `Image ${row}`}
        title={image?.[1] ?? ""}
        class={`tile${chosen ? " chosen" : ""}${place === here ? " here" : ""}${mark ? ` ${mark}` : ""}`}
        style={{
          left: `${(place % columns) * tile + GAP}px`,
          top: `${Math.floor(place / columns) * tile + GAP + top - offset}px`,
          width: `${tile - GAP}px`,
          height: `${tile - GAP}px`,
        }}
        onClick={(event) => select(place, event)}
        onDblClick={() => store.set({ open: row })}
      >
        <Picture row={row} alt="" />
        {cluster !== undefined && state.filter.cluster === null && (
          <span class="dot" style={{ background: css(cluster, isDark()) }} />
        )}
        {mark && <span class="badge">{mark}</span>}
        {sure !== null && sure < 0.995 && <span class="sure">{sure.toFixed(2)}</span>}
        <span class="tick" aria-hidden="true" />
      </div>,
    );
  }

  return (
    <div
      ref={box}
      class="grid"
      role={total ? "listbox" : "region"}
      aria-multiselectable={total ? true : undefined}
      aria-label="Images"
      aria-busy={rows === null}
      tabIndex={0}
      aria-activedescendant={total && here >= first && here < last ? `tile-${rows![here]}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKey}
    >
      {state.failed ? (
        <p class="empty">{state.failed}</p>
      ) : rows === null ? (
        <p class="empty loading">Looking …</p>
      ) : total === 0 ? (
        <p class="empty">
          No image is like that.
          <button type="button" onClick={() => store.show(NOTHING)}>
            Show all of them
          </button>
        </p>
      ) : (
        <div class="sheet" role="presentation" style={{ height: `${sheet}px` }}>
          {tiles}
        </div>
      )}
    </div>
  );
}

const NOTHING = { cluster: null, text: "", low: 0, high: 1, mark: null, like: null } as const;

function label([, path, cluster, sure, mark]: [number, string, number, number | null, string]): string {
  const known = sure === null ? "" : `, confidence ${sure.toFixed(2)}`;
  return `${path}, ${store.title(cluster)}${known}${mark ? `, marked ${mark}` : ""}`;
}
