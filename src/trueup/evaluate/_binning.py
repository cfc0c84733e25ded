"""Bins of confidences: equal width as in the paper, or equal mass."""

from __future__ import annotations

import numpy as np

from trueup._validate import Floats, Ints


def equal_width(values: Floats, n_bins: int) -> Ints:
    """Bins ((m-1)/n, m/n]; zero belongs to the first.

    Comparing with the edges k/n themselves, rather than multiplying by n, keeps a
    confidence of exactly 0.3 in the bin that ends there.
    """
    return np.searchsorted(width_edges(n_bins), values, side="left")


def width_edges(n_bins: int) -> Floats:
    """The n - 1 inner edges of equal-width bins."""
    return np.arange(1, n_bins) / n_bins


def mass_edges(values: Floats, weights: Floats, n_bins: int) -> Floats:
    """Inner edges of bins (a, b] of about equal weight.

    An edge is a value that occurs, so equal values always share a bin; where many are
    equal there are fewer bins.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    wanted = reached[-1] * np.arange(1, n_bins) / n_bins
    # Sums of weights miss the wanted share by rounding; do not step over an item.
    place = np.searchsorted(reached, wanted * (1 - 1e-12), side="left")
    edges = np.unique(values[order][place])
    return edges[edges < values.max()]


def equal_mass(values: Floats, weights: Floats, n_bins: int) -> Ints:
    """Bins of about equal weight; equal values are never separated."""
    return np.searchsorted(mass_edges(values, weights, n_bins), values, side="left")
