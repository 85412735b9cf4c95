"""A line chart as SVG: a few series over days. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT = 960, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 130, 20, 60, 50
_COLORS = ("#1f6fb4", "#d1495b")
_STEPS = (1, 2, 5, 10)
_TICKS = 5
_TEXT_STYLE = 'role="img" font-family="sans-serif" font-size="13"'


class Series:
    """A line of the chart: its name for the legend, and a value for each point of the axis; None if unknown."""

    __slots__ = ("name", "values")

    def __init__(self, name: str, values: Sequence[float | None]) -> None:
        self.name = name
        self.values = values


def line_chart(title: str, labels: Sequence[str], series: Sequence[Series]) -> str:
    """Draw the chart as an SVG document.

    Args:
        labels: texts below the points of the horizontal axis; some of the labels are shown.
    """
    values = [value for one_series in series for value in one_series.values if value is not None]
    ticks = round_ticks(min([0.0, *values]), max([0.0, *values]))
    low, high = ticks[0], ticks[-1]

    def x(index: int) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * index / max(len(labels) - 1, 1)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_TEXT_STYLE}>',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="17">{escape(title)}</text>',
    ]
    parts += [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>'
        f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,.0f}</text>'
        for tick in ticks
    ]
    below = _HEIGHT - _BOTTOM + 22
    parts += [
        f'<text x="{x(index):.1f}" y="{below}" text-anchor="middle">{escape(labels[index])}</text>'
        for index in spread(len(labels), _TICKS)
    ]
    for number, one_series in enumerate(series):
        color = _COLORS[number % len(_COLORS)]
        # The second line is dashed: both lines stay visible where their values agree.
        dash = ' stroke-dasharray="2 6"' if number else ""
        points = " ".join(
            f"{x(at):.1f},{y(value):.1f}" for at, value in enumerate(one_series.values) if value is not None
        )
        at = _LEFT + number * 260
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{2 + 2 * number}"{dash}/>'
            f'<line x1="{at}" x2="{at + 30}" y1="44" y2="44" stroke="{color}" stroke-width="{2 + 2 * number}"{dash}/>'
            f'<text x="{at + 38}" y="48">{escape(one_series.name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def round_ticks(low: float, high: float) -> list[float]:
    """Return a handful of round numbers, evenly spaced, from at or below `low` to at or above `high`."""
    from math import ceil, floor, log10

    # Floats of this size cannot represent a smaller difference.
    closest = max(1.0, abs(low), abs(high)) * 1e-9
    if high - low < closest:
        high = low + max(1.0, closest)
    raw = (high - low) / _TICKS
    power = 10.0 ** floor(log10(raw))
    step = next(power * factor for factor in _STEPS if power * factor >= raw)
    first, last = floor(low / step), ceil(high / step)
    # The division has rounded: extend the outer ticks so that they enclose the values.
    first, last = first - (step * first > low), last + (step * last < high)
    return [step * number for number in range(first, last + 1)]


def spread(count: int, most: int) -> list[int]:
    """Choose at most `most` of `count` indexes, evenly spaced, the first and the last included."""
    if count <= most:
        return list(range(count))
    return [round(number * (count - 1) / (most - 1)) for number in range(most)]
