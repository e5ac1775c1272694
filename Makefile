# Two commands for a newcomer: `make demo`, which needs little, and `make test`, which installs everything into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
READY_DOCS := $(VENV)/.ready-docs
LIGHT := .venv-demo
READY_LIGHT := $(LIGHT)/.ready
# Two processes, one thread each: with more, they wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov --cov-report=term --durations=15

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check format bench docs clean

help:  ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## Make the virtual environment with everything in it.

NEW_ENOUGH = @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "error: Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) -V). Try make PYTHON=python3.12"; exit 1; }

$(READY): pyproject.toml constraints.txt
	$(NEW_ENOUGH)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(READY_LIGHT): pyproject.toml constraints.txt
	$(NEW_ENOUGH)
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[watch]'
	@touch $@

# In .venv if it is there already, or else in an environment of its own, which does without torch.
demo: $(if $(wildcard $(READY)),$(READY),$(READY_LIGHT))  ## Adapt from one person to another on real data and write transpl-demo/report.html.
	$(dir $<)bin/transpl demo --out transpl-demo

check: $(READY)  ## Lint, types, rooms.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check  ## All checks and the fast tests, with coverage.
	$(PYTEST)

test-all: check  ## Also the tests that take minutes, and more examples of the others.
	$(PYTEST) -m "" --hypothesis-profile thorough

format: $(READY)  ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## Measure speed as ratios within one run; writes benchmarks/out/bench.json.
	$(BIN)/python -m benchmarks

docs: $(READY_DOCS)  ## Build the documentation into docs/_build/html; writes its generated pages anew.
	$(BIN)/python docs/generate_methods.py
	$(BIN)/python docs/generate_results.py
	$(BIN)/python docs/generate_reproduction.py
	$(BIN)/python docs/generate_leaderboard.py
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

$(READY_DOCS): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	@touch $@

clean:  ## Remove what was built; keeps results.
	rm -rf $(VENV) $(LIGHT) build dist docs/_build docs/_extra .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .coverage*
