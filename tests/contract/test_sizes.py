"""Files and functions stay small enough to be one idea each."""

from __future__ import annotations

import ast

import pytest

from contract.project import SOURCES, name_of

MOST_LINES = 400
MOST_BODY_LINES = 40


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_file_is_too_long(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())

    assert n_lines <= MOST_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_function_body_is_too_long(path):
    module = ast.parse(path.read_text(encoding="utf-8"))
    lengths = {
        node.name: _body_lines(node)
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {n: lines for n, lines in lengths.items() if lines > MOST_BODY_LINES} == {}


def _body_lines(function):
    """Lines of a function after its signature and docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0
