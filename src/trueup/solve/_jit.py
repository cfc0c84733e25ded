"""How loops are compiled: once for all processes, and no more than is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def entry(function: Function) -> Function:
    """Compile a function that Python calls; other threads run meanwhile."""
    compiled: Any = njit(cache=True, nogil=True, error_model="numpy")
    return cast("Function", compiled(function))


def inner(function: Function) -> Function:
    """Compile a function that only compiled functions call."""
    compiled: Any = njit(  # type: ignore[call-overload]
        cache=True, error_model="numpy", no_cpython_wrapper=True
    )
    return cast("Function", compiled(function))
