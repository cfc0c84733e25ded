"""The idea on two of the user's own cells: primary, compatible set, projection."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from trueup._validate import Bools, Floats, Ints
from trueup.audit import _render
from trueup.audit._svg import draw
from trueup.core.moments import MomentRows
from trueup.core.reports import AnswerConfidence, Distributions, Reports
from trueup.errors import InvalidInputError
from trueup.maps._files import write_atomically
from trueup.solve.conic import add_kernels
from trueup.solve.model import ConicModel
from trueup.solve.problem import ProjectionProblem, Rows, merged_rows

_MOST_CORNERS = 48
_FLAT = 1e-5
"""In units of the axes: a bulge smaller than this cannot be seen."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One of the two primary reports, as a number the truth may disagree with."""

    atom: int
    report: str
    quantity: str
    """What the axis measures."""
    claim: float
    """What the primary says it is."""
    function: Floats
    """(K,) the quantity is the mean of this function of the outcome."""
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Figure:
    """The projection seen on the two most frequent primary reports.

    The axes are what the outcome's distribution is where the primary makes the first
    and the second report. The compatible set is every pair of values that some
    admissible truth gives; the primary's claim is outside it if the two reports alone
    contradict the reference. The projection is that of the whole table, of which this
    is the shadow on two reports.

    Attributes
    ----------
    primary, projection
        (first, second) coordinates of the two points.
    compatible
        Corners of the compatible set, counter-clockwise; two for a segment.
    svg
        The picture, as text.
    """

    axes: tuple[Axis, Axis]
    primary: tuple[float, float]
    projection: tuple[float, float]
    compatible: Floats
    trust: str

    @property
    def svg(self) -> str:
        """The picture as SVG text, readable on light and dark pages."""
        return draw(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file."""
        write_atomically(path, self.svg)

    def to_dict(self) -> dict[str, Any]:
        """The coordinates as one JSON object."""
        return {
            "axes": [
                {"report": axis.report, "quantity": axis.quantity} for axis in self.axes
            ],
            "primary": list(self.primary),
            "projection": list(self.projection),
            "compatible": self.compatible.tolist(),
        }

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        first, second = (f"{value:.4g}" for value in self.primary)
        third, fourth = (f"{value:.4g}" for value in self.projection)
        return (
            f"Figure(primary ({first}, {second}), projection ({third}, {fourth}), "
            f"{len(self.compatible)} corners)"
        )


def make_figure(problem: ProjectionProblem, projected: Floats) -> Figure:
    """Compute the picture for the two most frequent primary reports.

    ``projected`` are the (atoms, K) distributions of the projection.
    """
    axes = _axes(problem)
    claims = (axes[0].claim, axes[1].claim)
    moved = [float(axis.function @ projected[axis.atom]) for axis in axes]
    corners = _corners(_support(problem, axes), axes)
    return Figure(axes, claims, (moved[0], moved[1]), corners, problem.trust.title)


def _axes(problem: ProjectionProblem) -> tuple[Axis, Axis]:
    reports = problem.atoms
    if len(reports) < 2:
        message = (
            "the picture needs two different primary reports, and there is one.\n"
            "hint: with a constant primary there is nothing to draw."
        )
        raise InvalidInputError(message)
    first, second = np.argsort(-problem.atom_weight, kind="stable")[:2].tolist()
    return _axis(reports, first, first), _axis(reports, second, first)


def _axis(reports: Reports, atom: int, leading: int) -> Axis:
    text = _render.report_text(reports, atom)
    if reports.about.name == "mean":
        values = reports.about.values
        claim = float(reports.keys()[atom, 0])
        low, high = float(values.min()), float(values.max())
        return Axis(atom, text, "mean outcome", claim, values, low, high)
    if isinstance(reports, AnswerConfidence):
        outcome, claim = int(reports.answer[atom]), float(reports.confidence[atom])
    elif isinstance(reports, Distributions):
        binary = reports.n_outcomes == 2
        outcome = 1 if binary else int(reports.answers()[leading])
        claim = float(reports.probabilities[atom, outcome])
    else:
        message = (
            f"the picture needs a primary whose report is a point; a "
            f"{reports.about.title} leaves a whole region.\n"
            "hint: it can be drawn for distributions, answers with a confidence, and "
            "means."
        )
        raise InvalidInputError(message)
    function = np.zeros(reports.n_outcomes)
    function[outcome] = 1
    return Axis(
        atom, text, f"P({reports.outcomes[outcome]})", claim, function, 0.0, 1.0
    )


def _support(
    problem: ProjectionProblem, axes: tuple[Axis, Axis]
) -> Callable[[Floats], Floats]:
    """The compatible point furthest in a direction, by linear programming.

    Only reference cells that the two reports occur in matter; elsewhere the reference
    can be right whatever happens here. All other primary reports are merged.
    """
    pairs = problem.pairs
    owner = np.full(len(pairs.owner), 2)
    for place, axis in enumerate(axes):
        owner[pairs.owner == axis.atom] = place
    cells = problem.moments.cell_of_node
    touched = np.zeros(problem.moments.n_cells, dtype=bool)
    touched[cells[pairs.node[owner < 2]]] = True
    moments, new_node = _only(problem.moments, touched)
    kept = touched[cells[pairs.node]]
    rows = merged_rows(new_node[pairs.node[kept]], owner[kept], pairs.weight[kept])
    effect = _effects(problem, axes, rows)

    def furthest(direction: Floats) -> Floats:
        model = ConicModel()
        kernels = add_kernels(model, moments, rows, problem.reference_error)
        cost = -np.tensordot(direction, effect, axes=1)
        present = kernels.index >= 0
        model.cost(kernels.index[present], cost[present])
        rates = kernels.rates(model.solve())
        return cast("Floats", (effect * rates).sum(axis=(1, 2)))

    return furthest


def _effects(problem: ProjectionProblem, axes: tuple[Axis, Axis], rows: Rows) -> Floats:
    """(2, rows, K) what an outcome on a row adds to each coordinate."""
    effect = np.zeros((2, len(rows.weight), problem.n_outcomes))
    for place, axis in enumerate(axes):
        share = rows.weight / problem.atom_weight[axis.atom]
        mine = (rows.owner == place)[:, None]
        effect[place] = np.where(mine, share[:, None] * axis.function, 0.0)
    return effect


def _only(moments: MomentRows, cells: Bools) -> tuple[MomentRows, Ints]:
    """The moments of some cells, and where their nodes went."""
    new_cell = np.cumsum(cells) - 1
    nodes = cells[moments.cell_of_node]
    new_node = np.cumsum(nodes) - 1
    kept = cells[moments.cell_of_row]
    new_row = np.cumsum(kept) - 1
    entries = nodes[moments.node]
    smaller = replace(
        moments,
        node_of_pair=np.zeros(0, dtype=np.int64),
        cell_of_node=new_cell[moments.cell_of_node[nodes]],
        equality=moments.equality[kept],
        target=moments.target[kept],
        cell_of_row=new_cell[moments.cell_of_row[kept]],
        slot_of_row=moments.slot_of_row[kept],
        row=new_row[moments.row[entries]],
        node=new_node[moments.node[entries]],
        outcome=moments.outcome[entries],
        coefficient=moments.coefficient[entries],
        anchors=moments.anchors[nodes],
        allowed=moments.allowed[nodes],
    )
    return smaller, new_node


def _corners(furthest: Callable[[Floats], Floats], axes: tuple[Axis, Axis]) -> Floats:
    """Corners of the set: ask beyond every edge until nothing lies there."""
    scale = np.array([axis.high - axis.low for axis in axes])
    compass = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
    points = [furthest(np.array(one) / scale) for one in compass]
    found: list[Floats] = []
    for place, point in enumerate(points):
        following = points[(place + 1) % 4]
        found += [
            point,
            *_between(furthest, point, following, scale, _MOST_CORNERS // 4),
        ]
    return _distinct(found, scale)


def _between(
    furthest: Callable[[Floats], Floats],
    start: Floats,
    end: Floats,
    scale: Floats,
    limit: int,
) -> list[Floats]:
    """Corners strictly between two neighbours, in order."""
    edge = (end - start) / scale
    length = math.hypot(*edge)
    if length < _FLAT or limit <= 0:
        return []
    outward = np.array([edge[1], -edge[0]]) / length
    beyond = furthest(outward / scale)
    if float(outward @ ((beyond - start) / scale)) < _FLAT:
        return []
    half = limit // 2
    return [
        *_between(furthest, start, beyond, scale, half),
        beyond,
        *_between(furthest, beyond, end, scale, half),
    ]


def _distinct(points: list[Floats], scale: Floats) -> Floats:
    """Neighbouring points that look the same are one corner."""
    kept: list[Floats] = []
    for point in points:
        if not kept or math.hypot(*((point - kept[-1]) / scale)) > 10 * _FLAT:
            kept.append(point)
    if len(kept) > 1 and math.hypot(*((kept[0] - kept[-1]) / scale)) <= 10 * _FLAT:
        kept.pop()
    return np.array(kept)
