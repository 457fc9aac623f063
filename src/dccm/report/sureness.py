"""The reliability diagram: how often images of a confidence are in the right cluster."""

from collections.abc import Sequence

from markupsafe import Markup

from dccm.errors import counted
from dccm.report import plots
from dccm.runs.surety import Surety

_NAMES = {"reliability": "calibrated", "reliability_raw": "raw"}


def reliability_chart(surety: Surety | None) -> Markup:
    """Draw the share of right images over the confidence; nothing without true labels.

    Confidences that hold their word lie on the diagonal. The larger a point, the more images it stands for.
    """
    if surety is None or not surety.reliability:
        return Markup("")
    frame = plots.Frame((0.0, 1.0), (0.0, 1.0))
    ticks = plots.ticks(0, 1)
    axes = frame.axes(ticks, ticks, "Confidence (0 to 1)", "Share in the right cluster")
    wanted = ["reliability"] + ["reliability_raw"] * (surety.temperature is not None)
    curves = [_curve(frame, number, _NAMES[name], getattr(surety, name)) for number, name in enumerate(wanted)]
    diagonal = Markup('<g class="even"><path d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/></g>').format(
        frame.x(0), frame.y(0), frame.x(1), frame.y(1)
    )
    summary = f"Reliability: calibration error {surety.scores['calibration_error']:.3f}"
    return plots.svg(summary, [axes, diagonal, *curves]) + _key(surety, len(wanted))


def _curve(frame: plots.Frame, number: int, name: str, bins: Sequence[Sequence[float]]) -> Markup:
    most = max(images for _, _, images in bins)
    point = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>')
    points = [
        point.format(
            frame.x(confidence),
            frame.y(right),
            2 + 5 * (images / most) ** 0.5,
            f"{name}: confidence {confidence:.3f}, right {right:.3f}, {counted(int(images), 'image')}",
        )
        for confidence, right, images in bins
    ]
    path = "L".join(f"{frame.x(confidence):.1f} {frame.y(right):.1f}" for confidence, right, _ in bins)
    return Markup('<g class="series-{}"><path d="M{}" stroke-dasharray="{}"/>{}</g>').format(
        number, path, plots.DASHES[number], Markup("").join(points)
    )


def _key(surety: Surety, curves: int) -> Markup:
    errors = [surety.scores["calibration_error"], surety.scores.get("calibration_error_raw", 0.0)]
    entry = Markup("<li>{}{}, error <b>{:.3f}</b></li>")
    entries = [
        entry.format(plots.swatch(f"series-{number}", plots.DASHES[number]), name, errors[number])
        for number, name in list(enumerate(_NAMES.values()))[:curves]
    ]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))
