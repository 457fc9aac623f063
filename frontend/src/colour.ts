/** A colour for each cluster, by its number: neighbours in number are far apart in hue. */

export function hue(cluster: number): number {
  return cluster < 0 ? 0 : (cluster * 137.508 + 20) % 360;
}

/** As numbers from 0 to 255, for the map. */
export function rgb(cluster: number, dark: boolean): [number, number, number] {
  if (cluster < 0) return [128, 128, 128];
  const lightness = (dark ? 0.66 : 0.44) + (cluster % 3) * (dark ? 0.05 : -0.05);
  return fromHsl(hue(cluster), 0.7, lightness);
}

export function css(cluster: number, dark: boolean): string {
  return `rgb(${rgb(cluster, dark).join(" ")})`;
}

function fromHsl(h: number, s: number, l: number): [number, number, number] {
  const part = (n: number) => {
    const k = (n + h / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

const asked = window.matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => asked.matches;
export const onScheme = (listener: () => void) => {
  asked.addEventListener("change", listener);
  return () => asked.removeEventListener("change", listener);
};
