import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import { Clusters } from "./clusters";
import { Dialogs } from "./dialog";
import { Filters } from "./filters";
import { Grid } from "./grid";
import { onKey } from "./keys";
import { Lightbox } from "./lightbox";
import { EmbeddingMap } from "./map";
import { Selection } from "./selection";
import * as store from "./store";
import { useStore, type View } from "./store";

const VIEWS: [View, string][] = [
  ["clusters", "Clusters"],
  ["images", "Images"],
  ["map", "Map"],
];

function App() {
  const { run, overview, view, gone, waiting, toast, failed } = useStore();
  const [over, setOver] = useState(false);

  useEffect(() => {
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);

  if (!run || !overview) return <p class="empty loading">{failed ?? "Loading the run …"}</p>;
  return (
    <div
      data-version={overview.version}
      class={`app view-${view}${over ? " over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.relatedTarget === null && setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const file = event.dataTransfer?.files[0];
        if (file) void store.dropped(file);
      }}
    >
      <header class="top">
        <h1 title={`${run.method}, ${overview.images.toLocaleString("en")} images`}>{run.name}</h1>
        <nav aria-label="Views">
          {VIEWS.filter(([name]) => name !== "map" || run.embedding).map(([name, label]) => (
            <button
              type="button"
              key={name}
              aria-current={view === name ? "page" : undefined}
              onClick={() => store.go(name)}
            >
              {label}
            </button>
          ))}
        </nav>
        <div class="history">
          <button type="button" disabled={!overview.undo} onClick={() => void store.undo()}>
            Undo
          </button>
          <button type="button" disabled={!overview.redo} onClick={() => void store.redo()}>
            Redo
          </button>
          <button type="button" onClick={() => store.set({ dialog: "log" })}>
            Log
          </button>
          <button type="button" aria-label="Keys" onClick={() => store.set({ dialog: "keys" })}>
            ?
          </button>
        </div>
      </header>
      {gone && (
        <p class="gone" role="alert">
          The server does not answer. Nothing is lost: {waiting ? `${waiting} change waits for it.` : "all was saved."}{" "}
          Start it again with <code>dccm serve</code>.
        </p>
      )}
      {view !== "clusters" && <Filters />}
      <main>
        {view === "clusters" && <Clusters />}
        {view === "map" && <EmbeddingMap />}
        {view !== "clusters" && <Grid />}
      </main>
      <Selection />
      <div class={`toast${toast?.bad ? " bad" : ""}`} role="status" aria-live="polite" hidden={!toast}>
        {toast?.text}
        {toast?.offer && (
          <button type="button" onClick={toast.offer.act}>
            {toast.offer.label}
          </button>
        )}
      </div>
      {over && <p class="drop">Drop an image to see what is like it</p>}
      <Lightbox />
      <Dialogs />
    </div>
  );
}

async function begin(): Promise<void> {
  store.fromAddress();
  for (;;) {
    try {
      const [run, overview] = await Promise.all([api.getRun(), api.getOverview()]);
      document.title = `${run.name} – dccm gallery`;
      store.set({ run, overview, failed: null });
      break;
    } catch (error) {
      store.set({ failed: (error as Error).message });
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
  void store.loadRows();
  void store.watch();
}

window.addEventListener("hashchange", () => {
  store.fromAddress();
  void store.loadRows();
});
window.addEventListener("beforeunload", (event) => {
  if (store.state.waiting) event.preventDefault();
});
const root = document.getElementById("app")!;
root.textContent = "";
render(<App />, root);
void begin();
