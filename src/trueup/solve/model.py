"""A small conic model: variables, costs and cones, handed to Clarabel.

minimise  1/2 x'Px + q'x   subject to   Ax + s = b,  s in a product of cones
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueup._validate import Floats, Ints
from trueup.errors import SolverError


@dataclass(slots=True, eq=False)
class Block:
    """Consecutive constraint rows in one kind of cone."""

    row: Ints
    column: Ints
    value: Floats
    bound: Floats
    cone: str
    size: int
    """Rows of a single cone; the block holds len(bound) / size of them."""
    start: int


@dataclass(slots=True, eq=False)
class ConicModel:
    """Collects a problem piece by piece; every piece keeps its dual's place."""

    n_variables: int = 0
    blocks: list[Block] = field(default_factory=list)
    _costs: list[tuple[Ints, Floats]] = field(default_factory=list)
    _squares: list[tuple[Ints, Floats]] = field(default_factory=list)
    _n_rows: int = 0

    def variables(self, *shape: int) -> Ints:
        """New variables, as an array of their numbers."""
        size = int(np.prod(shape))
        start, self.n_variables = self.n_variables, self.n_variables + size
        return np.arange(start, start + size).reshape(shape)

    def cost(self, index: Ints, coefficient: Floats) -> None:
        """Add sum of coefficient * x[index] to the objective."""
        self._costs.append(
            (index.ravel(), np.broadcast_to(coefficient, index.shape).ravel())
        )

    def square(self, index: Ints, weight: Floats) -> None:
        """Add sum of weight * x[index]^2 to the objective."""
        self._squares.append(
            (index.ravel(), np.broadcast_to(weight, index.shape).ravel())
        )

    def constrain(
        self,
        cone: str,
        entries: list[tuple[Ints, Ints, Floats]],
        bound: Floats,
        size: int = 1,
    ) -> Block:
        """Add rows ``bound - sum of entries (row, variable, value)`` in a cone."""
        block = Block(
            row=np.concatenate([row.ravel() for row, _, _ in entries]),
            column=np.concatenate([column.ravel() for _, column, _ in entries]),
            value=np.concatenate(
                [np.broadcast_to(value, row.shape).ravel() for row, _, value in entries]
            ),
            bound=bound,
            cone=cone,
            size=size,
            start=self._n_rows,
        )
        self._n_rows += len(bound)
        self.blocks.append(block)
        return block

    def solve(self) -> Solution:
        """Run Clarabel; any finite iterate is returned, for others to judge."""
        import clarabel  # noqa: PLC0415 - loading a solver is not part of importing us
        from scipy import sparse  # noqa: PLC0415

        n, m = self.n_variables, self._n_rows
        quadratic = np.zeros(n)
        for index, weight in self._squares:
            np.add.at(quadratic, index, 2 * weight)
        linear = np.zeros(n)
        for index, coefficient in self._costs:
            np.add.at(linear, index, coefficient)
        matrix = sparse.csc_matrix(
            (
                np.concatenate([block.value for block in self.blocks]),
                (
                    np.concatenate([block.row + block.start for block in self.blocks]),
                    np.concatenate([block.column for block in self.blocks]),
                ),
            ),
            shape=(m, n),
        )
        solver = clarabel.DefaultSolver(
            sparse.diags(quadratic, format="csc"),
            linear,
            matrix,
            np.concatenate([block.bound for block in self.blocks]),
            [cone for block in self.blocks for cone in _cones(block, clarabel)],
            _settings(clarabel),
        )
        raw = solver.solve()
        x, z = np.array(raw.x), np.array(raw.z)
        if not (np.isfinite(x).all() and np.isfinite(z).all()):
            message = f"Clarabel found no usable iterate (status {raw.status})."
            raise SolverError(message)
        return Solution(x, z, str(raw.status), int(raw.iterations))


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The engine's last iterate, whatever it thinks of it."""

    x: Floats
    z: Floats
    status: str
    iterations: int

    def dual(self, block: Block) -> Floats:
        """Multipliers of a block's rows."""
        return self.z[block.start : block.start + len(block.bound)]


def _cones(block: Block, clarabel: Any) -> list[Any]:  # noqa: ANN401 - untyped module
    rows = len(block.bound)
    if block.cone == "zero":
        return [clarabel.ZeroConeT(rows)]
    if block.cone == "nonnegative":
        return [clarabel.NonnegativeConeT(rows)]
    if block.cone == "exponential":
        return [clarabel.ExponentialConeT()] * (rows // 3)
    return [clarabel.SecondOrderConeT(block.size)] * (rows // block.size)


def _settings(clarabel: Any) -> Any:  # noqa: ANN401 - untyped module
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = 1e-11
    settings.tol_gap_rel = 1e-11
    settings.tol_feas = 1e-11
    return settings
