"""Packages whose names load when first used, and that can be called.

A package and its main function may share a name (``trueup.audit``): importing any part
of the package binds that name to the package, so the package answers the call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: import a public name from its home when asked for."""

    def find(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
        if name not in homes:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message)
        home = import_module(homes[name])
        # A package that is called like its main function stands for the function.
        is_itself = home.__name__ == f"{package}.{name}"
        value = home if is_itself else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    return find


class _CallablePackage(ModuleType):
    """A package that stands for its main function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - passed on
        # Tools that describe public names read the same two attributes.
        home = import_module(self.__dict__["__module__"])
        return getattr(home, self.__dict__["__qualname__"])(*args, **kwargs)


def make_callable(package: str, home: str, function: str) -> None:
    """Let calls of the package go to a function in one of its modules."""
    module = sys.modules[package]
    module.__dict__["__module__"], module.__dict__["__qualname__"] = home, function
    module.__class__ = _CallablePackage
