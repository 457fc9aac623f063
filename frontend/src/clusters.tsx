import { useRef } from "preact/hooks";
import { css, isDark } from "./colour";
import { Picture } from "./picture";
import * as store from "./store";
import { useStore } from "./store";
import type { Cluster } from "./api";

/** All clusters at a glance; those with a tick are merged, split or named together. */
export function Clusters() {
  const { overview, chosenClusters } = useStore();
  const list = useRef<HTMLUListElement>(null);
  if (!overview) return <p class="empty loading">Looking …</p>;

  function toggle(id: number) {
    const chosen = new Set(store.state.chosenClusters);
    if (chosen.has(id)) chosen.delete(id);
    else chosen.add(id);
    store.set({ chosenClusters: chosen });
  }

  /** Arrow keys go from card to card; the cards of a row have the same top. */
  function onKey(event: KeyboardEvent) {
    const cards = [...list.current!.querySelectorAll<HTMLButtonElement>(".card .open")];
    const here = cards.indexOf(document.activeElement as HTMLButtonElement);
    if (here < 0) return;
    const top = cards[0]!.getBoundingClientRect().top;
    const columns = cards.findIndex((card) => card.getBoundingClientRect().top > top + 10);
    const line = columns < 0 ? cards.length : columns;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -line, ArrowDown: line };
    const id = Number(cards[here]!.dataset.id);
    if (event.key in steps) cards[Math.max(0, Math.min(cards.length - 1, here + steps[event.key]!))]!.focus();
    else if (event.key === "x" || event.key === " ") toggle(id);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  return (
    <ul class="cards" ref={list} onKeyDown={onKey} aria-label="Clusters">
      {overview.clusters.map((cluster) => (
        <Card key={cluster.id} cluster={cluster} chosen={chosenClusters.has(cluster.id)} toggle={toggle} />
      ))}
    </ul>
  );
}

interface Props {
  cluster: Cluster;
  chosen: boolean;
  toggle: (id: number) => void;
}

function Card({ cluster, chosen, toggle }: Props) {
  const { id, size, confidence, samples } = cluster;
  const title = store.title(id);
  return (
    <li class={`card${chosen ? " chosen" : ""}`}>
      <button
        type="button"
        class="open"
        data-id={id}
        aria-label={`Open ${title}, ${size} images`}
        onClick={() => store.show({ cluster: id, like: null }, "images")}
      >
        <span class="samples">
          {samples.slice(0, 8).map((row) => (
            <Picture key={row} row={row} alt="" />
          ))}
          {!size && <span class="none">no image</span>}
        </span>
      </button>
      <div class="about">
        <input
          type="checkbox"
          checked={chosen}
          disabled={id < 0}
          aria-label={`Select ${title}`}
          onChange={() => toggle(id)}
        />
        <span class="dot" style={{ background: css(id, isDark()) }} />
        <span class="name" title={title}>
          <bdi>{title}</bdi>
        </span>
        <span class="size">{size.toLocaleString("en")}</span>
        {confidence !== null && (
          <span class="confidence" title={`Mean confidence ${confidence.toFixed(3)}`}>
            {confidence.toFixed(2)}
          </span>
        )}
      </div>
    </li>
  );
}
