"""Draw the reliability diagrams of docs/confidence.md: docs/images/reliability.svg.

python -m benchmarks.plot_reliability
"""

import json
from pathlib import Path

from matplotlib import pyplot

HERE = Path(__file__).parent
pyplot.rcParams["svg.fonttype"] = "none"  # Text stays text.


def main() -> None:
    """Share of right images over confidence, raw and calibrated, for four sets."""
    sets = json.loads((HERE / "results" / "reliability.json").read_text())
    figure, axes = pyplot.subplots(1, len(sets), figsize=(12, 3.6), layout="constrained", sharey=True)
    for panel, found in zip(axes, sets, strict=True):
        panel.plot([0, 1], [0, 1], color="grey", linestyle=":", linewidth=1)
        for name, colour in (("raw", "tab:orange"), ("calibrated", "tab:blue")):
            confidences, right, images = zip(*found[name]["bins"], strict=True)
            sizes = [8 + 70 * (count / max(images)) ** 0.5 for count in images]
            label = f"{name}: {found[name]['error']:.3f}"
            panel.plot(confidences, right, color=colour, linewidth=1, alpha=0.6)
            panel.scatter(confidences, right, s=sizes, color=colour, label=label)
        panel.set(title=found["set"], xlabel="confidence", xlim=(0, 1.03), ylim=(0, 1.03))
        panel.legend(title="calibration error", frameon=False, fontsize=8, title_fontsize=8, loc="lower right")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share in the right cluster")
    figure.savefig(HERE.parent / "docs" / "images" / "reliability.svg")


if __name__ == "__main__":
    main()
