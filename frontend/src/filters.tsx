import { useRef } from "preact/hooks";
import type { Filter, Mark } from "./api";
import * as store from "./store";
import { shown, useStore } from "./store";

/** What is shown: a cluster, a text in the path, a range of confidence, a mark; and how large. */
export function Filters() {
  const { filter, overview, example, tile, lasso } = useStore();
  const typing = useRef(0);
  const total = shown()?.length;

  function search(text: string) {
    clearTimeout(typing.current);
    typing.current = window.setTimeout(() => store.show({ text }), 150);
  }

  return (
    <form class="filters" role="search" aria-label="Filter" onSubmit={(event) => event.preventDefault()}>
      <select
        aria-label="Cluster"
        value={filter.cluster === null ? "" : String(filter.cluster)}
        onChange={(event) => {
          const { value } = event.currentTarget;
          store.show({ cluster: value === "" ? null : Number(value) });
        }}
      >
        <option value="">All clusters</option>
        {overview!.clusters.map((cluster) => (
          <option key={cluster.id} value={String(cluster.id)}>
            {store.title(cluster.id)} ({cluster.size.toLocaleString("en")})
          </option>
        ))}
      </select>
      <input
        id="search"
        type="search"
        placeholder="Text in the path"
        aria-label="Text in the path"
        autocomplete="off"
        key={filter.text === "" ? "empty" : "text"}
        defaultValue={filter.text}
        onInput={(event) => search(event.currentTarget.value)}
      />
      <select
        aria-label="Mark"
        value={filter.mark ?? "any"}
        onChange={(event) => {
          const { value } = event.currentTarget;
          store.show({ mark: value === "any" ? null : (value as Mark) });
        }}
      >
        <option value="any">Any mark</option>
        <option value="wrong">Wrong ({overview!.marks.wrong})</option>
        <option value="outlier">Outlier ({overview!.marks.outlier})</option>
        <option value="">No mark</option>
      </select>
      <select
        aria-label="Order"
        value={filter.order}
        disabled={filter.like !== null || example !== null}
        onChange={(event) => store.show({ order: event.currentTarget.value as Filter["order"] })}
      >
        <option value="sure">Surest first</option>
        <option value="unsure">Most doubtful first</option>
        <option value="path">By path</option>
      </select>
      <label class="range">
        Confidence
        <input
          type="number"
          min={0}
          max={1}
          step={0.05}
          aria-label="Confidence at least"
          value={filter.low}
          onChange={(event) => store.show({ low: clamp(event.currentTarget.value, 0) })}
        />
        to
        <input
          type="number"
          min={0}
          max={1}
          step={0.05}
          aria-label="Confidence at most"
          value={filter.high}
          onChange={(event) => store.show({ high: clamp(event.currentTarget.value, 1) })}
        />
      </label>
      {(filter.like !== null || example !== null) && (
        <button type="button" class="chip" onClick={() => store.show({ like: null })}>
          like {example ?? `image ${filter.like}`} ✕
        </button>
      )}
      {lasso && (
        <button type="button" class="chip" onClick={() => store.set({ lasso: null })}>
          in the lasso ✕
        </button>
      )}
      <label class="pick">
        Like a file
        <input
          type="file"
          accept="image/*"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) void store.dropped(file);
            event.currentTarget.value = "";
          }}
        />
      </label>
      <label class="zoom">
        Size
        <input
          type="range"
          min={56}
          max={240}
          step={8}
          aria-label="Size of the images"
          value={tile}
          onInput={(event) => store.set({ tile: Number(event.currentTarget.value) })}
        />
      </label>
      <output aria-live="polite">{total === undefined ? "…" : `${total.toLocaleString("en")} images`}</output>
    </form>
  );
}

function clamp(text: string, otherwise: number): number {
  const value = Number.parseFloat(text);
  return Number.isFinite(value) ? Math.max(0, Math.min(1, value)) : otherwise;
}
