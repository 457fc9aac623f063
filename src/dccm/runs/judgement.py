"""What a run is worth as far as that can be said without labels: the record that `judgement.json` holds."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from dccm.documents import check, filled, named_if_broken, read_json
from dccm.files import write_atomically

Sign = Literal["good", "mixed", "bad", "weak", "unknown"]
"""`weak` says little either way; `unknown` was not measured."""


@dataclass(frozen=True)
class Again:
    """How far another run on the same images agrees."""

    run: str
    """Name of its directory."""
    seed: int
    images: int
    """That both have."""
    ari: float
    """Agreement of pairs beyond chance, 1 if both are the same."""
    nmi: float
    found: list[float | None]
    """Of each cluster, how far the other run has it too, 0 to 1; None: it is empty."""


@dataclass(frozen=True)
class Judgement:
    """Measures of a run that need no label."""

    images: int
    """That were looked at."""
    sureness: float | None
    """How sure predictions are, 0 to 1; None: the method gives no probabilities."""
    balance: float | None
    """How evenly they are spread over the clusters, 0 to 1."""
    silhouette: float | None
    """Of the features, -1 to 1; None: there is but one cluster, or no feature."""
    silhouettes: list[float | None]
    """Of each cluster."""
    perturbed: int = 0
    """Images that were perturbed slightly."""
    unmoved: float | None = None
    """Share of them that kept their cluster; None: the images, or what makes vectors of them, were out of reach."""
    beyond_chance: float | None = None
    """The same, 0 by chance."""
    unmoved_of: list[float | None] = field(default_factory=list)
    """The share of each cluster."""
    again: list[Again] = field(default_factory=list)
    """Other runs on the same images."""

    @property
    def information(self) -> float | None:
        """Mutual information of image and cluster, over its largest value: high if both of these are."""
        if self.sureness is None or self.balance is None:
            return None
        return max(0.0, self.sureness + self.balance - 1)


class Measure(NamedTuple):
    """One measure in words."""

    name: str
    value: float | None
    sign: Sign
    says: str
    cannot: str
    """What it does not say."""


_CUTS: dict[str, tuple[float, float]] = {"perturbation": (0.6, 0.85), "seeds": (0.45, 0.7), "information": (0.3, 0.6)}
"""Below the first a measure is a bad sign, from the second a good one; see docs/judging.md."""


def measures(judgement: Judgement) -> list[Measure]:
    """All measures in words, those that order runs best first."""
    return [_steadiness(judgement), *_seeds(judgement), _information(judgement), _silhouette(judgement)]


def _sign(kind: str, value: float | None) -> Sign:
    if value is None:
        return "unknown"
    low, high = _CUTS[kind]
    return "bad" if value < low else "good" if value >= high else "mixed"


def _steadiness(judged: Judgement) -> Measure:
    says = "Not measured: the images were out of reach."
    if judged.unmoved is not None:
        says = (
            f"{100 * judged.unmoved:.1f} % of {judged.perturbed:,} images kept their cluster when they were slightly "
            "turned, moved, zoomed and brightened."
        )
    cannot = (
        "A cluster can be steady and still not be what you mean. Methods that learn from perturbed images are steady "
        "by training."
    )
    value = judged.beyond_chance
    return Measure("perturbation", value, _sign("perturbation", value), says, cannot)


def _seeds(judged: Judgement) -> list[Measure]:
    cannot = (
        "Where two runs differ, at least one is wrong; where they agree, both can make the same mistake. Clusters that "
        "both have are surer than the rest."
    )
    if not judged.again:
        return [Measure("seeds", None, "unknown", 'Not measured: "dccm judge RUN --again" makes another run.', cannot)]
    return [
        Measure(
            "seeds",
            other.ari,
            _sign("seeds", other.ari),
            f"Another run, {other.run} (seed {other.seed}), agrees by an ARI of {other.ari:.3f}.",
            cannot,
        )
        for other in judged.again
    ]


def _information(judged: Judgement) -> Measure:
    value = judged.information
    says = "Not measured: the method gives no probabilities."
    if judged.sureness is not None and judged.balance is not None and value is not None:
        says = (
            f"Predictions tell {100 * value:.0f} % of what they could: they are {100 * judged.sureness:.0f} % sure, "
            f"and spread over the clusters by {100 * judged.balance:.0f} %."
        )
    cannot = "It expects clusters of about equal size, and a network can be sure and wrong."
    return Measure("information", value, _sign("information", value), says, cannot)


def _silhouette(judged: Judgement) -> Measure:
    value = judged.silhouette
    says = "Not measured: it takes features, and at least two clusters."
    if value is not None:
        near = "clearly nearer" if value >= 0.25 else "a little nearer" if value >= 0.05 else "hardly nearer"
        says = f"On average, features are {near} to those of their own cluster than to those of the next one."
    cannot = (
        "It looks through the eyes of the method: a network that crushes all images into a few points scores high, "
        "right or wrong, and pixels score low. It does not tell good methods from bad ones; compare it between runs "
        "of one method only."
    )
    return Measure("silhouette", value, "unknown" if value is None else "weak", says, cannot)


class Trust(NamedTuple):
    """What all measures come to."""

    sign: Sign
    headline: str


_LOOK = "Whether they are the groups that you mean, only a look at their images can tell."


def trust(judgement: Judgement | None, warnings: int = 0) -> Trust:
    """One sentence on how far a run can be trusted.

    Args:
        judgement: None: nobody judged the run.
        warnings: Of the run itself, which weigh more than any measure.
    """
    signs = {measure.name: measure.sign for measure in measures(judgement)} if judgement else {}
    steady = [signs[name] for name in ("perturbation", "seeds") if signs.get(name, "unknown") != "unknown"]
    if not steady and not warnings:
        return Trust("unknown", f"These clusters were not judged yet. {_LOOK}")
    if warnings or "bad" in steady:
        why = "it has warnings" if warnings else "its clusters are not steady"
        return Trust("bad", f"Do not trust this run as it is: {why}. {_LOOK}")
    if "mixed" in steady or signs["information"] == "bad":
        return Trust("mixed", f"Trust this run in part: some clusters or images are unsure. {_LOOK}")
    so_far = "" if signs["seeds"] != "unknown" else ", as far as a single run can show"
    return Trust("good", f"The signs are good: the clusters are steady{so_far}. {_LOOK}")


def write_judgement(path: Path, judgement: Judgement) -> None:
    """Write `judgement.json`."""
    write_atomically(path, json.dumps(asdict(judgement), indent=1) + "\n")


def read_judgement(path: Path) -> Judgement | None:
    """What `judgement.json` says; None if nobody judged the run."""
    if not path.exists():
        return None
    with named_if_broken(path, 'delete it, and "dccm judge" writes it anew'):
        return judgement_from(read_json(path))


def judgement_from(document: object) -> Judgement:
    """The judgement that a JSON document describes; `ValueError` says what is wrong with it."""
    found = filled(Judgement, document)
    shares = [found.sureness, found.balance, found.unmoved, *found.unmoved_of]
    shares += [value for other in found.again for value in other.found]
    signed = [found.silhouette, found.beyond_chance, *found.silhouettes]
    signed += [value for other in found.again for value in (other.ari, other.nmi)]
    check(all(_within(value, 0) for value in shares), "a share outside 0 to 1")
    check(all(_within(value, -1) for value in signed), "a measure outside -1 to 1")
    counts = [found.images, found.perturbed, *(value for other in found.again for value in (other.seed, other.images))]
    check(min(counts) >= 0, "a count below 0")
    return found


def _within(value: float | None, low: float) -> bool:
    return value is None or (math.isfinite(value) and low - 1e-6 <= value <= 1 + 1e-6)
