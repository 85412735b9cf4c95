"""Line charts as SVG: panels side by side with one legend, for the figures of curves and soak."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = (
    "#4269d0", "#ff725c", "#3ca951", "#a463f2", "#efb118", "#6cc5b0", "#ff8ab7", "#97bbf5", "#9c6b4e", "#555e69",
    "#b3a400",
)  # fmt: skip
WIDTH, HEIGHT = 330, 230
LEFT, TOP, RIGHT, BOTTOM = 48, 34, 12, 40
LEGEND_ROW = 18


@dataclass(frozen=True, slots=True)
class Line:
    """A named line; lines of one name have one colour in all panels."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart.

    Attributes:
        bound: a value with a dashed line, which no line should pass; None for none.
        y_max: the least top of the vertical axis.
    """

    title: str
    x_label: str
    lines: Sequence[Line]
    y_unit: str = ""
    bound: float | None = None
    y_max: float = 0.0
    x_is_log: bool = False


def svg(panels: Sequence[Panel], description: str, columns: int = 3) -> str:
    """The picture of all panels, `columns` beside each other, with the legend below."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
    rows = math.ceil(len(panels) / columns)
    columns = min(columns, len(panels))
    keys_beside = max(1, columns * WIDTH // 165)
    width, legend_top = columns * WIDTH, rows * HEIGHT + 14
    height = legend_top + math.ceil(len(names) / keys_beside) * LEGEND_ROW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="11"',
        f'width="{width}" height="{height}" font-family="sans-serif" fill="#222">',
        f"<desc>{escape(description)}</desc>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for index, panel in enumerate(panels):
        x, y = index % columns * WIDTH, index // columns * HEIGHT
        parts.append(f'<g transform="translate({x} {y})">{_panel(panel, colours)}</g>')
    for index, name in enumerate(names):
        x, y = 14 + index % keys_beside * 165, legend_top + index // keys_beside * LEGEND_ROW
        parts.append(
            f'<line x1="{x}" x2="{x + 20}" y1="{y}" y2="{y}" stroke="{colours[name]}" stroke-width="2.5"/>'
        )
        parts.append(_text(x + 26, y + 4, name))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, colours: dict[str, str]) -> str:
    xs = [x for line in panel.lines for x, _ in line.points]
    ys = [y for line in panel.lines for _, y in line.points]
    top = max([panel.y_max, *(y * 1.08 for y in ys)]) or 1.0
    place_x, place_y = _scale(xs, panel.x_is_log), _upwards(top)
    parts = [_text(LEFT, 18, panel.title, weight="bold")]
    for value in _ticks(top):
        y = place_y(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        parts.append(_text(LEFT - 5, y + 4, _short(value) + panel.y_unit, anchor="end"))
    for value in _marks(xs, panel.x_is_log):
        x = place_x(value)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}" stroke="#888"/>'
        )
        parts.append(_text(x, HEIGHT - BOTTOM + 16, _short(value), anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, panel.x_label, anchor="middle"))
    if panel.bound is not None:
        y = place_y(panel.bound)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#c00" stroke-dasharray="5 4"/>'
        )
    for line in panel.lines:
        points = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in line.points)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colours[line.name]}" stroke-width="1.8"/>'
        )
    return "".join(parts)


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )


def _scale(values: Sequence[float], is_log: bool) -> Callable[[float], float]:
    """The place from the left of a value on the horizontal axis."""
    turned = math.log10 if is_log else float
    low, high = turned(min(values, default=1)), turned(max(values, default=1))
    span = (high - low) or 1.0
    return lambda value: LEFT + (turned(value) - low) / span * (WIDTH - LEFT - RIGHT)


def _upwards(top: float) -> Callable[[float], float]:
    """The place from the top of a value on the vertical axis, which begins at 0."""
    return lambda value: HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)


def _ticks(top: float) -> list[float]:
    """Round values from 0 up to the top: 0, 0.5, 1 for 1.2; 0, 20, 40 for 55."""
    size = 10 ** math.floor(math.log10(top))
    step = next(part * size for part in (0.2, 0.5, 1, 2) if top / (part * size) <= 6)
    return [step * index for index in range(int(top / step) + 1)]


def _marks(values: Sequence[float], is_log: bool) -> list[float]:
    """The marked values of the horizontal axis: every value of a few, else round ones."""
    different = sorted(set(values))
    if is_log or len(different) <= 6:
        return different
    return [tick for tick in _ticks(different[-1]) if tick >= different[0]]


def _short(value: float) -> str:
    """`10k`, `1M`, `2.5`, `150`."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{round(value, 3):g}"
