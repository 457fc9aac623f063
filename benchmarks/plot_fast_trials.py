"""Draw the trials of preset `fast` on CIFAR-10: docs/images/fast_trials.svg.

python -m benchmarks.plot_fast_trials
"""

import json
from pathlib import Path

from matplotlib import pyplot

HERE = Path(__file__).parent


def main() -> None:
    """ACC and NMI of each trial against gradient passes."""
    trials = json.loads((HERE / "results" / "fast_trials.json").read_text())
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained", sharex=True)
    for trial in trials:
        passes = [point["passes"] for point in trial["points"]]
        for panel, score in zip(axes, ("acc", "nmi"), strict=True):
            panel.plot(
                passes, [point[score] for point in trial["points"]], marker="o", markersize=3, label=trial["name"]
            )
            panel.set(title=score.upper(), xlabel="gradient passes")
            panel.grid(alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(HERE.parent / "docs" / "images" / "fast_trials.svg")


if __name__ == "__main__":
    main()
