"""What an improved run learnt from people, in numbers, as `result.json` holds it."""

from dataclasses import dataclass
from pathlib import Path

from dccm.documents import check, filled
from dccm.errors import counted


@dataclass(frozen=True)
class Improved:
    """The run that another goes on from, and what people had said of it by then."""

    improved_from: str
    """Its folder."""
    changes: int
    """Number of the last change that was learnt from."""
    corrected: int
    """Images that people moved or marked."""
    labels: int
    """Those of them that are known to be in a cluster."""
    left_out: int
    """Those of them that nothing is learnt from."""
    regrouped: int
    """Images of clusters that were merged or split, of which the cluster is learnt too."""
    gone: list[int]
    """Numbers without a cluster."""
    begun: list[int]
    """Clusters that the run had not found."""

    def __post_init__(self) -> None:
        counts = (self.changes, self.corrected, self.labels, self.left_out, self.regrouped, *self.gone, *self.begun)
        check(min(counts) >= 0, "a number of improved is below 0")

    @property
    def pairs(self) -> int:
        """Pairs of labelled images, each of which is linked or kept apart."""
        return self.labels * (self.labels - 1) // 2

    def sentence(self) -> str:
        """What the summary says of it."""
        said = [
            f"{counted(self.corrected, 'image')} corrected by hand: {counted(self.labels, 'label')}, "
            f"{counted(self.pairs, 'pair')}"
        ]
        said += [f"{counted(self.left_out, 'image')} left out"] if self.left_out else []
        said += [f"{counted(self.regrouped, 'image')} of merged or split clusters"] if self.regrouped else []
        said += [f"{counted(len(self.begun), 'new cluster')}"] if self.begun else []
        return f"Improved from {Path(self.improved_from).name}: {'; '.join(said)}."


def improved_from(stored: object) -> Improved:
    """What `result.json` says; `ValueError` if that makes no sense."""
    return filled(Improved, stored)
