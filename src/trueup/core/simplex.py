"""Small exact operations on rows of the probability simplex."""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats


def project_rows(points: Floats) -> Floats:
    """Euclidean projection of each row onto the simplex, by sorting."""
    descending = -np.sort(-points, axis=1)
    ranks = np.arange(1, points.shape[1] + 1)
    excess = np.cumsum(descending, axis=1) - 1
    active = (descending * ranks > excess).sum(axis=1, keepdims=True)
    threshold = np.take_along_axis(excess, active - 1, axis=1) / active
    projected = np.maximum(points - threshold, 0)
    # The sum is one but for rounding. The compiled loops do exactly the same.
    return projected * (1 / projected.sum(axis=1, keepdims=True))


def normalise_rows(rows: Floats) -> Floats:
    """Clip negatives and divide by the sum: removes rounding, not errors."""
    clipped = np.maximum(rows, 0)
    return clipped / clipped.sum(axis=1, keepdims=True)


def simplex_from_norm(points: Floats) -> Floats:
    """Rows proportional to (x + k)_+ with k such that (x + k)_+ has unit norm."""
    n_rows, n_outcomes = points.shape
    descending = -np.sort(-points, axis=1)
    ranks = np.arange(1, n_outcomes + 1)
    first, second = np.cumsum(descending, axis=1), np.cumsum(descending**2, axis=1)
    discriminant = np.maximum(first**2 - ranks * (second - 1), 0)
    shifts = (np.sqrt(discriminant) - first) / ranks
    # With k entries active the k-th largest must stay positive; the last k that
    # keeps it so is the root, as for the Euclidean projection.
    active = (descending + shifts > 0).sum(axis=1)
    shift = shifts[np.arange(n_rows), active - 1]
    return normalise_rows(points + shift[:, None])
