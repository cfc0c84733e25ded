"""Small pictures as SVG text: panels with axes, lines, points and a legend."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

STYLE = """
.page{fill:#fff}.t{font:12px system-ui,sans-serif;fill:#1d2530}
.s{font:11px system-ui,sans-serif;fill:#5b6675}.h{font-size:14px;font-weight:600}
.g{stroke:#e6e9ee}.z{stroke:#8c96a3}.f{fill:none;stroke:#8c96a3}
.l{fill:none;stroke-width:2}.d{stroke-dasharray:5 4}
.c0{stroke:#c8553d;fill:#c8553d}.c1{stroke:#2a7f9e;fill:#2a7f9e}
.c2{stroke:#7a6bb0;fill:#7a6bb0}.c3{stroke:#3f8f4f;fill:#3f8f4f}
.c4{stroke:#8c96a3;fill:#8c96a3}.l{fill:none}.p{fill-opacity:.65;stroke:none}
.b{stroke-width:5;stroke-opacity:.22}"""
"""Always on white: a picture does not see the theme of the page it is on."""


@dataclass
class Series:
    """Points of one kind."""

    name: str
    points: list
    colour: str
    line: bool = True
    dashed: bool = False
    marks: bool = True
    spread: list = field(default_factory=list)
    """(x, low, high) of bars behind the points."""


@dataclass
class Panel:
    """One pair of axes."""

    title: str
    series: list = field(default_factory=list)
    x_log: bool = False
    root: bool = False
    """Both axes by signed square roots: zero and thousandths are seen together."""
    diagonal: bool = False
    x_range: tuple | None = None
    y_range: tuple | None = None
    x_ticks: tuple | None = None
    y_ticks: tuple | None = None
    width: float = 250.0
    height: float = 200.0

    def ranges(self):
        xs = [x for one in self.series for x, _ in one.points]
        ys = [y for one in self.series for _, y in one.points] + [0.0]
        ys += [y for one in self.series for bar in one.spread for y in bar[1:]]
        x_low, x_high = self.x_range or (min(xs), max(xs))
        y_low, y_high = self.y_range or padded(min(ys), max(ys))
        return x_low, x_high, y_low, y_high

    def draw(self, left, top):
        x_low, x_high, y_low, y_high = self.ranges()

        scale_y = rooted if self.root else float
        scale_x = math.log if self.x_log else scale_y

        def place(x, y):
            across = share(x, x_low, x_high, scale_x)
            up = share(y, y_low, y_high, scale_y)
            return left + across * self.width, top + (1 - up) * self.height

        parts = [text(left, top - 10, self.title, "t")]
        for y in self.y_ticks or ticks(y_low, y_high):
            _, at = place(x_high, y)
            kind = "z" if y == 0 else "g"
            parts.append(line(left, at, left + self.width, at, kind))
            parts.append(text(left - 6, at + 4, number(y), "s", "end"))
        shown = self.x_ticks or ticks(x_low, x_high)
        for x in shown:
            at, _ = place(x, y_low)
            parts.append(line(at, top + self.height, at, top + self.height + 4, "z"))
            parts.append(text(at, top + self.height + 17, number(x), "s", "middle"))
        parts.append(
            f'<rect class="f" x="{left}" y="{top}" width="{self.width}" '
            f'height="{self.height}"/>'
        )
        if self.root:
            at, _ = place(0, y_low)
            parts.append(line(at, top, at, top + self.height, "z"))
        if self.diagonal:
            low, high = max(x_low, y_low), min(x_high, y_high)
            parts.append(line(*place(low, low), *place(high, high), "z d"))
        for one in self.series:
            parts += drawn(one, place)
        return parts


def drawn(one, place):
    points = [place(*point) for point in one.points]
    parts = [
        line(*place(x, low), *place(x, high), f"{one.colour} b")
        for x, low, high in one.spread
    ]
    if one.line:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = " d" if one.dashed else ""
        parts.append(f'<polyline class="{one.colour} l{dash}" points="{path}"/>')
    if one.marks:
        parts += [
            f'<circle class="{one.colour} p" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
            for x, y in points
        ]
    return parts


def figure(title, panels, x_title, y_title, *, columns=3):
    """Panels in rows under a title, with one legend."""
    left, top, gap_x, gap_y = 78, 70, 70, 74
    width, height = panels[0].width, panels[0].height
    n_rows = math.ceil(len(panels) / columns)
    n_columns = min(columns, len(panels))
    total = left + n_columns * width + (n_columns - 1) * gap_x + 24
    names = {one.name: one for panel in panels for one in panel.series if one.name}
    bottom = top + n_rows * height + (n_rows - 1) * gap_y + 44
    parts = [text(24, 30, title, "t h")]
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        x, y = left + column * (width + gap_x), top + row * (height + gap_y)
        parts += panel.draw(x, y)
    parts.append(text(left, bottom, x_title, "s"))
    for row in range(n_rows):
        middle = top + row * (height + gap_y) + height / 2
        parts.append(
            f'<text class="s" text-anchor="middle" transform="translate(20 {middle}) '
            f'rotate(-90)">{escape(y_title)}</text>'
        )
    at, line_y = left, bottom + 24
    for one in names.values() if len(names) > 1 else ():
        wide = 40 + 6.6 * len(one.name)
        if at + wide > total:
            at, line_y = left, line_y + 20
        parts += key(one, at, line_y)
        at += wide
    high = line_y + 20
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {high:.0f}" '
        f'width="{total:.0f}" height="{high:.0f}" role="img">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f'<rect class="page" width="{total:.0f}" height="{high:.0f}"/>'
    )
    return "\n".join([opening, *parts, "</svg>"]) + "\n"


def key(one, x, y):
    dash = " d" if one.dashed else ""
    parts = []
    if one.line:
        ends = f"{x},{y - 4} {x + 22},{y - 4}"
        parts.append(f'<polyline class="{one.colour} l{dash}" points="{ends}"/>')
    if one.marks:
        parts.append(
            f'<circle class="{one.colour} p" cx="{x + 11}" cy="{y - 4}" r="3"/>'
        )
    return [*parts, text(x + 28, y, one.name, "t")]


def text(x, y, words, kind, anchor="start"):
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def line(x1, y1, x2, y2, kind):
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def rooted(value):
    return math.copysign(math.sqrt(abs(value)), value)


def share(value, low, high, scale):
    """How far a value is from the low end to the high one."""
    low, high = scale(low), scale(high)
    return (scale(value) - low) / (high - low or 1)


def padded(low, high):
    room = 0.06 * (high - low or 1)
    return low - (room if low < 0 else 0), high + room


def ticks(low, high, most=5):
    """Round numbers inside a range."""
    raw = (high - low) / most or 1
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= raw)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 10) + 0.0 for k in range(first, last + 1)]


def number(value):
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:g}"
