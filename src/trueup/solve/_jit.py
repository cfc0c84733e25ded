"""How loops are compiled: once for all processes, and no more than is called."""

from __future__ import annotations

from numba import njit

entry = njit(cache=True, error_model="numpy")
"""Compile a function that Python calls."""
inner = njit(cache=True, error_model="numpy", no_cpython_wrapper=True)
"""Compile a function that only compiled functions call."""
