"""How much memory an image costs while very many are prepared and trained on.

python -m benchmarks.million work-folder --images 1000000

Makes a folder of tiny PGM files, then lets a fresh process prepare and train on a small part and another one on all of
them; the difference of their largest resident memory, by the difference of the number of images, is the cost of one.
"Own memory" leaves out the pages of the mapped file, which the system takes back when it needs them. The preparation
itself is measured when the work folder holds no cache yet. Writes benchmarks/results/million.json.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

RESULT = Path(__file__).parent / "results" / "million.json"
SIDE = 8
FEW = 32_768
"""Two passes of the calibration, each as large as those of a million: what is constant must be the same."""
PROGRAM = """
import re, sys, threading, time
from pathlib import Path
from dccm.data.read import read_images
from dccm.runs.config import make_config
from dccm.runs.fitting import fit
source, cache, side, passes = sys.argv[1:]
peak = {"RssAnon": 0, "VmRSS": 0}
def watch():
    while True:
        text = Path("/proc/self/status").read_text()
        for name in peak:
            peak[name] = max(peak[name], 1024 * int(re.search(name + r":\\s+(\\d+)", text)[1]))
        time.sleep(0.02)
threading.Thread(target=watch, daemon=True).start()
found = read_images(Path(source), image_size=int(side), cache=Path(cache))
prepared = dict(peak)
settings = {"budget_passes": float(passes), "mini_batch": 64, "critic_positions": 4, "starts": 1}
fit(found.images, make_config("dccm", "fast", "", settings))
print(len(found.images), prepared["VmRSS"], prepared["RssAnon"], peak["VmRSS"], peak["RssAnon"])
"""
FIGURES = ("preparing", "preparing, own memory", "and training", "and training, own memory")


def make_files(folder: Path, count: int) -> None:
    """Tiny grey images, 1,000 in each folder."""
    random = np.random.default_rng(0)
    for start in range(0, count, 1000):
        place = folder / f"{start // 1000:04d}"
        place.mkdir(parents=True, exist_ok=True)
        images = random.integers(0, 256, (min(1000, count - start), SIDE, SIDE), dtype=np.uint8)
        for number, pixels in enumerate(images):
            (place / f"{number:03d}.pgm").write_bytes(b"P5 %d %d 255\n" % (SIDE, SIDE) + pixels.tobytes())


def measured(source: Path, cache: Path, images: int) -> list[int]:
    """Images, and the largest memory after preparing and after training, in all and own, of a fresh process."""
    passes = str(20_000 / images)  # As many updates whatever the number of images.
    command = [sys.executable, "-c", PROGRAM, str(source), str(cache), str(SIDE), passes]
    # The allocator grows in steps of 64 MB when it is told to keep memory, which would hide what is measured here.
    environment = os.environ | {"DCCM_KEEP_MEMORY": "0"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return [int(word) for word in done.stdout.split()]


def main() -> None:
    """Compare few images with many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--images", type=int, default=1_000_000)
    arguments = parser.parse_args()
    counts = {"few": FEW, "many": arguments.images}
    found = {}
    for name, count in counts.items():
        folder = arguments.work / f"tiny-{count}"
        if not folder.exists():
            make_files(folder, count)
        found[name] = measured(folder, arguments.work / "cache", count)
        print(name, found[name], flush=True)
    more = found["many"][0] - found["few"][0]
    growth = [(many - few) / more for many, few in zip(found["many"][1:], found["few"][1:])]
    result = {"images": found["many"][0]} | {f"bytes an image, {name}": value for name, value in zip(FIGURES, growth)}
    print(json.dumps(result, indent=1))
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
