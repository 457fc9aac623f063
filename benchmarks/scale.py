"""What larger sets would cost: arithmetic from few measured figures; no run stands behind its tables.

python -m benchmarks.scale

Prints the tables of docs/scale.md.
"""

from dataclasses import dataclass

PARAMETERS = 732_255
"""Of `fast` for 96 pixels with ten clusters, its critic among them."""
STATE_BYTES = 2_933_756
"""Of its weights and buffers."""
OPTIMIZER_BYTES = 4 * PARAMETERS
"""RMSprop keeps one number for each."""
PIXELS = 96 * 96 * 3
NAME_BYTES = 97
"""Of memory for an image while it is prepared: benchmarks/results/million.json."""
DECODED = 3_400
"""JPEG files of 96 pixels that a core decodes a second: the lowest of several trials."""
CORES = 8
"""For each GPU: assumed."""
TRAINED = 20_000
"""Images that a GPU learns from a second: assumed, and not measured."""
WIRE = 1.25e9
"""Bytes a second between machines, 10 Gbit/s: assumed."""
MESSAGE = 1e-4
"""Seconds that a message takes however small it is: assumed."""
MESSAGES = 10
"""Of a step, most of them for batch norm: as many as convolutions, there and back."""


@dataclass(frozen=True)
class Step:
    """One mini-batch on several GPUs."""

    gpus: int
    each: int
    """Images of it on each GPU."""

    @property
    def computing(self) -> float:
        """Seconds."""
        return self.each / TRAINED

    @property
    def sending(self) -> float:
        """Seconds for gradients around a ring, and for the messages of batch norm."""
        if self.gpus == 1:
            return 0.0
        return 2 * (self.gpus - 1) / self.gpus * 4 * PARAMETERS / WIRE + MESSAGES * MESSAGE

    @property
    def useful(self) -> float:
        """Share of the time in which it computes."""
        return self.computing / (self.computing + self.sending)

    def pass_seconds(self, images: float) -> float:
        """All images once."""
        return images / (self.gpus * self.each) * (self.computing + self.sending)


def graph_bytes(batch: int) -> int:
    """One matrix of all pairs of a large batch in single precision."""
    return 4 * batch * batch


def gathered_bytes(batch: int, clusters: int) -> int:
    """Predictions of a large batch, which every process gets."""
    return 4 * batch * clusters


def assigning_seconds(images: float, gpus: int) -> float:
    """All images once through a model; decoding is slower than the network."""
    return images / (gpus * CORES * DECODED)


def told(seconds: float) -> str:
    """As people say it."""
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:.0f} seconds"


def amount(size: float) -> str:
    """Bytes as people say them."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def table(header: list[str], rows: list[list[str]]) -> str:
    """As Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables() -> list[str]:
    """Those of the page, in its order."""
    batches = [
        [
            f"{batch:,}",
            amount(gathered_bytes(batch, 10)),
            amount(gathered_bytes(batch, 1000)),
            amount(graph_bytes(batch)),
        ]
        for batch in (1000, 4096, 16_384, 65_536)
    ]
    fleet = (1, 8, 64)
    steps = [
        [f"{gpus}", f"{gpus * each:,}", f"{Step(gpus, each).useful:.0%}"]
        + [told(Step(gpus, each).pass_seconds(images)) for images in (1e6, 1e8, 1e9)]
        for each in (64, 512)
        for gpus in fleet
    ]
    assigned = [[f"{gpus}", *(told(assigning_seconds(images, gpus)) for images in (1e6, 1e8, 1e9))] for gpus in fleet]
    kept = [
        [name, *(amount(each * images) for images in (1e6, 1e8, 1e9))]
        for name, each in (
            ("prepared images on disk, 96 x 96 in colour", PIXELS),
            ("memory while they are prepared, and for their names later", NAME_BYTES),
            ("`embedding.npy` of 64 numbers", 64 * 4),
            ("`assignments.csv`, 50 bytes a row", 50),
        )
    ]
    sets = ["1,000,000", "100,000,000", "1,000,000,000"]
    return [
        table(
            ["images of a large batch", "gathered, 10 clusters", "gathered, 1,000 clusters", "one matrix of pairs"],
            batches,
        ),
        table(["GPUs", "mini-batch", "computing", *sets], steps),
        table(["GPUs", *sets], assigned),
        table(["", *sets], kept),
    ]


if __name__ == "__main__":
    print("\n\n".join(tables()))
    print(f"\nCheckpoint: {amount(STATE_BYTES + OPTIMIZER_BYTES)}; gradient of a step: {amount(4 * PARAMETERS)}")
