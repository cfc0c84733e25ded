"""Drawing by hand: the projection picture as SVG text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from trueup._validate import Floats

if TYPE_CHECKING:
    from trueup.audit.picture import Axis, Figure

_SIDE = 300.0
_LEFT, _TOP = 76.0, 64.0
_RIGHT, _BOTTOM = _LEFT + _SIDE, _TOP + _SIDE
_WIDTH = 412.0
_CLOSE = 0.08
"""A move that spans less of the axes than this is shown from nearer by."""
_MIDDLE, _END = ' text-anchor="middle"', ' text-anchor="end"'
_STYLE = """
.trueup-page{fill:#fff;stroke:#d5dae1}
.trueup-text,.trueup-soft{font-family:system-ui,sans-serif;font-size:12px}
.trueup-text{fill:#1d2530}
.trueup-soft{fill:#5b6675}
.trueup-title{font-size:14px;font-weight:600}
.trueup-grid{stroke:#e8ebef;stroke-width:1}
.trueup-frame{fill:none;stroke:#8c96a3;stroke-width:1}
.trueup-set{fill:#2a7f9e;fill-opacity:.16;stroke:#2a7f9e;stroke-width:2;
stroke-linejoin:round;stroke-linecap:round}
.trueup-move{fill:none;stroke:#1d2530;stroke-width:1.6}
.trueup-head{fill:#1d2530}
.trueup-primary{fill:#c8553d;stroke:#fff;stroke-width:1.5}
.trueup-projection{fill:#2a7f9e;stroke:#fff;stroke-width:1.5}
@media (prefers-color-scheme:dark){
.trueup-page{fill:#161b22;stroke:#39424e}
.trueup-text{fill:#e6ebf1}
.trueup-soft{fill:#a3adba}
.trueup-grid{stroke:#2a323c}
.trueup-frame{stroke:#6b7685}
.trueup-set{fill:#5fb3d1;fill-opacity:.2;stroke:#5fb3d1}
.trueup-move{stroke:#e6ebf1}
.trueup-head{fill:#e6ebf1}
.trueup-primary{fill:#f08a6f;stroke:#161b22}
.trueup-projection{fill:#5fb3d1;stroke:#161b22}
}"""


def draw(figure: Figure) -> str:
    """The whole picture."""
    scale = _Scale(figure)
    closer = " (close-up)" if scale.is_close else ""
    subtitle = f"seen on the primary's two most frequent reports{closer}"
    parts = [
        _opening(figure),
        f"<style>{_STYLE}</style>",
        _rectangle("trueup-page", 0.5, 0.5, _WIDTH - 1, _height(figure) - 1, ' rx="8"'),
        _text(24, 27, "What the reference allows", "trueup-text trueup-title"),
        _text(24, 46, subtitle, "trueup-soft"),
        *_grid(figure, scale),
        *_compatible(figure, scale),
        *_move(figure, scale),
        *_legend(figure),
        "</svg>",
    ]
    return "\n".join(parts)


class _Scale:
    """From values to places on the page."""

    def __init__(self, figure: Figure) -> None:
        whole = np.array([[axis.low, axis.high] for axis in figure.axes])
        window = _window(figure, whole)
        self.is_close = not np.array_equal(window, whole)
        self.low, self.high = window[:, 0], window[:, 1]

    def __call__(self, point: tuple[float, float] | Floats) -> Floats:
        across, up = (np.asarray(point) - self.low) / (self.high - self.low)
        return np.array([_LEFT + _SIDE * across, _BOTTOM - _SIDE * up])

    def ticks(self, axis: int) -> list[float]:
        """About five round numbers."""
        low, high = float(self.low[axis]), float(self.high[axis])
        rough = (high - low) / 4
        power = 10.0 ** np.floor(np.log10(rough))
        step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
        first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
        return [float(n * step) + 0.0 for n in np.arange(first, last + 1)]


def _window(figure: Figure, whole: Floats) -> Floats:
    """(2, 2) low and high ends: the whole range, or closer where the move is small."""
    width = whole[:, 1] - whole[:, 0]
    points = np.array([figure.primary, figure.projection])
    move = float((np.abs(points[0] - points[1]) / width).max())
    if not 1e-6 < move < _CLOSE:
        return whole
    reach = np.maximum(3 * move, 0.01) * width
    low = np.clip(points.mean(axis=0) - reach, whole[:, 0], whole[:, 1] - 2 * reach)
    return np.column_stack([low, low + 2 * reach])


def _height(figure: Figure) -> float:
    return _BOTTOM + 62 + 19 * len(_legend_texts(figure)) - 3


def _opening(figure: Figure) -> str:
    height = _height(figure)
    (a, b), (c, d) = figure.primary, figure.projection
    summary = (
        f"The primary claims {a:.3g} and {b:.3g} for its two most frequent reports; "
        f"the nearest compatible values are {c:.3g} and {d:.3g}."
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH:g}" '
        f'height="{height:g}" viewBox="0 0 {_WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(summary)}">'
    )


def _text(left: float, top: float, text: str, kind: str, more: str = "") -> str:
    return (
        f'<text class="{kind}" x="{left:.1f}" y="{top:.1f}"{more}>{escape(text)}</text>'
    )


def _rectangle(  # noqa: PLR0917 - a rectangle has that many numbers
    kind: str, left: float, top: float, width: float, height: float, more: str = ""
) -> str:
    return (
        f'<rect class="{kind}" x="{left:g}" y="{top:g}" width="{width:g}" '
        f'height="{height:g}"{more}/>'
    )


def _circle(kind: str, place: Floats, radius: float) -> str:
    return (
        f'<circle class="{kind}" cx="{place[0]:.2f}" cy="{place[1]:.2f}" '
        f'r="{radius:g}"/>'
    )


def _path(kind: str, places: list[Floats], *, close: bool, more: str = "") -> str:
    steps = "L".join(f"{x:.2f} {y:.2f}" for x, y in places)
    return f'<path class="{kind}"{more} d="M{steps}{"Z" if close else ""}"/>'


def _grid(figure: Figure, scale: _Scale) -> list[str]:
    parts = []
    for value in scale.ticks(0):
        x = float(scale(np.array([value, scale.low[1]]))[0])
        ends = [np.array([x, _TOP]), np.array([x, _BOTTOM])]
        parts.append(_path("trueup-grid", ends, close=False))
        parts.append(_text(x, _BOTTOM + 17, f"{value:.10g}", "trueup-soft", _MIDDLE))
    for value in scale.ticks(1):
        y = float(scale(np.array([scale.low[0], value]))[1])
        ends = [np.array([_LEFT, y]), np.array([_RIGHT, y])]
        parts.append(_path("trueup-grid", ends, close=False))
        parts.append(_text(_LEFT - 8, y + 4, f"{value:.10g}", "trueup-soft", _END))
    across, up = map(_axis_label, figure.axes)
    middle = _LEFT + _SIDE / 2
    parts += [
        _rectangle("trueup-frame", _LEFT, _TOP, _SIDE, _SIDE),
        _text(middle, _BOTTOM + 38, across, "trueup-text", _MIDDLE),
        f'<g transform="translate(28 {_TOP + _SIDE / 2:g}) rotate(-90)">',
        _text(0, 0, up, "trueup-text", _MIDDLE),
        "</g>",
    ]
    return parts


def _axis_label(axis: Axis) -> str:
    return f"{_short(axis.quantity)} where it reports {_short(axis.report)}"


def _short(text: str, most: int = 18) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _compatible(figure: Figure, scale: _Scale) -> list[str]:
    places = [scale(corner) for corner in figure.compatible]
    if len(places) == 1:
        return [_circle("trueup-set", places[0], 9)]
    inside = _rectangle("", _LEFT - 1, _TOP - 1, _SIDE + 2, _SIDE + 2)
    clip = f'<clipPath id="trueup-inside">{inside}</clipPath>'
    more = ' clip-path="url(#trueup-inside)"'
    return [clip, _path("trueup-set", places, close=len(places) > 2, more=more)]


def _move(figure: Figure, scale: _Scale) -> list[str]:
    start, end = scale(figure.primary), scale(figure.projection)
    length = float(np.hypot(*(end - start)))
    parts = []
    if length > 22:  # otherwise the points touch and an arrow only hides them
        ahead = (end - start) / length
        side = 4 * np.array([-ahead[1], ahead[0]])
        tip, back = end - 7 * ahead, end - 16 * ahead
        parts = [
            _path("trueup-move", [start, back], close=False),
            _path("trueup-head", [tip, back + side, back - side], close=True),
        ]
    return [
        *parts,
        _circle("trueup-projection", end, 6),
        _circle("trueup-primary", start, 6),
    ]


def _legend(figure: Figure) -> list[str]:
    top = _BOTTOM + 62
    marks = [
        _circle("trueup-primary", np.array([30, top]), 5),
        _circle("trueup-projection", np.array([30, top + 19]), 5),
        _rectangle("trueup-set", 25, top + 34, 10, 8),
    ]
    lines = [
        _text(44, top + 4 + 19 * place, text, "trueup-soft")
        for place, text in enumerate(_legend_texts(figure))
    ]
    return [*marks, *lines]


def _legend_texts(figure: Figure) -> list[str]:
    texts = [
        f"what the primary claims: {_pair(figure.primary)}",
        f"its projection: {_pair(figure.projection)}",
        "every pair of values that some admissible truth gives",
    ]
    if figure.n_reports > 2:
        n_reports = f"{figure.n_reports:,}"
        texts.append(f"The projection is of all {n_reports} reports; these are two.")
    return texts


def _pair(point: tuple[float, float]) -> str:
    return f"{point[0]:.3g} and {point[1]:.3g}"
