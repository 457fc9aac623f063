/** What each key does; the dialog behind "?" lists them. */

import * as store from "./store";
import { state } from "./store";

export const KEYS: [string, string][] = [
  ["1 / 2 / 3", "clusters, images, map"],
  ["/", "search in the paths"],
  ["← / → / ↑ / ↓", "go from image to image, or cluster to cluster"],
  ["Space / x", "select it, or let go of it"],
  ["Shift + arrows / Shift + click", "select all in between"],
  ["Ctrl + A", "select all images that are listed"],
  ["Enter", "open it"],
  ["m", "move the selected images"],
  ["n", "new cluster of the selected images"],
  ["w / o / c", "mark as wrong, as an outlier, clear the mark"],
  ["l", "images like the selected one"],
  ["j", "merge the selected clusters"],
  ["r", "rename the cluster"],
  ["s", "split the cluster"],
  ["u / Ctrl + Z", "undo"],
  ["y / Ctrl + Shift + Z", "redo"],
  ["h", "what was changed, by whom"],
  ["Shift + drag", "lasso on the map"],
  ["Esc", "let go of everything"],
  ["?", "this list"],
];

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLInputElement && ["text", "search", "number"].includes(target.type);

export function onKey(event: KeyboardEvent): void {
  if (state.dialog || state.open !== null) return;
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey) {
    if (isTyping(target)) return;
    if (event.key.toLowerCase() === "z") {
      void (event.shiftKey ? store.redo() : store.undo());
      event.preventDefault();
    }
    return;
  }
  if (event.altKey) return;
  if (isTyping(target) || target instanceof HTMLSelectElement) {
    if (event.key === "Escape") target.blur();
    return;
  }
  const act = ACTS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

const images = (act: (rows: number[]) => void) => () => {
  if (state.chosen.size) act([...state.chosen]);
  else store.say("Select images first: click them, or use the arrow keys and Space.");
};

/** The cluster that is meant: the selected one, or the one whose images are shown. */
export const meant = (): number | null => {
  const id = state.chosenClusters.size === 1 ? [...state.chosenClusters][0]! : state.filter.cluster;
  return state.view === "clusters" && !state.chosenClusters.size ? null : id;
};

const cluster = (dialog: "rename" | "split") => () => {
  const id = meant();
  if (id !== null && id >= 0) store.set({ dialog });
  else store.say("Select one cluster first: tick its box.");
};

const ACTS: Record<string, () => void> = {
  "1": () => store.go("clusters"),
  "2": () => store.go("images"),
  "3": () => store.go("map"),
  "/": () => document.getElementById("search")?.focus(),
  "?": () => store.set({ dialog: "keys" }),
  m: images(() => store.set({ dialog: "move" })),
  n: () => store.set({ dialog: "create" }),
  w: images((rows) => void store.mark(rows, "wrong")),
  o: images((rows) => void store.mark(rows, "outlier")),
  c: images((rows) => void store.mark(rows, "")),
  l: images((rows) => store.show({ like: rows[0]!, cluster: null }, state.view === "map" ? "map" : "images")),
  j: () => {
    if (state.chosenClusters.size > 1) void store.merge([...state.chosenClusters]);
    else store.say("Tick the boxes of at least two clusters to merge them.");
  },
  r: cluster("rename"),
  s: cluster("split"),
  u: () => void store.undo(),
  y: () => void store.redo(),
  h: () => store.set({ dialog: "log" }),
  Escape: () => store.set({ chosen: new Set(), chosenClusters: new Set(), lasso: null, toast: null }),
};
