"""Compiled Cholesky factorisation of one dense matrix, in tiles.

Products of tiles of this size are the largest that BLAS libraries leave to one thread:
on a busy machine the threads of a larger product wait for each other, which costs more
than they bring.
"""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats
from trueup.solve._jit import inner

TILE = 64
_NO_PIVOT = 1e-13
"""Pivots this small beside the diagonal are directions without curvature: the solution
keeps still along them."""
_LOCKED = 1e100


@inner
def factorise_core(matrix: Floats, n: int, tiles: Floats) -> None:
    """Factorise the lower triangle of a flat n x n matrix into tiles.

    Tile (i, k) of the factor stands at ``i (i + 1) / 2 + k``; those on the diagonal
    hold inverses, which is all that is needed of them.
    """
    n_tiles = (n + TILE - 1) // TILE
    product = np.empty((TILE, TILE))
    for i in range(n_tiles):
        for k in range(i + 1):
            _read(matrix, n, i, k, tiles[i * (i + 1) // 2 + k])
    for k in range(n_tiles):
        pivot = tiles[k * (k + 1) // 2 + k]
        whole = np.diag(pivot).copy()
        for j in range(k):
            other = tiles[k * (k + 1) // 2 + j]
            np.dot(other, other.T, product)
            pivot -= product
        _invert_factor(pivot, whole, product)
        for i in range(k + 1, n_tiles):
            here = tiles[i * (i + 1) // 2 + k]
            for j in range(k):
                np.dot(
                    tiles[i * (i + 1) // 2 + j], tiles[k * (k + 1) // 2 + j].T, product
                )
                here -= product
            np.dot(here, pivot.T, product)
            here[:] = product


@inner
def _read(matrix: Floats, n: int, i: int, k: int, tile: Floats) -> None:
    """Copy one tile; beyond the edge the matrix goes on as the identity."""
    for r in range(TILE):
        for c in range(TILE):
            row, column = i * TILE + r, k * TILE + c
            if row < n and column < n:
                tile[r, c] = matrix[row * n + column]
            else:
                tile[r, c] = 1.0 if row == column else 0.0


@inner
def _invert_factor(tile: Floats, whole: Floats, inverse: Floats) -> None:
    """Replace a symmetric tile by the inverse of its Cholesky factor."""
    for r in range(TILE):
        for c in range(r):
            total = tile[r, c]
            for k in range(c):
                total -= tile[r, k] * tile[c, k]
            tile[r, c] = total / tile[c, c]
        left = tile[r, r]
        for k in range(r):
            left -= tile[r, k] ** 2
        tile[r, r] = np.sqrt(left) if left > _NO_PIVOT * whole[r] else _LOCKED
    for r in range(TILE):
        for c in range(TILE):
            inverse[r, c] = 0.0
        inverse[r, r] = 1.0
        for k in range(r):
            factor = tile[r, k]
            for c in range(k + 1):
                inverse[r, c] -= factor * inverse[k, c]
        for c in range(r + 1):
            inverse[r, c] /= tile[r, r]
    tile[:] = inverse


@inner
def solve_core(tiles: Floats, n: int, x: Floats) -> None:
    """Solve with the factor in place."""
    n_tiles = (n + TILE - 1) // TILE
    padded = np.zeros(n_tiles * TILE)
    padded[:n] = x
    piece = np.empty(TILE)
    for i in range(n_tiles):
        own = padded[i * TILE : (i + 1) * TILE]
        for k in range(i):
            tile, other = tiles[i * (i + 1) // 2 + k], padded[k * TILE :]
            for r in range(TILE):
                total = 0.0
                for c in range(TILE):
                    total += tile[r, c] * other[c]
                own[r] -= total
        pivot = tiles[i * (i + 1) // 2 + i]
        for r in range(TILE):
            piece[r] = 0.0
            for c in range(r + 1):
                piece[r] += pivot[r, c] * own[c]
        own[:] = piece
    for i in range(n_tiles - 1, -1, -1):
        own = padded[i * TILE : (i + 1) * TILE]
        pivot = tiles[i * (i + 1) // 2 + i]
        piece[:] = 0.0
        for r in range(TILE):
            for c in range(r + 1):
                piece[c] += pivot[r, c] * own[r]
        own[:] = piece
        for k in range(i):
            tile, other = tiles[i * (i + 1) // 2 + k], padded[k * TILE :]
            for r in range(TILE):
                for c in range(TILE):
                    other[c] -= tile[r, c] * own[r]
    x[:] = padded[:n]
