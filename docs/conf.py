"""Sphinx configuration."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "trueup"
author = "The trueup developers"
copyright = f"2026, {author}"
version = release = installed_version("trueup")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"trueup {release}"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"Floats": "Floats", "Ints": "Ints", "Reports": "Reports"}
napoleon_google_docstring = False
# Fields of dataclasses are described once, not again as attributes.
napoleon_use_ivar = True
