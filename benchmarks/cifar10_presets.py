"""Curves of the presets `paper` and `released` on all of CIFAR-10, each with both learning rates.

python -m benchmarks.cifar10_presets cifar10.parquet "paper, lr 1e-3" --budget minutes:12

Labels are used for the curves only: on 5,000 fixed images while training (the clock stands still meanwhile), on all
60,000 at the end. Writes one file for each variant into benchmarks/results/cifar10_presets/.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.datasets import read
from dccm.arrays import ImageShape
from dccm.config import parse_budget
from dccm.data.images import ImageSet
from dccm.evaluation.metrics import scores
from dccm.machine import keep_memory
from dccm.methods.base import calibrate
from dccm.runs.config import make_config
from dccm.runs.model import Model
from dccm.training.loop import train
from dccm.training.progress import Progress, Stage

RESULTS = Path(__file__).parent / "results" / "cifar10_presets"
VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "paper, lr 1e-4": ("paper", {}),
    "paper, lr 1e-3": ("paper", {"learning_rate": 1e-3}),
    "released, lr 1e-4": ("released", {}),
    "released, lr 1e-3": ("released", {"learning_rate": 1e-3}),
    "paper with balanced norm, lr 1e-3": ("paper", {"learning_rate": 1e-3, "logit_norm": "balanced"}),
}
POINTS = 10
CURVE_IMAGES = 5000


class Curve:
    """Scores of a model while it trains, at equal distances of the run."""

    def __init__(self, model: Model, found: ImageSet) -> None:
        chosen = np.random.default_rng(0).permutation(len(found.images))[:CURVE_IMAGES]
        self.model, self.images, self.labels = model, found.images[chosen], found.labels[chosen]  # type: ignore[index]
        self.points: list[dict[str, Any]] = []

    def __call__(self, progress: Progress | Stage) -> None:
        """Add a point when it is time for the next; the model's own state stays as it was."""
        assert isinstance(progress, Progress)
        if progress.done < (len(self.points) + 1) / POINTS:
            return
        state = {name: value.clone() for name, value in self.model.method.state_dict().items()}
        point = measured(self.model, self.images, self.labels)
        self.model.method.load_state_dict(state)
        place = {"done": progress.done, "passes": progress.passes, "linked_share": progress.means["linked_share"]}
        self.points.append(place | point)
        print(json.dumps(self.points[-1]), flush=True)


def measured(model: Model, images: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Scores, confident share and clusters in use on these images, with their own population statistics."""
    calibrate(model.learner, model.loader(images))
    probabilities = model.predict_proba(images)
    predicted = probabilities.argmax(axis=1)
    shares = {
        "confident_share": float((probabilities.max(axis=1) >= 0.9).mean()),
        "clusters": len(np.unique(predicted)),
    }
    return {name: value for name, value in scores(labels, predicted).items() if name in ("acc", "nmi", "ari")} | shares


def curve_of(found: ImageSet, preset: str, overrides: dict[str, object], budget: str) -> dict[str, Any]:
    """Train one variant for so long, and score it on everything at the end."""
    settings = overrides | {"critic_positions": 16} | parse_budget(budget)
    config = make_config("dccm", preset, "cifar10", settings)
    height, width, channels = found.images.shape[1:]
    model = Model.untrained(ImageShape(channels, height, width), config)
    curve = Curve(model, found)
    history = train(model.learner, model.loader(found.images), config.training, on_progress=curve)
    final = {"passes": history[-1]["passes"]} | measured(model, found.images, found.labels)  # type: ignore[arg-type]
    return {"settings": settings, "curve": curve.points, "final": final, "last epoch": history[-1]}


def main() -> None:
    """Run the variants and write what they gave."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("variants", nargs="*", default=list(VARIANTS))
    parser.add_argument("--budget", default="minutes:12")
    arguments = parser.parse_args()
    keep_memory()
    found = read(arguments.source)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in arguments.variants:
        print(name, torch.get_num_threads(), "threads", flush=True)
        preset, overrides = VARIANTS[name]
        result = {"variant": name, "threads": torch.get_num_threads()}
        result |= curve_of(found, preset, overrides, arguments.budget)
        print(json.dumps(result["final"]), flush=True)
        path = RESULTS / (name.replace(", ", "_").replace(" ", "-") + ".json")
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
