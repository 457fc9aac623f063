/** What the server is asked for. Addresses are relative: the page's own address holds the token. */

export type Mark = "" | "wrong" | "outlier";

export interface Run {
  name: string;
  method: string;
  images: number;
  side: number;
  checksum: string;
  who: string;
  embedding: boolean;
}

export interface Cluster {
  id: number;
  name: string;
  size: number;
  confidence: number | null;
  samples: number[];
}

export interface Entry {
  number: number;
  time: string;
  who: string;
  kind: string;
  images: number;
  cluster: number;
  clusters: number[];
  name: string;
  mark: Mark;
  change: number;
}

export interface Overview {
  version: number;
  clusters: Cluster[];
  images: number;
  marks: Record<Mark, number>;
  undo: Entry | null;
  redo: Entry | null;
}

/** Row, path, cluster, confidence, mark. */
export type Image = [number, string, number, number | null, Mark];

export interface Filter {
  cluster: number | null;
  text: string;
  low: number;
  high: number;
  mark: Mark | null;
  order: "sure" | "unsure" | "path";
  like: number | null;
}

export const NO_FILTER: Filter = { cluster: null, text: "", low: 0, high: 1, mark: null, order: "sure", like: null };

/** The server understood, and refuses. */
export class Refused extends Error {}

/** The server did not answer at all. */
export class Gone extends Error {}

async function ask(path: string, init?: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "omit", ...init });
  } catch (error) {
    if (init?.signal?.aborted) throw error;
    throw new Gone("The server does not answer.");
  }
  if (answer.ok) return answer;
  if (answer.status === 503) throw new Gone("The server is busy.");
  const text = await answer.text();
  let reason = text;
  try {
    reason = (JSON.parse(text) as { error: string }).error;
  } catch {
    // A refusal of the guard is plain text.
  }
  throw new Refused(reason || `The server answered ${answer.status}.`);
}

const json = async <T>(path: string, init?: RequestInit) => (await ask(path, init)).json() as Promise<T>;
const numbers = async (path: string, init?: RequestInit) => new Int32Array(await (await ask(path, init)).arrayBuffer());

function query(filter: Filter): string {
  const asked = new URLSearchParams();
  if (filter.cluster !== null) asked.set("cluster", String(filter.cluster));
  if (filter.text) asked.set("text", filter.text);
  if (filter.low > 0) asked.set("low", String(filter.low));
  if (filter.high < 1) asked.set("high", String(filter.high));
  if (filter.mark !== null) asked.set("mark", filter.mark);
  if (filter.like !== null) asked.set("like", String(filter.like));
  asked.set("order", filter.order);
  return asked.toString();
}

export const getRun = () => json<Run>("api/run");
export const getOverview = () => json<Overview>("api/clusters");
export const getVersion = () => json<{ version: number; map: "pca" | "tsne" }>("api/version");
export const getLog = () => json<Entry[]>("api/log");
export const getRows = (filter: Filter, signal: AbortSignal) => numbers(`api/rows?${query(filter)}`, { signal });
export const getImages = (rows: number[]) =>
  json<{ version: number; images: Image[] }>(`api/images?rows=${rows.join(",")}`);
/** Addresses that hold the images themselves; null: one cannot be read. They stay the same, so the browser keeps them. */
export const getThumbnails = (checksum: string, rows: number[]) =>
  json<(string | null)[]>(`thumbnails/${checksum}?rows=${rows.join(",")}`, { cache: "default" });
export const getNeighbours = (row: number) => json<{ image: Image; near: Image[] }>(`api/image/${row}`);
export const getMap = async () => new Float32Array(await (await ask("api/map")).arrayBuffer());
export const getPoints = () => numbers("api/points");
export const findLike = (file: Blob) => numbers("api/example", { method: "POST", body: file });

const post = <T>(path: string, content: object) =>
  json<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(content),
  });

export interface Done {
  version: number;
  cluster?: number;
  clusters?: number[];
}

/** A word of our own for each change: when an answer is lost and we ask again, it is not made twice. */
const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("");

/** Make a change; while the server does not answer it is offered again and again. */
export async function change(path: "api/changes" | "api/split", content: object, waiting: () => void): Promise<Done> {
  const keyed = { ...content, key: newKey() };
  for (;;) {
    try {
      return await post<Done>(path, keyed);
    } catch (error) {
      if (!(error instanceof Gone)) throw error;
      waiting();
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
  }
}
