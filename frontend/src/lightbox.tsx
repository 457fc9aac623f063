import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import type { Image } from "./api";
import { Modal } from "./dialog";
import { Picture } from "./picture";
import * as store from "./store";
import { useStore } from "./store";

/** One image at its full size, with what is most like it. */
export function Lightbox() {
  const { open, overview } = useStore();
  const [found, setFound] = useState<{ image: Image; near: Image[] } | null>(null);
  const [failed, setFailed] = useState("");
  const version = overview?.version;

  useEffect(() => {
    if (open === null) return;
    let current = true;
    setFailed("");
    api.getNeighbours(open).then(
      (answer) => current && setFound(answer),
      (error: Error) => current && setFailed(error.message),
    );
    return () => void (current = false);
  }, [open, version]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const act = { ArrowLeft: () => step(-1), ArrowRight: () => step(1) }[event.key];
      if (!act || store.state.open === null) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", onKey, true);
    return () => window.removeEventListener("keydown", onKey, true);
  }, []);

  if (open === null) return null;
  const known = found?.image[0] === open ? found : null;
  const [, path, cluster, sure, mark] = known?.image ?? [open, "", -1, null, ""];
  const rows = [open];
  return (
    <Modal title={path || `Image ${open}`} kind="lightbox" close={close}>
      <div class="stage">
        <button type="button" class="quiet" aria-label="Image before" onClick={() => step(-1)}>
          ‹
        </button>
        <Picture row={open} alt={path || `Image ${open}`} full />
        <button type="button" class="quiet" aria-label="Next image" onClick={() => step(1)}>
          ›
        </button>
      </div>
      <div class="facts">
        <span>{known ? store.title(cluster) : "…"}</span>
        {sure !== null && <span>confidence {sure.toFixed(3)}</span>}
        {mark && <span class="badge">{mark}</span>}
        <button type="button" onClick={() => then(() => store.set({ chosen: new Set(rows), dialog: "move" }))}>
          Move
        </button>
        <button type="button" aria-pressed={mark === "wrong"} onClick={() => toggle("wrong")}>
          Wrong
        </button>
        <button type="button" aria-pressed={mark === "outlier"} onClick={() => toggle("outlier")}>
          Outlier
        </button>
        <button type="button" onClick={() => then(() => store.show({ like: open, cluster: null }, "images"))}>
          Images like this
        </button>
      </div>
      <h3>Most like it</h3>
      {failed ? (
        <p class="hint">{failed}</p>
      ) : (
        <ul class="near">
          {(known?.near ?? []).map(([row, name, other]) => (
            <li key={row} class={other === cluster ? "" : "other"}>
              <button
                type="button"
                title={`${name}, ${store.title(other)}`}
                aria-label={`${name}, ${store.title(other)}`}
                onClick={() => store.set({ open: row })}
              >
                <Picture row={row} alt="" />
              </button>
            </li>
          ))}
        </ul>
      )}
    </Modal>
  );

  function toggle(said: "wrong" | "outlier") {
    void store.mark(rows, mark === said ? "" : said);
  }
}

const close = () => store.set({ open: null });

function then(act: () => void) {
  close();
  act();
}

/** The image before or behind this one, in the order of the grid. */
function step(by: number) {
  const rows = store.shown();
  if (!rows?.length) return;
  const place = rows.indexOf(store.state.open!);
  store.set({ open: rows[(place + by + rows.length) % rows.length]! });
}
