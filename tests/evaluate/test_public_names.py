"""What trueup.evaluate offers: complete, documented by example, light to import."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import trueup.evaluate as package

DESCRIBED = [name for name in package.__all__ if name != "BASELINES"]


def test_names_are_sorted_and_shown():
    assert sorted(set(package.__all__)) == package.__all__
    assert dir(package) == package.__all__


def test_type_checkers_see_exactly_the_public_names():
    module = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    guarded = next(node for node in module.body if isinstance(node, ast.If))
    names = {alias.name for node in guarded.body for alias in node.names}

    assert sorted(names) == package.__all__


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_name_has_a_docstring_with_an_example(name):
    assert ">>> " in (inspect.getdoc(getattr(package, name)) or "")


@pytest.mark.parametrize(
    "name", [name for name in DESCRIBED if inspect.isclass(getattr(package, name))]
)
def test_every_public_method_has_a_docstring(name):
    members = inspect.getmembers(getattr(package, name))
    missing = [
        method
        for method, value in members
        if not method.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property))
        and not inspect.getdoc(value)
    ]

    assert missing == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        package.evalute  # noqa: B018


def test_importing_the_package_loads_none_of_its_parts():
    source = (
        "import sys, trueup.evaluate\n"
        "print([name for name in sys.modules if name.startswith('trueup.evaluate.')\n"
        "       or name in ('scipy', 'sklearn')])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )

    assert shown.stdout.strip() == "[]"
