"""Preparing JPEG files against a torch DataLoader that does the same with Pillow, in one run, taking turns.

python -m benchmarks.preparation work-folder --files 20000 --side 96

Makes the files (500 x 375, photo-like) in the work folder if they are not there yet. Both contestants decode every
file, crop and resize it, and leave all pixels in one array; both have two workers. Writes benchmarks/results/.
"""

import argparse
import json
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader, Dataset

from dccm.data.read import read_images

RESULT = Path(__file__).parent / "results" / "preparation.json"
SIZE = (500, 375)
WORKERS = 2


def photo(seed: int) -> Image.Image:
    """Colour noise at all scales, as strong as in photographs at each; its JPEG file has a photograph's size."""
    random = np.random.default_rng(seed)
    canvas = np.zeros((SIZE[1], SIZE[0], 3), dtype=np.float32)
    for octave in range(1, 9):
        cells = random.normal(0, 0.62**octave, (2**octave, 2**octave, 3)).astype(np.float32)
        layers = [Image.fromarray(cells[..., c]).resize(SIZE, Image.Resampling.BICUBIC) for c in range(3)]
        canvas += np.stack([np.asarray(layer) for layer in layers], axis=-1)
    return Image.fromarray((128 + 90 * canvas).clip(0, 255).astype(np.uint8))


def make_ten(folder: Path, start: int) -> None:
    """Ten files of one picture, moved, mirrored and compressed differently."""
    pixels = np.asarray(photo(start))
    for number in range(start, start + 10):
        path = folder / f"{number // 1000:03d}" / f"{number:06d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        moved = np.roll(pixels, (number * 37, number * 53), axis=(0, 1))[:, :: 1 if number % 2 else -1]
        Image.fromarray(np.ascontiguousarray(moved)).save(path, quality=85 + number % 10)


class Files(Dataset[torch.Tensor]):
    """The same work, written plainly."""

    def __init__(self, paths: list[Path], side: int) -> None:
        self.paths, self.side = paths, side

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, place: int) -> torch.Tensor:
        with Image.open(self.paths[place]) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
            small = ImageOps.fit(upright, (self.side, self.side), method=Image.Resampling.BICUBIC)
        return torch.from_numpy(np.array(small))


def by_loader(paths: list[Path], side: int) -> np.ndarray:
    """All files by a DataLoader with two workers."""
    loader = DataLoader(Files(paths, side), batch_size=256, num_workers=WORKERS)
    result = np.empty((len(paths), side, side, 3), dtype=np.uint8)
    start = 0
    for batch in loader:
        result[start : start + len(batch)] = batch.numpy()
        start += len(batch)
    return result


def by_dccm(folder: Path, side: int, cache: Path) -> np.ndarray:
    """All files by `dccm`, into an empty cache; writing it to the disk is included."""
    shutil.rmtree(cache, ignore_errors=True)
    return read_images(folder, image_size=side, cache=cache, workers=WORKERS).images


def main() -> None:
    """Let both take turns, and write the ratio of their medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--side", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    folder, side = arguments.work / f"jpeg-{arguments.files}", arguments.side
    if not folder.exists():
        with ProcessPoolExecutor(WORKERS) as pool:
            list(pool.map(partial(make_ten, folder), range(0, arguments.files, 10), chunksize=10))
    paths = sorted(folder.rglob("*.jpg"))
    seconds: dict[str, list[float]] = {"DataLoader": [], "dccm": []}
    for number in range(arguments.rounds):
        started = time.perf_counter()
        plain = by_loader(paths, side)
        seconds["DataLoader"].append(time.perf_counter() - started)
        started = time.perf_counter()
        ours = by_dccm(folder, side, arguments.work / "cache")
        seconds["dccm"].append(time.perf_counter() - started)
        print(number, {name: round(values[-1], 1) for name, values in seconds.items()}, flush=True)
    difference = float(np.mean([np.abs(a.astype(int) - b).mean() for a, b in zip(plain, ours)]))
    rates = {name: len(paths) / median(values) for name, values in seconds.items()}
    result = {
        "files": len(paths),
        "mean file size": sum(path.stat().st_size for path in paths[::100]) / len(paths[::100]),
        "side": side,
        "images per second": rates,
        "ratio": rates["dccm"] / rates["DataLoader"],
        "mean difference in grey levels": difference,
    }
    print(json.dumps(result, indent=1))
    RESULT.with_stem(f"preparation_{side}").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
