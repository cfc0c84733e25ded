"""What trueup.elicit offers: complete, documented by example, light to import."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import trueup
import trueup.elicit as package
from contract.project import ROOT


def test_names_are_sorted_and_all_of_them_resolve():
    assert sorted(package.__all__) == dir(package)
    for name in package.__all__:
        assert getattr(package, name) is not None


@pytest.mark.parametrize("name", [n for n in package.__all__ if n != "TEMPLATES"])
def test_every_name_is_documented_by_example_and_on_the_page(name):
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    described = set(re.findall(r":: trueup\.elicit\.(?:runner\.)?(\w+)", page))

    assert ">>> " in inspect.getdoc(getattr(package, name))
    assert name in described


def test_the_package_stands_for_its_main_function():
    from trueup.elicit.runner import elicit

    assert trueup.elicit is package
    assert package.elicit is elicit
    with pytest.raises(trueup.TrueupError, match="no questions"):
        trueup.elicit([], None, store="nowhere")


def test_importing_it_loads_no_client_and_no_model():
    program = (
        "import sys, trueup.elicit\n"
        "trueup.elicit.read_questions, trueup.elicit.HttpBackend\n"
        "trueup.elicit.elicit\n"
        "print([n for n in ('httpx', 'xllamacpp', 'torch', 'pyarrow')"
        " if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"
