import { meant } from "./keys";
import * as store from "./store";
import { useStore } from "./store";

/** What can be done with what is selected. */
export function Selection() {
  const { chosen, chosenClusters, view, filter } = useStore();
  if (view === "clusters") return <OfClusters ids={[...chosenClusters]} />;
  if (chosen.size) return <OfImages rows={[...chosen]} />;
  if (filter.cluster !== null && filter.cluster >= 0) {
    return (
      <section class="selection" aria-label="The cluster">
        <strong>{store.title(filter.cluster)}</strong>
        <OfOne />
        <button type="button" onClick={() => store.choose(store.shown() ?? [])}>
          Select all
        </button>
      </section>
    );
  }
  return null;
}

function OfImages({ rows }: { rows: number[] }) {
  return (
    <section class="selection" aria-label="Selected images">
      <strong>{rows.length.toLocaleString("en")} selected</strong>
      <button type="button" class="strong" onClick={() => store.set({ dialog: "move" })}>
        Move
      </button>
      <button type="button" onClick={() => store.set({ dialog: "create" })}>
        New cluster
      </button>
      <button type="button" onClick={() => void store.mark(rows, "wrong")}>
        Wrong
      </button>
      <button type="button" onClick={() => void store.mark(rows, "outlier")}>
        Outlier
      </button>
      <button type="button" onClick={() => void store.mark(rows, "")}>
        Clear mark
      </button>
      {rows.length === 1 && (
        <>
          <button type="button" onClick={() => store.set({ open: rows[0]! })}>
            Open
          </button>
          <button type="button" onClick={() => store.show({ like: rows[0]!, cluster: null })}>
            Like this
          </button>
        </>
      )}
      <button type="button" onClick={() => store.choose([])}>
        Let go
      </button>
    </section>
  );
}

function OfClusters({ ids }: { ids: number[] }) {
  return (
    <section class="selection" aria-label="Selected clusters">
      {ids.length > 0 && <strong>{ids.length} selected</strong>}
      {ids.length > 1 && (
        <button type="button" class="strong" onClick={() => void store.merge(ids)}>
          Merge {ids.length} clusters
        </button>
      )}
      {meant() !== null && <OfOne />}
      {ids.length > 0 ? (
        <button type="button" onClick={() => store.set({ chosenClusters: new Set() })}>
          Let go
        </button>
      ) : (
        <>
          <span class="hint">Tick clusters to merge, name or split them.</span>
          <button type="button" onClick={() => store.set({ chosen: new Set(), dialog: "create" })}>
            New cluster
          </button>
        </>
      )}
    </section>
  );
}

function OfOne() {
  return (
    <>
      <button type="button" onClick={() => store.set({ dialog: "rename" })}>
        Rename
      </button>
      <button type="button" onClick={() => store.set({ dialog: "split" })}>
        Split
      </button>
    </>
  );
}
