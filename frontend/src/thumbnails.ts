/** Small copies of images: many come with one answer, those last wished for first, and stay for a while. */

import * as api from "./api";
import { state } from "./store";

const AT_ONCE = 16; // Images of one request: few enough to be soon there if they have to be made first.
const BESIDE = 6; // Requests on their way.
const KEPT = 4000;
const AGAIN = 1000; // Milliseconds until a server that does not answer is asked again.

/** The address of an image; null: it cannot be read. */
type Known = string | null;
type Listener = (known: Known) => void;

const kept = new Map<number, Known>();
const wished = new Map<number, Set<Listener>>();
const asked = new Set<number>();
let requests = 0;
let timer = 0;

export const known = (row: number): Known | undefined => kept.get(row);

/** Ask for an image; returns how to take that back. */
export function wish(row: number, listener: Listener): () => void {
  const listeners = wished.get(row) ?? new Set();
  listeners.add(listener);
  wished.set(row, listeners);
  soon(0);
  return () => {
    listeners.delete(listener);
    if (!listeners.size && wished.get(row) === listeners) wished.delete(row);
  };
}

function soon(wait: number): void {
  timer ||= window.setTimeout(() => {
    timer = 0;
    while (requests < BESIDE) {
      const rows = [...wished.keys()].filter((row) => !asked.has(row)).slice(-AT_ONCE);
      if (!rows.length) return;
      void load(rows);
    }
  }, wait);
}

async function load(rows: number[]): Promise<void> {
  requests++;
  for (const row of rows) asked.add(row);
  let wait = 0;
  try {
    const found = await api.getThumbnails(state.run!.checksum, rows);
    rows.forEach((row, place) => arrived(row, found[place] ?? null));
  } catch (error) {
    if (error instanceof api.Refused) for (const row of rows) arrived(row, null);
    else wait = AGAIN;
  }
  for (const row of rows) asked.delete(row);
  requests--;
  if (wished.size) soon(wait);
}

function arrived(row: number, found: Known): void {
  kept.set(row, found);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
  const listeners = wished.get(row);
  wished.delete(row);
  for (const listener of listeners ?? []) listener(found);
}
