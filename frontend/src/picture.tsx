import { useState } from "preact/hooks";
import { state } from "./store";

interface Props {
  row: number;
  alt: string;
  full?: boolean;
}

/** One image, by number; where it cannot be read, a word stands in its place. */
export function Picture({ row, alt, full }: Props) {
  const { run } = state;
  const [broken, setBroken] = useState(-1);
  if (!run) return null;
  if (broken === row) {
    return (
      <span class="broken" role="img" aria-label={`${alt} (cannot be read)`}>
        not readable
      </span>
    );
  }
  return (
    <img
      src={`image/${run.checksum}/${row}/${full ? "full" : "thumb"}`}
      alt={alt}
      class={run.side <= 64 ? "pixels" : ""}
      decoding="async"
      draggable={false}
      onError={() => setBroken(row)}
    />
  );
}
