PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready
DOCUMENT_PEERS := .venv-document-peers
DOCUMENT_PEERS_READY := $(DOCUMENT_PEERS)/.ready
API_CLIENT := .venv-api-client
API_CLIENT_READY := $(API_CLIENT)/.ready
CRASHES ?= 50
KILLS ?= 100
KILL_LOG ?= build/kills.jsonl
EXAMPLES ?= 10000
API_URL ?= http://127.0.0.1:8000
CASES ?= 150
RESULTS ?= build/bench
EVERY := hybrid_windows hybrid_weighted hybrid fulltext semantic hybrid_use baseline
TABLES := sample.txt embedder.txt quality.md retrieval.txt questions.md peers.md soak.txt scale.md migration.txt
# More than there are cores: half of the time is waiting, for a daemon, a deadline or a server.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, 2 + os.cpu_count()))')
TESTS = -m pytest -m 'not benchmark and not fuzz' --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help

# Measurements disturb each other.
.NOTPARALLEL:

.PHONY: help setup run ui serve test coverage snapshots crash fuzz api-cases api-client mutation check messages bench bench-data bench-tables bench-quality bench-peers bench-documents down clean

help:  ## Show these commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-13s %s\n", $$1, $$2 }'

setup: $(READY)  ## Create the virtual environment with the pinned packages
	@echo 'Listo. Lo siguiente: «make run» con la muestra, o «$(BIN)/rag init CARPETA» con tus notas. / Ready. Next: "make run" with the sample, or "$(BIN)/rag init FOLDER" with your notes.'

# A line now and then for hundreds of pip's; its errors go past this to the terminal.
define SETUP_PROGRESS
import sys
packages = failed = 0
for line in sys.stdin:
    failed |= line.startswith("FAILED")
    packages += line.startswith("Collecting")
    if line.startswith("Collecting") and packages % 25 == 0:
        print(f"  {packages}…", flush=True)
    if line.startswith("Installing collected"):
        print(f"  {packages}. Se copian; es un minuto o dos. / They are copied: a minute or two.", flush=True)
sys.exit(failed)
endef
export SETUP_PROGRESS

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Hace falta Python 3.11, 3.12 o 3.13; usa PYTHON=python3.11" if not (3, 11) <= sys.version_info[:2] < (3, 14) else 0)'
	@$(PYTHON) -m venv $(VENV)
	@echo 'Se instalan los paquetes de Python en $(VENV): 1,7 GB, de dos a ocho minutos. Descargados: / Installing the Python packages: 1.7 GB, two to eight minutes. Downloaded:'
	@{ $(BIN)/pip install --progress-bar off --disable-pip-version-check --constraint constraints.txt --editable '.[dev]' || echo FAILED; } | $(BIN)/python -c "$$SETUP_PROGRESS"
	@touch $@

run: $(READY)  ## Do the main job: ingest, index, evaluate, promote (again: only what changed)
	@$(BIN)/python -m rag_assets run $(ARGS)

ui: $(READY)  ## Serve the Dagster UI with its daemon
	@$(BIN)/python -m rag_assets ui

serve: $(READY)  ## Serve the HTTP API
	@$(BIN)/rag serve

test: $(READY)  ## Run all tests
	$(BIN)/python $(TESTS)

coverage: $(READY)  ## Run all tests, and see which lines and branches they reach (half as long again)
	@rm -f .coverage .coverage.*
	$(BIN)/coverage run $(TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

snapshots: $(READY)  ## Compare commands, HTTP answers, assets and rankings of the sample with those stored (ONLY=…: some; UPDATE=1: store them)
	$(BIN)/python -m tests.snapshots $(ONLY) $(if $(UPDATE),--update)

crash: $(READY)  ## Kill runs over documents and indexing CRASHES times each (minutes), then every part of the product KILLS times (hours; goes on after those in KILL_LOG)
	$(BIN)/python -m tests.crash.documents --kills $(CRASHES)
	$(BIN)/python -m tests.crash --crashes $(CRASHES) --kills $(KILLS) --log $(KILL_LOG)

fuzz: $(READY)  ## Give every parser and query EXAMPLES hostile inputs (half an hour)
	HYPOTHESIS_PROFILE=fuzz EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -m fuzz tests/fuzz --numprocesses $(WORKERS)

api-cases: $(READY)  ## Ask the API that serves at API_URL thousands of times, as its schema allows and forbids
	$(BIN)/schemathesis run $(API_URL)/openapi.json --phases coverage,fuzzing --max-examples $(CASES) --exclude-checks positive_data_acceptance

$(API_CLIENT_READY): tests/api_client/requirements.txt
	$(PYTHON) -m venv $(API_CLIENT)
	$(API_CLIENT)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

api-client: $(API_CLIENT_READY)  ## Generate a client from the schema of the API that serves at API_URL, and call it (API_KEY: a writer's)
	@mkdir -p build
	PATH=$(CURDIR)/$(API_CLIENT)/bin:$$PATH openapi-python-client generate --url $(API_URL)/openapi.json --output-path build/api-client --overwrite
	PYTHONPATH=build/api-client $(API_CLIENT)/bin/python tests/api_client $(API_URL) $(API_KEY)

mutation: $(READY)  ## Change the core in thousands of places, and list what no test notices (hours)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,mutation]'
	HYPOTHESIS_PROFILE=mutation $(BIN)/mutmut run --max-children 1
	@$(BIN)/mutmut results

messages: $(READY)  ## Bring the translations up to date with the sentences in the code
	@mkdir -p build
	$(BIN)/pybabel --quiet extract --mapping pyproject.toml --no-location --omit-header --sort-output --output build/messages.pot rag_resources rag_assets
	@for language in es fr; do $(BIN)/pybabel --quiet update --locale $$language --input-file build/messages.pot --output-file rag_resources/languages/$$language/messages.po --no-fuzzy-matching --ignore-obsolete --omit-header --no-wrap; done

check: $(READY)  ## Lint, format, types, layers, SQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint --disable-progress-bar sql

bench: bench-data $(READY) $(TABLES:%=$(RESULTS)/%)  ## Measure everything into RESULTS, with DATA as below, and write docs/measurements.md (two to three hours; goes on where it was stopped)
	$(BIN)/python -m benchmarks.measurements $(RESULTS)

bench-tables: $(READY)  ## Write the tables of RESULTS into docs/measurements.md
	$(BIN)/python -m benchmarks.measurements $(RESULTS)

bench-data:
	@test -f '$(DATA)' || { echo 'Falta el fichero de preguntas: make bench DATA=xquad.es.json'; exit 1; }
	@mkdir -p $(RESULTS)

# What is there is not made again: a run that was stopped has lost only the part that it was in.
define made
@date '+%H:%M $(@F)'
$(1)
@mv $@~ $@
endef

$(RESULTS)/sample.txt: SAMPLE = RAG_HOME=$(abspath $(RESULTS))/sample
$(RESULTS)/sample.txt:
	@$(SAMPLE) $(BIN)/rag down > $@~
	@rm -rf $(RESULTS)/sample
	$(call made,$(SAMPLE) $(BIN)/python -m rag_assets run > $@~)
	@$(SAMPLE) $(BIN)/rag down
$(RESULTS)/embedder.txt:
	$(call made,$(BIN)/python -m benchmarks.bench_embedder > $@~)
$(RESULTS)/quality.md:
	$(call made,RAG_LANG=en RAG_HOME=$(abspath $(RESULTS))/bench $(BIN)/rag bench $(DATA) $(EVERY:%=--config %) --paragraphs 1 --paragraphs 5 --markdown $@~)
	@RAG_HOME=$(abspath $(RESULTS))/bench $(BIN)/rag down
$(RESULTS)/retrieval.txt:
	$(call made,$(BIN)/python -m benchmarks.bench_retrieval > $@~)
$(RESULTS)/questions.md: | $(PEERS_READY)
	$(call made,$(BIN)/python -m benchmarks.peers.turns $(DATA) --markdown $@~)
$(RESULTS)/scale.md:
	$(call made,$(BIN)/python -m benchmarks.bench_scale --chunks 10000 100000 1000000 --warm-up 1000 --markdown $@~)
$(RESULTS)/peers.md: | $(PEERS_READY)
	$(call made,$(BIN)/python -m benchmarks.peers $(DATA) --markdown $@~)
$(RESULTS)/migration.txt:
	$(call made,$(BIN)/python -m benchmarks.bench_migration > $@~)
$(RESULTS)/soak.txt:
	$(call made,$(BIN)/python -m benchmarks.soak > $@~)

bench-quality: bench-data $(READY)  ## Measure the configurations on DATA, a file in the format of SQuAD
	$(BIN)/rag bench $(DATA) $(EVERY:%=--config %)

# Apart: their requirements exclude some of our pins.
$(PEERS_READY): benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

bench-peers: $(READY) $(PEERS_READY)  ## Measure LlamaIndex, Haystack and LangChain beside us on DATA
	$(BIN)/python -m benchmarks.peers $(DATA)

$(DOCUMENT_PEERS_READY): benchmarks/document_peers.txt
	$(PYTHON) -m venv $(DOCUMENT_PEERS)
	$(DOCUMENT_PEERS)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

bench-documents: $(READY) $(DOCUMENT_PEERS_READY)  ## Measure the PDF reader, and pdftext and pdfplumber beside it, on the folder DOCUMENTS
	$(BIN)/python -m benchmarks.bench_documents $(DOCUMENTS) --peers $(DOCUMENT_PEERS)/bin/python

down: $(READY)  ## Stop the embedded database of this RAG_HOME
	@$(BIN)/rag down

clean: down  ## Stop the database and delete all state of this RAG_HOME and the virtual environment
	rm -rf $${RAG_HOME:-.rag} $(VENV) $(PEERS) $(DOCUMENT_PEERS) $(API_CLIENT)
