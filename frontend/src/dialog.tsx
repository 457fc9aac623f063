import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import * as api from "./api";
import type { Entry } from "./api";
import { css, isDark } from "./colour";
import { KEYS } from "./keys";
import * as store from "./store";
import { useStore } from "./store";

/** The browser's own dialog: it keeps the focus inside and closes with Escape. */
export function Modal(props: { title: string; kind?: string; close: () => void; children: ComponentChildren }) {
  const frame = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = frame.current!;
    dialog.showModal();
    return () => dialog.close(); // The focus goes back to where it was.
  }, []);
  return (
    <dialog
      ref={frame}
      class={props.kind ?? "plain"}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault();
        props.close(); // At once: the next key may be one of the page.
      }}
      onClick={(event) => event.target === frame.current && props.close()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header>
        <h2>{props.title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={props.close}>
          ✕
        </button>
      </header>
      {props.children}
    </dialog>
  );
}

const close = () => store.set({ dialog: null });

export function Dialogs() {
  const { dialog, chosen, chosenClusters, filter } = useStore();
  const rows = [...chosen];
  const cluster = [...chosenClusters][0] ?? filter.cluster ?? -1;
  if (dialog === "keys") return <Keys />;
  if (dialog === "log") return <Log />;
  if (dialog === "move") {
    return (
      <Pick
        title={`Move ${rows.length.toLocaleString("en")} ${rows.length === 1 ? "image" : "images"} to`}
        pick={(id) => void store.move(rows, id)}
        make={(name) => void store.create(name, rows)}
        without={filter.cluster}
      />
    );
  }
  if (dialog === "create") {
    const words = rows.length ? `New cluster of ${rows.length.toLocaleString("en")} images` : "New cluster";
    return <Name title={words} first="" act={(name) => void store.create(name, rows)} />;
  }
  if (dialog === "rename") {
    const first = store.clusterOf(cluster)?.name ?? "";
    return (
      <Name title={`Name ${store.title(cluster)}`} first={first} act={(name) => void store.rename(cluster, name)} />
    );
  }
  if (dialog === "split") return <Split cluster={cluster} />;
  return null;
}

/** Choose a cluster by typing some of its name; a name that there is none of makes one. */
function Pick(props: { title: string; pick: (id: number) => void; make: (name: string) => void; without: number | null }) {
  const { overview } = useStore();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const wanted = text.trim().toLowerCase();
  const options = (overview?.clusters ?? [])
    .filter((cluster) => cluster.id !== props.without)
    .filter((cluster) => store.title(cluster.id).toLowerCase().includes(wanted) || String(cluster.id) === wanted)
    .map((cluster) => ({ id: cluster.id as number | null, label: store.title(cluster.id), size: cluster.size }));
  const known = options.some((option) => option.label.toLowerCase() === wanted);
  if (!known) options.push({ id: null, label: text.trim() ? `New cluster “${text.trim()}”` : "New cluster", size: -1 });
  const here = Math.min(at, options.length - 1);

  function take(place: number) {
    const option = options[place]!;
    close();
    if (option.id === null) props.make(text.trim());
    else props.pick(option.id);
  }

  function onKey(event: KeyboardEvent) {
    if (event.key === "ArrowDown") setAt(Math.min(options.length - 1, here + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, here - 1));
    else if (event.key === "Enter") take(here);
    else return;
    event.preventDefault();
  }

  return (
    <Modal title={props.title} close={close}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="options"
        aria-activedescendant={`option-${here}`}
        aria-label="Name of the cluster"
        placeholder="Type a name"
        autocomplete="off"
        maxLength={200}
        autofocus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <ul id="options" role="listbox" aria-label="Clusters">
        {options.map((option, place) => (
          <Option key={option.id} {...option} place={place} here={place === here} take={take} />
        ))}
      </ul>
    </Modal>
  );
}

interface OptionProps {
  id: number | null;
  label: string;
  size: number;
  place: number;
  here: boolean;
  take: (place: number) => void;
}

function Option({ id, label, size, place, here, take }: OptionProps) {
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (here) line.current!.scrollIntoView({ block: "nearest" });
  }, [here]);
  return (
    <li ref={line} id={`option-${place}`} role="option" aria-selected={here} onClick={() => take(place)}>
      {id === null ? <span class="dot new" /> : <span class="dot" style={{ background: css(id, isDark()) }} />}
      <bdi>{label}</bdi>
      {size >= 0 && <span class="size">{size.toLocaleString("en")}</span>}
    </li>
  );
}

/** A name, completed from those that there are. */
function Name(props: { title: string; first: string; act: (name: string) => void }) {
  const { overview } = useStore();
  const field = useRef<HTMLInputElement>(null);
  const names = [...new Set(overview?.clusters.map((cluster) => cluster.name).filter(Boolean))];
  useEffect(() => field.current!.select(), []);
  return (
    <Modal title={props.title} close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          close();
          props.act(field.current!.value.trim());
        }}
      >
        <input
          ref={field}
          type="text"
          list="names"
          aria-label="Name"
          autocomplete="off"
          maxLength={200}
          autofocus
          defaultValue={props.first}
        />
        <datalist id="names">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <button type="submit" class="strong">
          Save
        </button>
      </form>
    </Modal>
  );
}

function Split({ cluster }: { cluster: number }) {
  const size = store.clusterOf(cluster)?.size ?? 0;
  const most = Math.min(8, size);
  return (
    <Modal title={`Split ${store.title(cluster)} into`} close={close}>
      <div class="choices">
        {Array.from({ length: Math.max(0, most - 1) }, (_, place) => place + 2).map((parts) => (
          <button
            type="button"
            key={parts}
            autofocus={parts === 2}
            onClick={() => {
              close();
              void store.split(cluster, parts);
            }}
          >
            {parts} parts
          </button>
        ))}
        {most < 2 && <p>It has too few images to be split.</p>}
      </div>
      <p class="hint">By k-means in the embedding. The largest part keeps number and name; undo brings all back.</p>
    </Modal>
  );
}

function Keys() {
  return (
    <Modal title="Keys" close={close}>
      <dl class="keys">
        {KEYS.map(([keys, meaning]) => (
          <div key={keys}>
            <dt>
              {keys.split(" / ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}

function Log() {
  const { overview } = useStore();
  const [entries, setEntries] = useState<Entry[] | null>(null);
  useEffect(() => void api.getLog().then(setEntries, () => setEntries([])), [overview?.version]);
  return (
    <Modal title="What was changed" close={close}>
      {entries === null ? (
        <p class="empty loading">Looking …</p>
      ) : entries.length === 0 ? (
        <p class="empty">Nothing was changed so far.</p>
      ) : (
        <ol class="log" tabIndex={0} aria-label="Changes, the newest first">
          {entries.map((entry) => (
            <li key={entry.number}>
              <span class="number">{entry.number}</span>
              <bdi>{store.spoken(entry)}</bdi>
              <span class="when">
                {entry.who}, {new Date(entry.time).toLocaleString()}
              </span>
            </li>
          ))}
        </ol>
      )}
    </Modal>
  );
}
