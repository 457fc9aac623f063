/** What the page knows, in one place; whoever shows some of it is drawn again when it changes. */

import { useEffect, useState } from "preact/hooks";
import * as api from "./api";
import type { Cluster, Entry, Filter, Image, Mark, Overview, Run } from "./api";

export type View = "clusters" | "images" | "map";

export interface Toast {
  text: string;
  bad: boolean;
  /** A way on, offered as a button. */
  offer?: { label: string; act: () => void };
}

export interface State {
  run: Run | null;
  overview: Overview | null;
  view: View;
  filter: Filter;
  /** Images that the filter lets through, in order; null: they are on the way. */
  rows: Int32Array | null;
  /** Images within the lasso; they narrow the grid. */
  lasso: Set<number> | null;
  /** Name of the picture that was dropped in. */
  example: string | null;
  chosen: Set<number>;
  chosenClusters: Set<number>;
  details: Map<number, Image>;
  open: number | null;
  dialog: "keys" | "log" | "move" | "rename" | "split" | "create" | null;
  tile: number;
  toast: Toast | null;
  /** Which map the server has by now. */
  map: "pca" | "tsne";
  gone: boolean;
  waiting: number;
  failed: string | null;
}

export let state: State = {
  run: null,
  overview: null,
  view: "clusters",
  filter: api.NO_FILTER,
  rows: null,
  lasso: null,
  example: null,
  chosen: new Set(),
  chosenClusters: new Set(),
  details: new Map(),
  open: null,
  dialog: null,
  tile: 112,
  toast: null,
  map: "pca",
  gone: false,
  waiting: 0,
  failed: null,
};

const listeners = new Set<() => void>();

export function set(part: Partial<State>): void {
  state = { ...state, ...part };
  for (const listener of listeners) listener();
}

export function useStore(): State {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((count) => count + 1);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return state;
}

/* ---- where we are: kept in the address, so that a reload comes back to it ---- */

/** @param back Whether the browser's own "back" should lead to where we were. */
function toAddress(back = false): void {
  const { view, filter } = state;
  const said = new URLSearchParams({ view });
  for (const [name, value] of Object.entries(filter)) {
    if (value !== null && value !== api.NO_FILTER[name as keyof Filter]) said.set(name, String(value));
  }
  if (back) history.pushState(null, "", `#${said}`);
  else history.replaceState(null, "", `#${said}`);
}

export function fromAddress(): void {
  const said = new URLSearchParams(location.hash.slice(1));
  const number = (name: string) => (said.has(name) ? Number(said.get(name)) : null);
  const view = said.get("view");
  set({
    chosen: new Set(),
    lasso: null,
    view: view === "images" || view === "map" ? view : "clusters",
    filter: {
      ...api.NO_FILTER,
      cluster: number("cluster"),
      text: said.get("text") ?? "",
      low: number("low") ?? 0,
      high: number("high") ?? 1,
      mark: said.has("mark") ? (said.get("mark") as Mark) : null,
      order: (said.get("order") as Filter["order"] | null) ?? "sure",
      like: number("like"),
    },
  });
}

/* ---- reading ---- */

let asking = new AbortController();

/** Ask for the images anew; those shown stay until the new ones are there. */
export async function loadRows(keep = false): Promise<void> {
  if (state.example !== null) return;
  asking.abort();
  asking = new AbortController();
  const { signal } = asking;
  if (!keep) set({ rows: null });
  try {
    const rows = await api.getRows(state.filter, signal);
    if (!signal.aborted) set({ rows, failed: null });
  } catch (error) {
    if (!signal.aborted) set({ failed: (error as Error).message });
  }
}

let wanted: number[] = [];
let timer = 0;

let fresh = new Set<number>();

/** Details of an image; they come a moment later, many at once. Until then the old ones are shown. */
export function wish(row: number): void {
  if (fresh.has(row)) return;
  wanted.push(row);
  timer ||= window.setTimeout(loadDetails, 30);
}

async function loadDetails(): Promise<void> {
  timer = 0;
  const rows = [...new Set(wanted)].slice(-400);
  wanted = [];
  const before = fresh;
  try {
    const { images } = await api.getImages(rows);
    for (const image of images) {
      state.details.set(image[0], image);
      before.add(image[0]); // If somebody changed something meanwhile, that set is forgotten.
    }
    set({});
  } catch {
    // The banner says that the server is gone; what is on the screen asks again.
  }
}

export async function refresh(): Promise<void> {
  const overview = await api.getOverview();
  const here = new Set(overview.clusters.map((cluster) => cluster.id));
  const chosenClusters = new Set([...state.chosenClusters].filter((id) => here.has(id)));
  fresh = new Set();
  set({ overview, chosenClusters, gone: false });
  if (state.filter.cluster !== null && !here.has(state.filter.cluster)) show({ cluster: null }, "clusters");
  else await loadRows(true);
}

/** Notice what others change, and whether the server is there, once a second. */
export async function watch(): Promise<never> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, document.hidden ? 3000 : 1000));
    try {
      const { version, map } = await api.getVersion();
      if (map !== state.map) set({ map });
      if (state.gone || version !== state.overview?.version) await refresh();
    } catch (error) {
      if (!state.gone) set({ gone: true });
      if (error instanceof api.Refused) set({ failed: error.message });
    }
  }
}

/* ---- what people do ---- */

export function show(part: Partial<Filter>, view: View = state.view): void {
  const back = view !== state.view || (part.cluster ?? state.filter.cluster) !== state.filter.cluster;
  set({ filter: { ...state.filter, ...part }, view, lasso: null, example: null, failed: null });
  set({ chosen: new Set() }); // What cannot be seen must not be moved.
  toAddress(back);
  void loadRows();
}

export function go(view: View): void {
  const back = view !== state.view;
  set({ view });
  toAddress(back);
}

export function choose(rows: Iterable<number>): void {
  set({ chosen: new Set(rows) });
}

/** The images in the grid: those of the filter, within the lasso if there is one. */
let narrowed: { rows: Int32Array; lasso: Set<number>; result: Int32Array } | null = null;

export function shown(): Int32Array | null {
  const { rows, lasso } = state;
  if (!rows || !lasso) return rows;
  if (narrowed?.rows !== rows || narrowed.lasso !== lasso) {
    narrowed = { rows, lasso, result: rows.filter((row) => lasso.has(row)) };
  }
  return narrowed.result;
}

export const clusterOf = (id: number): Cluster | undefined =>
  state.overview?.clusters.find((cluster) => cluster.id === id);

export function title(id: number): string {
  const name = clusterOf(id)?.name;
  return name || (id < 0 ? "No cluster" : `Cluster ${id}`);
}

let fading = 0;

export function say(text: string, offer?: Toast["offer"], bad = false): void {
  set({ toast: { text, bad, ...(offer ? { offer } : {}) } });
  clearTimeout(fading);
  fading = window.setTimeout(() => set({ toast: null }), bad || offer ? 9000 : 5000);
}

/** Send a change, select what is to be selected behind it, then show what came of it. */
async function make(
  content: object,
  done: string,
  behind: (made: api.Done) => Partial<State> = () => ({}),
  path: "api/changes" | "api/split" = "api/changes",
) {
  let waits = false;
  const waiting = () => {
    if (!waits) set({ gone: true, waiting: state.waiting + 1 });
    waits = true;
  };
  try {
    const made = await api.change(path, content, waiting);
    set(behind(made));
    await refresh();
    say(done);
    return made;
  } catch (error) {
    say((error as Error).message, undefined, true);
    await refresh().catch(() => undefined);
    return null;
  } finally {
    if (waits) set({ waiting: state.waiting - 1 });
  }
}

const count = (number: number) => `${number.toLocaleString("en")} ${number === 1 ? "image" : "images"}`;

export async function move(rows: number[], cluster: number) {
  const done = `${count(rows.length)} moved to ${title(cluster)}.`;
  await make({ kind: "move", images: rows, cluster }, done, () => ({ chosen: new Set() }));
}

export async function create(name: string, rows: number[]) {
  const done = `${name || "A new cluster"} made, with ${count(rows.length)}.`;
  await make({ kind: "create", name, images: rows }, done, () => ({ chosen: new Set() }));
}

export async function merge(clusters: number[]) {
  const biggest = clusters.reduce((a, b) => ((clusterOf(b)?.size ?? 0) > (clusterOf(a)?.size ?? 0) ? b : a));
  const named = clusters.find((id) => clusterOf(id)?.name);
  const into = named ?? biggest;
  const done = `${clusters.length} clusters merged into ${title(into)}.`;
  await make({ kind: "merge", clusters, cluster: into }, done, () => ({ chosenClusters: new Set() }));
}

export async function rename(cluster: number, name: string) {
  const before = title(cluster);
  if (!(await make({ kind: "rename", cluster, name }, `${before} is now called ${name || `Cluster ${cluster}`}.`))) return;
  const twin = state.overview?.clusters.find((other) => other.id !== cluster && name && other.name === name);
  if (twin) {
    const act = () => void merge([twin.id, cluster]);
    say(`Another cluster of ${count(twin.size)} is called ${name}, too.`, { label: "Merge them", act });
  }
}

export async function split(cluster: number, parts: number) {
  const before = title(cluster);
  const behind = (made: api.Done) => ({ chosenClusters: new Set(made.clusters), view: "clusters" as const });
  await make({ cluster, parts }, `${before} split.`, behind, "api/split");
  toAddress();
}

export async function mark(rows: number[], said: Mark) {
  const what = said ? `marked as ${said === "wrong" ? "wrong" : "an outlier"}` : "without a mark now";
  await make({ kind: "mark", images: rows, mark: said }, `${count(rows.length)} ${what}.`);
}

export async function undo() {
  const entry = state.overview?.undo;
  if (entry) await make({ kind: "undo", change: entry.number }, `Taken back: ${spoken(entry)}.`);
  else say("There is nothing to undo.");
}

export async function redo() {
  const entry = state.overview?.redo;
  if (entry) await make({ kind: "redo", change: entry.number }, `Made again: ${spoken(entry)}.`);
  else say("There is nothing to redo.");
}

export async function dropped(file: File) {
  set({ rows: null, example: file.name, lasso: null, view: state.view === "clusters" ? "images" : state.view });
  say(`Looking for images like ${file.name} …`);
  try {
    set({ rows: await api.findLike(file) });
    say(`Most like ${file.name} first.`);
  } catch (error) {
    set({ example: null });
    say((error as Error).message, undefined, true);
    await loadRows();
  }
}

/** An entry of the log in a few words. */
export function spoken(entry: Entry): string {
  const cluster = entry.name || `cluster ${entry.cluster}`;
  const words: Record<string, string> = {
    move: `${count(entry.images)} moved to ${entry.cluster < 0 ? "no cluster" : `cluster ${entry.cluster}`}`,
    merge: `clusters ${entry.clusters.join(", ")} merged into ${entry.cluster}`,
    split: `cluster ${entry.cluster} split into ${[entry.cluster, ...entry.clusters].join(", ")}`,
    create: `${cluster} made with ${count(entry.images)}`,
    rename: `cluster ${entry.cluster} called ${entry.name || "by its number again"}`,
    mark: `${count(entry.images)} marked ${entry.mark || "as nothing odd"}`,
    undo: `change ${entry.change} taken back`,
    redo: `change ${entry.change} made again`,
  };
  return words[entry.kind] ?? entry.kind;
}
