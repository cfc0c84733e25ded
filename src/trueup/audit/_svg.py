"""Drawing by hand: the projection picture as SVG text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from trueup._validate import Floats

if TYPE_CHECKING:
    from trueup.audit.picture import Figure

_SIDE = 300.0
_LEFT, _TOP = 74.0, 60.0
_WIDTH, _HEIGHT = 410.0, 494.0
_STYLE = """
.trueup-page{fill:#fff;stroke:#d5dae1}
.trueup-text{fill:#1d2530;font-family:system-ui,sans-serif;font-size:12px}
.trueup-soft{fill:#5b6675;font-family:system-ui,sans-serif;font-size:11px}
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


class _Scale:
    """From values to places on the page, both axes alike."""

    def __init__(self, figure: Figure) -> None:
        window = _window(figure)
        self.low, self.high = window[:, 0], window[:, 1]

    def __call__(self, point: tuple[float, float] | Floats) -> tuple[float, float]:
        share = (np.asarray(point) - self.low) / (self.high - self.low)
        return _LEFT + _SIDE * float(share[0]), _TOP + _SIDE * (1 - float(share[1]))

    def ticks(self, axis: int) -> list[float]:
        """About five round numbers."""
        low, high = float(self.low[axis]), float(self.high[axis])
        rough = (high - low) / 4
        power = 10.0 ** np.floor(np.log10(rough))
        step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
        first = np.ceil(low / step - 1e-9)
        last = np.floor(high / step + 1e-9)
        return [float(n * step) for n in np.arange(first, last + 1)]


def _window(figure: Figure) -> Floats:
    """(2, 2) low and high ends: the whole range, or closer where the move is small."""
    whole = np.array([[axis.low, axis.high] for axis in figure.axes])
    width = whole[:, 1] - whole[:, 0]
    points = np.array([figure.primary, figure.projection])
    move = float((np.abs(points[0] - points[1]) / width).max())
    if move > 0.12 or move < 1e-6:
        return whole
    reach = np.maximum(4 * move, 0.05) * width
    centre = points.mean(axis=0)
    low = np.clip(centre - reach, whole[:, 0], whole[:, 1] - 2 * reach)
    return np.column_stack([low, low + 2 * reach])


def draw(figure: Figure) -> str:
    """The whole picture."""
    scale = _Scale(figure)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" '
        f'width="{_WIDTH:g}" height="{_HEIGHT:g}" role="img" '
        f'aria-label="{escape(_summary(figure))}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="trueup-page" x=".5" y=".5" width="{_WIDTH - 1:g}" '
        f'height="{_HEIGHT - 1:g}" rx="8"/>',
        _text(24, 26, "Where the truth can be", "trueup-text trueup-title"),
        _text(24, 44, _subtitle(figure), "trueup-soft"),
        *_grid(figure, scale),
        *_compatible(figure, scale),
        *_move(figure, scale),
        *_legend(figure),
        "</svg>",
    ]
    return "\n".join(parts)


def _summary(figure: Figure) -> str:
    (a, b), (c, d) = figure.primary, figure.projection
    return (
        f"The primary claims {a:.3g} and {b:.3g} for its two most frequent reports; "
        f"the nearest compatible values are {c:.3g} and {d:.3g}."
    )


def _subtitle(figure: Figure) -> str:
    return "given the primary's two most frequent reports"


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def _grid(figure: Figure, scale: _Scale) -> list[str]:
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    parts = []
    for value in scale.ticks(0):
        x = scale(np.array([value, scale.low[1]]))[0]
        parts += [
            f'<path class="trueup-grid" d="M{x:.1f} {_TOP:g}V{bottom:g}"/>',
            _text(x, bottom + 16, f"{value:g}", "trueup-soft", _MIDDLE),
        ]
    for value in scale.ticks(1):
        y = scale(np.array([scale.low[0], value]))[1]
        parts += [
            f'<path class="trueup-grid" d="M{_LEFT:g} {y:.1f}H{right:g}"/>',
            _text(_LEFT - 8, y + 4, f"{value:g}", "trueup-soft", _END),
        ]
    across, up = figure.axes
    parts += [
        f'<rect class="trueup-frame" x="{_LEFT:g}" y="{_TOP:g}" width="{_SIDE:g}" '
        f'height="{_SIDE:g}"/>',
        _text(
            _LEFT + _SIDE / 2, bottom + 36, _axis_label(across), "trueup-text", _MIDDLE
        ),
        f'<g transform="translate(26 {_TOP + _SIDE / 2:g}) rotate(-90)">'
        + _text(0, 0, _axis_label(up), "trueup-text", _MIDDLE)
        + "</g>",
    ]
    return parts


_MIDDLE, _END = ' text-anchor="middle"', ' text-anchor="end"'


def _axis_label(axis: object) -> str:
    report, quantity = _short(axis.report), axis.quantity  # type: ignore[attr-defined]
    return f"{quantity} where it reports {report}"


def _short(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _compatible(figure: Figure, scale: _Scale) -> list[str]:
    places = [scale(corner) for corner in figure.compatible]
    path = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in places)
    clip = (
        '<clipPath id="trueup-clip"><rect '
        f'x="{_LEFT - 2:g}" y="{_TOP - 2:g}" width="{_SIDE + 4:g}" '
        f'height="{_SIDE + 4:g}"/></clipPath>'
    )
    close = "Z" if len(places) > 2 else ""
    shape = (
        f'<path class="trueup-set" clip-path="url(#trueup-clip)" d="{path}{close}"/>'
    )
    if len(places) == 1:
        x, y = places[0]
        shape = f'<circle class="trueup-set" cx="{x:.2f}" cy="{y:.2f}" r="7"/>'
    return [clip, shape]


def _move(figure: Figure, scale: _Scale) -> list[str]:
    start, end = np.array(scale(figure.primary)), np.array(scale(figure.projection))
    away = end - start
    length = float(np.hypot(*away))
    parts = []
    if length > 16:
        ahead = away / length
        side = np.array([-ahead[1], ahead[0]])
        tip = end - 7 * ahead
        back = tip - 8 * ahead
        left, right = back + 4 * side, back - 4 * side
        parts = [
            f'<path class="trueup-move" d="M{start[0]:.2f} {start[1]:.2f}'
            f'L{back[0]:.2f} {back[1]:.2f}"/>',
            f'<path class="trueup-head" d="M{tip[0]:.2f} {tip[1]:.2f}'
            f"L{left[0]:.2f} {left[1]:.2f}L{right[0]:.2f} {right[1]:.2f}Z"
            '"/>',
        ]
    for kind, (x, y) in (("projection", end), ("primary", start)):
        parts.append(f'<circle class="trueup-{kind}" cx="{x:.2f}" cy="{y:.2f}" r="6"/>')
    return parts


def _legend(figure: Figure) -> list[str]:
    top = _TOP + _SIDE + 62
    rows = (
        (
            '<circle class="trueup-primary" cx="30" cy="{y}" r="5"/>',
            f"what the primary claims ({_pair(figure.primary)})",
        ),
        (
            '<circle class="trueup-projection" cx="30" cy="{y}" r="5"/>',
            f"nearest compatible reports ({_pair(figure.projection)})",
        ),
        (
            '<rect class="trueup-set" x="25" y="{z}" width="10" height="8"/>',
            "every truth under which the reference is right",
        ),
    )
    parts = []
    for place, (mark, text) in enumerate(rows):
        y = top + 20 * place
        parts += [
            mark.format(y=f"{y:g}", z=f"{y - 4:g}"),
            _text(44, y + 4, text, "trueup-soft"),
        ]
    return parts


def _pair(point: tuple[float, float]) -> str:
    return f"{point[0]:.3g}, {point[1]:.3g}"
