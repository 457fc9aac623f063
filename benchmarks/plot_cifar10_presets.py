"""Draw the curves of `benchmarks.cifar10_presets`, and print them as the tables of docs/lab/presets_on_cifar10.md.

python -m benchmarks.plot_cifar10_presets
"""

import json
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.cifar10_presets import RESULTS

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FIGURE = Path(__file__).parent.parent / "docs" / "images" / "cifar10_presets.svg"
PANELS = {"acc": "ACC", "nmi": "NMI", "ari": "ARI", "confident_share": "confident share", "clusters": "clusters used"}


def main() -> None:
    """Write the figure and print the tables."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    figure, axes = plt.subplots(1, len(PANELS), figsize=(15, 3.2), layout="constrained")
    for axis, (key, title) in zip(axes, PANELS.items()):
        for result in results:
            points = result["curve"]
            axis.plot([point["passes"] for point in points], [point[key] for point in points], label=result["variant"])
        axis.set(title=title, xlabel="gradient passes", ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].axhline(0.229, color="grey", linestyle=":", label="k-means (the paper's Table 2)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})
    for result in results:
        print(table(result))


def table(result: dict[str, Any]) -> str:
    """One variant as a Markdown table; the last row is of all 60,000 images, if the run went to its end."""
    rows = [f"**{result['variant']}**", "", "| passes | " + " | ".join(PANELS.values()) + " |", "|---" * 6 + "|"]
    final = [result["final"]] if "final" in result else []
    for point in [*result["curve"], *final]:
        name = f"{point['passes']:.2f}" + (" (all images)" if point in final else "")
        cells = [f"{point[key]:.3f}" for key in ("acc", "nmi", "ari", "confident_share")]
        rows.append(f"| {name} | " + " | ".join(cells) + f" | {point['clusters']} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
