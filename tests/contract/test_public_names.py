"""The public names: sorted, complete, importable, documented by example."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

import trueup
from contract.project import PACKAGE, ROOT


def test_public_names_are_sorted_and_distinct():
    assert sorted(set(trueup.__all__)) == trueup.__all__


def test_dir_shows_exactly_the_public_names():
    assert dir(trueup) == trueup.__all__


def test_type_checkers_see_exactly_the_public_names():
    """The imports for editors and the lazy ones at run time must not drift apart."""
    module = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(
        node
        for node in module.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert sorted(names) == sorted([*trueup.__all__, *trueup._EXTRAS])
    assert names == {name: _full_name(getattr(trueup, name)) for name in names}


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'trueup' has no attribute 'projekt'"):
        trueup.projekt  # noqa: B018


@pytest.mark.parametrize("name", [*trueup.__all__, *trueup._EXTRAS])
def test_every_public_object_has_a_docstring_with_an_example(name):
    docstring = inspect.getdoc(getattr(trueup, name)) or ""

    assert docstring, f"{name} has no docstring"
    assert ">>> " in docstring, f"the docstring of {name} has no example"


def test_every_public_object_is_on_the_reference_page():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    described = re.findall(r"^\.\. auto\w+:: trueup\.(\w+)", page, re.MULTILINE)

    public = sorted([*trueup.__all__, *trueup._EXTRAS])
    assert sorted(set(described) - {"errors"}) == public


@pytest.mark.parametrize(
    "name", [name for name in trueup.__all__ if inspect.isclass(getattr(trueup, name))]
)
def test_every_public_method_has_a_docstring(name):
    cls = getattr(trueup, name)

    missing = [
        method
        for method, value in inspect.getmembers(cls)
        if not method.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property))
        and not inspect.getdoc(value)
    ]

    assert missing == []


def _full_name(value):
    return f"{value.__module__}.{value.__qualname__}"
