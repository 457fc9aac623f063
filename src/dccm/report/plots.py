"""Charts as inline SVG: no script, no font, no host; their colours are those of the page's style sheet."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from dccm.errors import counted

_WIDTH, _HEIGHT = 480, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 468, 34, 232
"""The plot area inside the drawing."""
_COLOURS = 6
DASHES = ("none", "7 4", "2 3", "10 3 2 3")
"""Lines differ by more than colour, for print and for eyes that see fewer colours."""
_MOST_MARKERS = 12
"""Up to this many points, each one is marked."""
_MOST_LABELS = 12

Range = tuple[float, float]


class Tick(NamedTuple):
    """A place on an axis and what stands beside it."""

    value: float
    text: str


@dataclass(frozen=True)
class Frame:
    """The plot area and what its edges mean."""

    x_range: Range
    y_range: Range

    def x(self, value: float) -> float:
        """Where a value lies from left to right."""
        low, high = self.x_range
        return _LEFT + (value - low) / (high - low) * (_RIGHT - _LEFT)

    def y(self, value: float) -> float:
        """Where a value lies from top to bottom."""
        low, high = self.y_range
        return _BOTTOM - (value - low) / (high - low) * (_BOTTOM - _TOP)

    def axes(self, x_ticks: Iterable[Tick], y_ticks: Iterable[Tick], x_label: str, y_label: str) -> Markup:
        """Grid lines, the numbers beside them and the names of both axes."""
        grid = Markup('<line class="grid" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>')
        beside = Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>')
        below = Markup('<text class="{}" x="{:.1f}" y="{}" text-anchor="middle">{}</text>')
        parts = [grid.format(_LEFT, _RIGHT, y=self.y(tick.value)) for tick in y_ticks]
        parts += [beside.format(_LEFT - 8, self.y(tick.value) + 4.5, tick.text) for tick in y_ticks]
        parts += [below.format("tick", self.x(tick.value), _BOTTOM + 19, tick.text) for tick in x_ticks]
        parts.append(Markup('<line class="axis" x1="{}" x2="{}" y1="{y}" y2="{y}"/>').format(_LEFT, _RIGHT, y=_BOTTOM))
        parts.append(Markup('<text class="label" x="4" y="15">{}</text>').format(y_label))
        parts.append(below.format("label", (_LEFT + _RIGHT) / 2, _HEIGHT - 8, x_label))
        return Markup("").join(parts)


def line_chart(
    series: Mapping[str, Sequence[float]],
    epochs: Sequence[float],
    *,
    title: str,
    y_label: str,
    at_least: Range | None = None,
    x_label: str = "Epoch",
    marks: Mapping[str, float] | None = None,
) -> Markup:
    """Draw named values over the epochs, with a legend that also gives each last value, or that at the first mark.

    Args:
        series: Values by name, as many as there are epochs; those that are no finite number are left out.
        epochs: Number of each epoch, or of what else stands on the horizontal axis.
        title: What the chart shows, for those who cannot see it.
        y_label: Name and unit of the values.
        at_least: Values that the vertical axis reaches in any case.
        x_label: Name of the horizontal axis.
        marks: Places on it that are pointed out, by name.

    Returns:
        The drawing and its legend, or nothing when there is no value to draw.
    """
    drawn = {name: values for name, values in series.items() if any(map(math.isfinite, values))}
    if not drawn:
        return Markup("")
    finite = [value for values in drawn.values() for value in values if math.isfinite(value)]
    shown = [*finite, *(at_least or ())]
    y_ticks = ticks(min(shown), max(shown))
    frame = Frame(_widened(min(epochs), max(epochs)), (y_ticks[0].value, y_ticks[-1].value))
    lines = [_line(frame, number, name, epochs, values) for number, (name, values) in enumerate(drawn.items())]
    axes = frame.axes(_epoch_ticks(epochs), y_ticks, x_label, y_label)
    pointed = [_mark(frame, rank, name, place) for rank, (name, place) in enumerate((marks or {}).items())]
    summary = ", ".join([f"{title}: {', '.join(drawn)} over {len(epochs)} {x_label.lower()}s", *(marks or {})])
    last = epochs.index(next(iter(marks.values()))) if marks else len(epochs) - 1
    return svg(summary, [axes, *lines, *pointed]) + _legend({name: drawn[name][: last + 1] for name in drawn})


def bar_chart(sizes: Sequence[int], *, title: str) -> Markup:
    """Draw the number of images in each cluster, with a line where all would be if they were equal."""
    y_ticks = ticks(0, max(*sizes, 1), whole=True)
    frame = Frame((-0.5, len(sizes) - 0.5), (0, y_ticks[-1].value))
    bars = [
        _bar(frame, (number - 0.4, number + 0.4), size, f"Cluster {number}: {counted(size, 'image')}")
        for number, size in enumerate(sizes)
    ]
    step = _round_step(len(sizes) / _MOST_LABELS, whole=True)
    x_ticks = [Tick(number, str(number)) for number in range(0, len(sizes), int(step))]
    even = Markup('<line class="even" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"><title>{}</title></line>').format(
        _LEFT, _RIGHT, f"Even share: {sum(sizes) / len(sizes):,.1f} images", y=frame.y(sum(sizes) / len(sizes))
    )
    summary = f"{title}: {len(sizes)} clusters of {min(sizes):,} to {counted(max(sizes), 'image')}"
    key = Markup('<ul class="legend"><li>{}even share <b>{:,.1f}</b></li></ul>').format(
        swatch("even", "5 4"), sum(sizes) / len(sizes)
    )
    return svg(summary, [frame.axes(x_ticks, y_ticks, "Cluster", "Images"), *bars, even]) + key


def histogram(confidences: Sequence[float], *, title: str, bins: int = 20) -> Markup:
    """Draw how many images have which confidence, from 0 to 1; nothing when no confidence is known."""
    known = np.asarray(confidences, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return Markup("")
    counts = np.histogram(known.clip(0, 1), bins, (0.0, 1.0))[0].tolist()
    y_ticks = ticks(0, max(counts), whole=True)
    frame = Frame((0.0, 1.0), (0, y_ticks[-1].value))
    bars = [
        _bar(
            frame,
            ((i + 0.06) / bins, (i + 0.94) / bins),
            count,
            f"{i / bins:.2f}–{(i + 1) / bins:.2f}: {counted(count, 'image')}",
        )
        for i, count in enumerate(counts)
    ]
    summary = f"{title}: {counted(len(known), 'image')}, median {np.median(known):.2f}"
    return svg(summary, [frame.axes(ticks(0, 1), y_ticks, "Confidence (0 to 1)", "Images"), *bars])


def ticks(low: float, high: float, *, whole: bool = False) -> list[Tick]:
    """About five round numbers; the first is not above `low`, the last not below `high`.

    Args:
        low: Smallest value to show.
        high: Largest value to show.
        whole: Counts: only whole numbers.
    """
    step = _round_step(max(high - low or abs(high), 1e-9) / 5, whole=whole)
    first, last = math.floor(low / step + 1e-6), math.ceil(high / step - 1e-6)
    if first == last:
        first, last = first - 1, last + 1
    return [Tick(number * step, _tick_text(number * step, step)) for number in range(first, last + 1)]


def _round_step(at_least: float, *, whole: bool) -> float:
    """The next of 1, 2, 5, 10, 20, ... and their tenths."""
    power = 10.0 ** math.floor(math.log10(at_least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= at_least * (1 - 1e-9))
    return max(1.0, step) if whole else step


def _tick_text(value: float, step: float) -> str:
    if step >= 1e6 or step < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"


def _epoch_ticks(epochs: Sequence[float]) -> list[Tick]:
    if len(epochs) <= _MOST_LABELS:
        return [Tick(epoch, f"{epoch:g}") for epoch in epochs]
    low, high = min(epochs), max(epochs)
    # The first epoch is always named; a round number too close to it gives way.
    round_ones = [tick for tick in ticks(low, high, whole=True) if low + (high - low) / 12 < tick.value <= high]
    return [Tick(low, f"{low:g}"), *round_ones]


def _widened(low: float, high: float) -> Range:
    """A range that is never empty: a single epoch stands in the middle."""
    return (low, high) if high > low else (low - 1, high + 1)


def _line(frame: Frame, number: int, name: str, epochs: Sequence[float], values: Sequence[float]) -> Markup:
    """One curve, broken where a value is missing; points too when there are few, or no neighbours to join."""
    places = [
        (frame.x(epoch), frame.y(value)) if math.isfinite(value) else None for epoch, value in zip(epochs, values)
    ]
    path, pen_down = [], False
    for place in places:
        if place is not None:
            path.append(f"{'L' if pen_down else 'M'}{place[0]:.1f} {place[1]:.1f}")
        pen_down = place is not None
    marker = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>')
    markers = [
        marker.format(*place, f"{name}, epoch {epochs[i]:g}: {values[i]:.4g}")
        for i, place in enumerate(places)
        if place is not None and (len(places) <= _MOST_MARKERS or _alone(places, i))
    ]
    return Markup('<g class="series-{}"><path d="{}" stroke-dasharray="{}"/>{}</g>').format(
        number % _COLOURS, " ".join(path), DASHES[number % len(DASHES)], Markup("").join(markers)
    )


def _mark(frame: Frame, rank: int, name: str, place: float) -> Markup:
    """A line over the whole height with its name above the plot, the second name above the first."""
    x, anchor = frame.x(place), "end" if place > sum(frame.x_range) / 2 else "start"
    line = Markup('<line class="even" x1="{x:.1f}" x2="{x:.1f}" y1="{}" y2="{}"/>').format(_TOP, _BOTTOM, x=x)
    text = Markup('<text class="label" x="{:.1f}" y="{}" text-anchor="{}">{}</text>')
    return line + text.format(x, _TOP - 6 - 14 * rank, anchor, name)


def _alone(places: Sequence[object | None], i: int) -> bool:
    return (i == 0 or places[i - 1] is None) and (i + 1 == len(places) or places[i + 1] is None)


def _bar(frame: Frame, ends: Range, count: int, tooltip: str) -> Markup:
    left, right, top = frame.x(ends[0]), frame.x(ends[1]), frame.y(count)
    return Markup(
        '<rect class="bar" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
    ).format(left, top, right - left, _BOTTOM - top, tooltip)


def _legend(series: Mapping[str, Sequence[float]]) -> Markup:
    entry = Markup("<li>{}{} <b>{}</b></li>")
    entries = [
        entry.format(
            swatch(f"series-{number % _COLOURS}", DASHES[number % len(DASHES)]),
            name,
            _value_text(next((value for value in reversed(values) if math.isfinite(value)), math.nan)),
        )
        for number, (name, values) in enumerate(series.items())
    ]
    return Markup('<ul class="legend">{}</ul>').format(Markup("").join(entries))


def _value_text(value: float) -> str:
    if value != 0 and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2e}"
    return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"


def swatch(css_class: str, dash: str) -> Markup:
    """A short line for a legend."""
    return Markup(
        '<svg class="swatch" viewBox="0 0 28 8" aria-hidden="true">'
        '<g class="{}"><path d="M0 4H28" stroke-dasharray="{}"/></g></svg>'
    ).format(css_class, dash)


def svg(summary: str, parts: Iterable[Markup]) -> Markup:
    """A drawing, with a name for those who cannot see it."""
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, summary, Markup("").join(parts)
    )
