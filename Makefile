PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CRASHES ?= 50
# More than there are cores: half of the time is waiting, for a daemon, a deadline or a server.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, 2 + os.cpu_count()))')

.DEFAULT_GOAL := help

.PHONY: help setup run ui test crash check bench bench-quality down clean

help:  ## Show these commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: $(READY)  ## Create the virtual environment with the pinned packages

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Hace falta Python 3.11, 3.12 o 3.13; usa PYTHON=python3.11" if not (3, 11) <= sys.version_info[:2] < (3, 14) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

run: $(READY)  ## Do the main job: ingest, index, evaluate, promote (again: only what changed)
	@$(BIN)/python -m rag_assets run

ui: $(READY)  ## Serve the Dagster UI with its daemon
	@$(BIN)/python -m rag_assets ui

test: $(READY)  ## Run all tests, with coverage
	@rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -m 'not benchmark' --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

crash: $(READY)  ## Kill indexing and PostgreSQL at random moments, CRASHES times (minutes)
	$(BIN)/python -m tests.crash --crashes $(CRASHES)

check: $(READY)  ## Lint, format, types, layers, SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint --disable-progress-bar sql

bench: $(READY)  ## Measure the embedding models (minutes)
	$(BIN)/python -m tests.benchmarks.bench_embedder

bench-quality: $(READY)  ## Measure every configuration on DATA, a file in the format of SQuAD
	$(BIN)/python -m tests.benchmarks.bench_quality $(DATA)

down: $(READY)  ## Stop the embedded database of this RAG_HOME
	@$(BIN)/rag down

clean: down  ## Stop the database and delete all state of this RAG_HOME and the virtual environment
	rm -rf $${RAG_HOME:-.rag} $(VENV)
