"""Whether shards are assigned at the pace of those who do them, in little memory, and none is lost to kills.

python -m benchmarks.fleet work-folder --images 200000

Makes shards of tiny images, each called by a checksum of its pixels, and a model. Then:

- `pace`: some shards by one process and by two, which is to take less than 1 / 1.7 of the time; with `--engine ray` by
  one actor and by two. On a quiet machine alone.
- `kills`: all shards by two processes, whose command is killed three times on the way and begun again. Every image is
  then to have one row, which says what the model says of it alone, and no process is to take 2 GB.

Writes benchmarks/results/fleet.json.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np

from benchmarks.timing import RESULTS, busy

SIDE = 8
_OF_A_SHARD = 10_000
_FEW, _MORE = 2, 16
"""Shards of a run that is hardly more than its beginning, and by how many another one is longer."""
_KILLS = 3


def images_of(shard: int, count: int) -> np.ndarray:
    """The pixels of a shard, (N, 8, 8), which no other shard has."""
    return np.random.default_rng(shard).integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8)


def names_of(shard: int, images: np.ndarray) -> list[str]:
    """What its images are called: by their place and their pixels."""
    return [f"{shard:05}/{number:05}-{crc32(pixels):08x}.pgm" for number, pixels in enumerate(images)]


def sizes(images: int) -> Iterator[tuple[int, int]]:
    """Number and images of each shard."""
    for number, start in enumerate(range(0, images, _OF_A_SHARD)):
        yield number, min(_OF_A_SHARD, images - start)


def make_shards(folder: Path, images: int) -> None:
    """Parquet files of tiny images; those that are there stay."""
    import pyarrow
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    for number, count in sizes(images):
        path = folder / f"{number:05}.parquet"
        if path.exists():
            continue
        pixels = images_of(number, count)
        head = b"P5 %d %d 255\n" % (SIDE, SIDE)
        column = [{"bytes": head + one.tobytes(), "path": name} for one, name in zip(pixels, names_of(number, pixels))]
        parquet.write_table(pyarrow.table({"image": column}), path)


def make_model(folder: Path) -> Path:
    """A small network that learnt a little: what it says matters less than that it is a network."""
    from dccm.commands.cluster import cluster

    if not (folder / "result.json").exists():
        settings = {"device": "cpu", "mini_batch": 64, "critic_positions": 4, "starts": 1}
        cluster(images_of(10**6, 2000), 10, "dccm", output=folder, settings=settings, budget="passes:1", preset="fast")
    return folder


def command(model: Path, shards: Path, output: Path, engine: str, processes: int) -> list[str]:
    """What is typed."""
    words = ["predict", model, shards, "-o", output, "--engine", engine, "--processes", processes, "--device", "cpu"]
    return [sys.executable, "-m", "dccm", *map(str, words), "--workers", str(processes), "--quiet", "--json"]


def seconds(words: list[str]) -> float:
    """How long a command takes."""
    started = time.perf_counter()
    # One processor each, also where one process does all by itself.
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return time.perf_counter() - started


def pace(folder: Path, model: Path, engine: str) -> dict[str, object]:
    """Images per second of one and of two, without the time that it takes to begin."""
    small, large = folder / "few", folder / "some"
    make_shards(small, _FEW * _OF_A_SHARD)
    make_shards(large, (_FEW + _MORE) * _OF_A_SHARD)
    speeds = {}
    for count in (1, 2):
        outputs = [folder / f"pace-{engine}-{count}-{name}-{time.time_ns()}" for name in ("few", "some")]
        few, some = (
            seconds(command(model, shards, output, engine, count)) for shards, output in zip((small, large), outputs)
        )
        speeds[count] = _MORE * _OF_A_SHARD / (some - few)
    found: dict[str, object] = {"engine": engine, "busy": busy()}
    return found | {"one": round(speeds[1]), "two": round(speeds[2]), "ratio": round(speeds[2] / speeds[1], 2)}


def memory_of(process: "subprocess.Popen[bytes]") -> int:
    """Bytes of the largest of a process and all that it began, now."""
    most = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            group = int(path.read_text().rpartition(")")[2].split()[2])
            if group == process.pid:
                most = max(most, int((path.parent / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        except (OSError, IndexError, ValueError):
            continue  # It has just ended.
    return most


def kills(folder: Path, model: Path, images: int) -> dict[str, object]:
    """Assign all, killed on the way; what is there afterwards is checked image by image."""
    shards, output = folder / "all", folder / f"kills-{time.time_ns()}"
    make_shards(shards, images)
    words, total = command(model, shards, output, "processes", 2), len(list(sizes(images)))
    marks = [total * (number + 1) // (_KILLS + 1) for number in range(_KILLS)]
    most, killed, started = 0, 0, time.perf_counter()
    while True:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None:
            most = max(most, memory_of(process))
            if killed < _KILLS and len(list(output.glob("*.parquet"))) >= marks[killed]:
                os.kill(process.pid, signal.SIGKILL)  # It alone: what it began is to end by itself.
                process.wait()
                killed += 1
            time.sleep(0.2)
        if process.returncode != -signal.SIGKILL:
            break
    if process.returncode:
        raise SystemExit(f"The command ended with {process.returncode}.")
    took = time.perf_counter() - started
    checked = check(output, images)
    found: dict[str, object] = {"images": images, "kills": killed, "seconds": round(took)}
    return found | {"largest_process_mb": most // 2**20} | checked


def check(output: Path, images: int) -> dict[str, int]:
    """Compare the rows of all results with the images that were made."""
    from pyarrow import parquet

    found = {"rows": 0, "lost": 0, "doubled": 0, "strange": 0, "unassigned": 0}
    for number, count in sizes(images):
        wanted = names_of(number, images_of(number, count))
        table = parquet.read_table(output / f"{number:05}.parquet", columns=["path", "cluster"])
        paths = [path.removeprefix(f"{number:05}.parquet/") for path in table.column("path").to_pylist()]
        found["rows"] += len(paths)
        found["lost"] += len(set(wanted) - set(paths))
        found["doubled"] += len(paths) - len(set(paths))
        found["strange"] += len(set(paths) - set(wanted))
        found["unassigned"] += table.column("cluster").null_count
    return found


def main() -> None:
    """What is asked for, into the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--engine", choices=("processes", "ray"), default="processes")
    parser.add_argument("--only", choices=("pace", "kills"))
    chosen = parser.parse_args()
    model, path = make_model(chosen.folder / "model"), RESULTS / "fleet.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    if chosen.only != "kills":
        results[f"pace, {chosen.engine}"] = pace(chosen.folder, model, chosen.engine)
    if chosen.only != "pace":
        results[f"kills, {chosen.images}"] = kills(chosen.folder, model, chosen.images)
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
