"""No label can reach fitting, auditing or applying."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import trueup
from contract.project import PACKAGE, SOURCES, name_of

LABEL_FREE = ("api", "core", "solve", "maps", "audit")
FORBIDDEN = {"label", "labels", "y", "y_true", "target", "ground_truth"}
OTHER_MEANING = {"trueup.core.moments.MomentRows.__init__": {"target"}}
"""There a target is the right-hand side of a moment row."""


def _modules(names):
    for name in names:
        if not any((PACKAGE / f"{name}{suffix}").exists() for suffix in ("", ".py")):
            continue  # audit may not be there yet
        module = importlib.import_module(f"trueup.{name}")
        yield module
        for found in pkgutil.walk_packages(
            getattr(module, "__path__", []), f"trueup.{name}."
        ):
            yield importlib.import_module(found.name)


def _public_callables(names):
    """(full name, callable) of public functions, and of public methods of classes."""
    for module in _modules(names):
        for name, value in vars(module).items():
            defined_here = getattr(value, "__module__", None) == module.__name__
            if name.startswith("_") or not defined_here or not callable(value):
                continue
            if inspect.isclass(value):
                yield from _methods(f"{module.__name__}.{name}", value)
            else:
                yield f"{module.__name__}.{name}", value


def _methods(name, cls):
    for method, value in inspect.getmembers(cls, callable):
        if method == "__init__" or not method.startswith("_"):
            yield f"{name}.{method}", value


def _parameters(function):
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some built-in methods have no signature
        return set()


def test_no_public_callable_of_the_label_free_path_takes_labels():
    taking = {
        name: (_parameters(function) & FORBIDDEN) - OTHER_MEANING.get(name, set())
        for name, function in _public_callables(LABEL_FREE)
    }

    assert {name: found for name, found in taking.items() if found} == {}


def test_the_search_sees_what_it_should():
    """It would find labels where they are allowed, and it reaches the front door."""
    label_free = dict(_public_callables(LABEL_FREE))
    evaluation = dict(_public_callables(["evaluate"]))

    assert {"trueup.api.fit", "trueup.maps.report_map.ReportMap.apply"} <= set(
        label_free
    )
    assert "labels" in _parameters(evaluation["trueup.evaluate.metrics.evaluate"])


def test_a_fit_with_labels_is_a_type_error():
    with pytest.raises(TypeError, match="labels"):
        trueup.fit(np.array([0.1, 0.7]), np.array([0.5, 0.5]), labels=[0, 1])


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in SOURCES
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in LABEL_FREE
    ],
    ids=name_of,
)
def test_nothing_label_free_imports_the_evaluation(path):
    """The front door may import it inside a function, when it is asked for."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(module) if path.name != "api.py" else _at_import(module)

    assert [node.lineno for node in nodes if _imports_evaluation(node)] == []


def _at_import(module):
    """Statements that run when a module is imported; not those for type checkers."""
    for node in module.body:
        is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if not is_typing and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from ast.walk(node)


def _imports_evaluation(node):
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        return False
    return any(name.startswith("trueup.evaluate") for name in names)


def test_fitting_and_applying_load_no_evaluation():
    source = (
        "import sys, numpy as np, trueup\n"
        "p, q = np.array([.1, .7]), np.array([.5, .5])\n"
        "trueup.fit(p, q, cells='exact').apply(p)\n"
        "print([name for name in sys.modules if name.startswith('trueup.evaluate')])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )

    assert shown.stdout.strip() == "[]"


def test_applying_a_baseline_takes_no_labels_either():
    """Supervised baselines see labels when they are fitted, never afterwards."""
    applying = {
        name: _parameters(function)
        for name, function in _public_callables(["evaluate"])
        if name.endswith(".apply") and ".baselines." in name
    }

    assert applying
    assert not any(parameters & FORBIDDEN for parameters in applying.values())
