"""How far a run is; together with the weights it decides everything that follows."""

from collections import Counter
from dataclasses import dataclass, field

from dccm.documents import filled
from dccm.training import collapse
from dccm.training.collapse import Health
from dccm.training.progress import Record


@dataclass
class Position:
    """The place of a run, and what it has added up since its epoch began."""

    epoch: int = 0
    batch: int = 0
    images: int = 0
    """Images in all updates so far."""
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    """Losses and counts of the epoch under way."""
    updates: dict[str, int] = field(default_factory=dict)
    """How many updates had each of the losses."""
    cluster_sizes: list[int] = field(default_factory=list)
    history: list[Record] = field(default_factory=list)

    def add_losses(self, losses: dict[str, float], counts: Counter[str]) -> None:
        """Take in the losses of a large batch, each summed over its updates."""
        for name, loss in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + loss
        self.updates = dict(counts + Counter(self.updates))

    def add_clusters(self, sizes: list[int], confident: float, linked: float) -> None:
        """Take in the state of the clusters after a large batch."""
        known = self.cluster_sizes or [0] * len(sizes)
        self.cluster_sizes = [old + new for old, new in zip(known, sizes, strict=True)]
        self.sums["confident"] = self.sums.get("confident", 0.0) + confident
        self.sums["linked"] = self.sums.get("linked", 0.0) + linked

    def means(self) -> dict[str, float]:
        """Mean losses and shares of the epoch so far."""
        values = {name: self.sums[name] / count for name, count in self.updates.items()}
        if self.cluster_sizes:
            values["confident_share"] = self.sums["confident"] / sum(self.cluster_sizes)
            values["linked_share"] = self.sums["linked"] / max(1, self.batch)
        return values

    def close_epoch(self, images: int) -> Record:
        """Write the epoch's record into the history and begin the next one.

        Args:
            images: In the data set.
        """
        means = self.means()
        record: Record = {"epoch": self.epoch + 1, "passes": self.images / images} | means
        if self.cluster_sizes:
            health = Health(self.cluster_sizes, means["confident_share"], means["linked_share"])
            record |= health.record() | {"warnings": collapse.warnings(health, self.epoch + 1)}
        self.history.append(record)
        self.epoch += 1
        self.batch, self.sums, self.updates, self.cluster_sizes = 0, {}, {}, []
        return record


def position_from(document: object) -> Position:
    """The place that a document describes; `ValueError` says what is wrong with it."""
    position = filled(Position, document)
    if min(position.epoch, position.batch, position.images, position.seconds, *position.cluster_sizes, 0) < 0:
        raise ValueError("a count below 0")
    if position.updates and not min(position.updates.values()) > 0:
        raise ValueError("updates must count from 1 up")
    missing = set(position.updates) | ({"confident", "linked"} if position.cluster_sizes else set())
    if not missing <= set(position.sums):
        raise ValueError("sums lacks " + ", ".join(sorted(missing - set(position.sums))))
    return position
