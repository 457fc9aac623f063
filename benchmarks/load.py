"""How training gives way to other programs: alone, and beside one busy process per core.

python -m benchmarks.load            # part of make bench
python -m benchmarks.load --check    # part of make bench-check

Two processes take turns on the same work: one has a thread per core, which waits as torch's OpenMP runtime lets it; in
the other, threads and how they wait are as the package sets them. Beside busy processes the fair share is 0.5. Each
figure is the median of several rounds. Writes benchmarks/results/load_<vectors>.json, named after the vectors of the
processor; the check asks for the bars below.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ALONE, BESIDE = "alone", "beside one busy process per core"
BARS = {f"as set / as it was, {ALONE}": 0.97, f"as set, {BESIDE} / {ALONE}": 0.4}
"""Smallest ratios that are good enough; each holds for every kind of images."""
WORK = {"digits": 600, "cifar10": 300}
"""Tables of the preset `fast`, and images of one epoch; so few that other work on the machine falls on all alike."""
_VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


class Contestant:
    """A process that trains one epoch whenever it is asked to.

    Args:
        variables: How its threads wait; None: as the package sets it.
    """

    def __init__(self, variables: dict[str, str] | None) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
        # The package leaves alone what was there before torch was loaded.
        first = "" if variables is None else "import torch; "
        settings = {} if variables is None else {"threads": "auto"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{first}from benchmarks.load import serve; serve({settings})"],
            env=environment | (variables or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, table: str) -> float:
        """How long one epoch took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(table, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def __enter__(self) -> "Contestant":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def serve(settings: dict[str, object]) -> None:
    """Train one epoch for each table's name that comes in; say how long it took.

    Args:
        settings: They win over the preset's.
    """
    from dccm.data.synthetic import bars
    from dccm.runs.config import make_config
    from dccm.runs.fitting import fit

    images = {
        "digits": bars(WORK["digits"], side=8, channels=1, classes=10).images,
        "cifar10": bars(WORK["cifar10"], side=32, channels=3, classes=10).images,
    }
    for table in map(str.strip, sys.stdin):
        config = make_config("dccm", "fast", table, {"epochs": 1, "starts": 1, "uses": 1} | settings)
        started = time.monotonic()
        fit(images[table], config)
        print(time.monotonic() - started, flush=True)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that compute without end."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rates(contestants: dict[str, Contestant], table: str, rounds: int) -> dict[str, float]:
    """Images per second of each contestant, alone and beside busy processes, in turns."""
    times: dict[str, list[float]] = {}
    for number in range(rounds + 1):  # The first round only warms up.
        for state, others in ((ALONE, 0), (BESIDE, os.cpu_count() or 1)):
            with busy_processes(others):
                for name, contestant in contestants.items():
                    seconds = contestant.seconds(table)
                    print(f"{table}, {name}, {state}: {seconds:.2f} s", file=sys.stderr, flush=True)
                    if number:
                        times.setdefault(f"{name}, {state}", []).append(seconds)
    return {name: WORK[table] / statistics.median(values) for name, values in times.items()}


def ratios(found: dict[str, float]) -> dict[str, float]:
    """What waiting politely costs alone, and what is left of each beside busy processes."""
    return {
        f"as set / as it was, {ALONE}": found[f"as set, {ALONE}"] / found[f"as it was, {ALONE}"],
        **{
            f"{name}, {BESIDE} / {ALONE}": found[f"{name}, {BESIDE}"] / found[f"{name}, {ALONE}"]
            for name in _names(found)
        },
    }


def _names(found: dict[str, float]) -> list[str]:
    return [name.removesuffix(f", {ALONE}") for name in found if name.endswith(f", {ALONE}")]


def measured(rounds: int, variables: dict[str, dict[str, str] | None]) -> dict[str, float]:
    """All rates and ratios, with the kind of images before each name."""
    rows: dict[str, float] = {}
    with ExitStack() as stack:
        contestants = {name: stack.enter_context(Contestant(given)) for name, given in variables.items()}
        for table in WORK:
            found = rates(contestants, table, rounds)
            rows |= {f"{table}, images/s {name}": rate for name, rate in found.items()}
            rows |= {f"{table}, {name}": ratio for name, ratio in ratios(found).items()}
    return rows


def missed(rows: dict[str, float]) -> list[str]:
    """The bars that were not reached."""
    return [
        f"{table}, {name}: {rows[f'{table}, {name}']:.3f}, must be at least {bar}"
        for table in WORK
        for name, bar in BARS.items()
        if rows[f"{table}, {name}"] < bar
    ]


def _pairs(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split(","))


def main() -> None:
    """Measure, print; write it down, or hold it against the bars."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--also", type=_pairs, nargs="*", default=[], metavar="NAME=VALUE,...", help="more variables to try"
    )
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--check", action="store_true", help="hold it against the bars instead of writing it")
    arguments = parser.parse_args()
    from benchmarks.timing import busy, processor

    if busy() and not arguments.force:
        sys.exit(busy() + " Wait until it is idle, or give --force.")
    more = {" ".join(f"{key}={value}" for key, value in given.items()): given for given in arguments.also}
    rows = measured(arguments.rounds, {"as it was": {}, "as set": None} | more)
    for name, value in rows.items():
        print(f"{name:64s} {value:10.3f}")
    if not arguments.check and not more:
        machine, vectors = processor()
        (RESULTS / f"load_{vectors}.json").write_text(json.dumps(machine | rows, indent=1) + "\n")
    sys.exit("Bars that were missed:\n" + "\n".join(missed(rows)) if missed(rows) else 0)


if __name__ == "__main__":
    main()
