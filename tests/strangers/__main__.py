"""Harmed run directories and results, as many as wanted: `python -m tests.strangers --first 0 --count 1000 [name ...]`.

Each has a seed, and what was harmed in it is printed where a command ended in anything but a sentence.
"""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.strangers import results as of_results
from tests.strangers.mutations import READS
from tests.strangers.test_results import outcome as outcome_of_results
from tests.strangers.test_strangers import make_sound, outcome


def main() -> int:
    """Try one directory after the other; 1 if a command ended in anything but a sentence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*", default=[*READS, *of_results.READS])
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--count", type=int, default=1000, help="for each command")
    parser.add_argument("--minutes", type=float, default=60, help="after which to stop, all commands together")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    end, wrong = time.monotonic() + 60 * asked.minutes, 0
    with tempfile.TemporaryDirectory() as folder:
        runs, results = Path(folder) / "runs", Path(folder) / "results"
        runs.mkdir()
        results.mkdir()
        sound = {"run": make_sound(runs), "results": of_results.make_sound(results)}
        for number, command in enumerate(asked.commands, start=1):
            share = time.monotonic() + (end - time.monotonic()) / (len(asked.commands) - number + 1)
            kind = "run" if command in READS else "results"
            wrong += _try(command, sound[kind], range(asked.first, asked.first + asked.count), share)
    return int(bool(wrong))


def _try(command: str, sound: Path, seeds: range, end: float) -> int:
    tried = wrong = 0
    for seed in seeds:
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as place:
            found = (outcome if command in READS else outcome_of_results)(command, sound, Path(place), seed)
        tried, wrong = tried + 1, wrong + bool(found)
        if found:
            print(f"{command}: {found}", flush=True)
    print(f"{command}: seeds {seeds.start} to {seeds.start + tried - 1}, {wrong} without a sentence", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
