import { useLayoutEffect, useState } from "preact/hooks";
import { state } from "./store";
import { known, wish } from "./thumbnails";

interface Props {
  row: number;
  alt: string;
  full?: boolean;
}

/** One image, by number; where it cannot be read, a word stands in its place. */
export function Picture({ row, alt, full }: Props) {
  const { run } = state;
  const [broken, setBroken] = useState(-1);
  const [, draw] = useState(0);
  const source = full ? `image/${run!.checksum}/${row}/full` : known(row);
  useLayoutEffect(() => (source === undefined ? wish(row, () => draw((count) => count + 1)) : undefined), [row, source]);
  if (broken === row || source === null) {
    return (
      <span class="broken" role="img" aria-label={`${alt} (cannot be read)`}>
        not readable
      </span>
    );
  }
  return (
    <img
      src={source ?? EMPTY}
      alt={alt}
      class={run!.side <= 64 ? "pixels" : ""}
      decoding="async"
      draggable={false}
      onError={() => setBroken(row)}
    />
  );
}

/** What stands where an image is on its way. */
const EMPTY = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";
