# Every target makes its own .venv; a machine needs Python 3.11 (3.12, 3.13) and make, nothing else.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# The demo needs less than the tests, and bytecode only of what it runs; an environment that has everything serves it, too.
DEMO := $(if $(wildcard $(READY)),$(READY),.venv/.demo)
LIVE_DEMO := $(if $(wildcard $(READY)),$(READY),.venv/.live-demo)
# Bytecode is kept, also where the environment says otherwise: it saves seconds in every process.
TESTS := OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
PARALLEL := -n 4 --dist loadscope --no-loadscope-reorder

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: demo live-demo install-test check test thorough lint style types fast-tests tests docs bench mutants soak clean

demo: $(DEMO)  ## weigh a simulated payload and show it
	$(BIN)/steelyard demo

live-demo: $(LIVE_DEMO)  ## a simulated controller: move, weigh while moving, set the payload
	$(BIN)/steelyard demo-live

check: style  ## under a minute: lint, types, tests that neither simulate nor start processes
	$(MAKE) --no-print-directory -j 2 types fast-tests

test: style  ## lint, types, all tests but the thorough ones
	$(MAKE) --no-print-directory -j 2 types tests

thorough: $(READY)  ## many seeds, long recordings, the papers' tables, every example of the documents
	$(TESTS) $(PARALLEL) -m thorough

fast-tests: $(READY)
	$(TESTS) -m "not slow and not thorough"

tests: $(READY)
	$(TESTS) $(PARALLEL) -m "not thorough"

lint: style types

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)  ## a site of the documents and the docstrings, searchable without a network: out/site/index.html
	$(INSTALL) '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs out/site

install-test: $(READY)  ## README's install line and `make demo`, each in an empty environment; needs a network
	$(BIN)/python benchmarks/bench_install.py

bench: $(READY)  ## speed and accuracy beside a reference, in one table
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/run.py

mutants: $(READY)  ## 100 small faults in lines that decide: do the tests of the package notice them?
	PYTHONDONTWRITEBYTECODE= $(BIN)/python benchmarks/mutants.py

soak: $(READY)  ## an hour: steps, malformed files, corrupted recordings, killed writers, faults; one table
	$(BIN)/python benchmarks/soak.py

.venv/.demo: pyproject.toml constraints.txt
	@echo "installing what the demo needs (once, about a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) '.[demo]' --no-compile
	@touch $@

.venv/.live-demo: pyproject.toml constraints.txt
	@echo "installing what the live demo needs (once, about a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(INSTALL) '.[demo,live]' --no-compile
	@touch $@

$(READY): pyproject.toml papers/pyproject.toml constraints.txt
	@echo "installing everything, with the tools of the tests (once, a few minutes) ..."
	$(PYTHON) -m venv .venv
	$(INSTALL) '.[dev]' --editable ./papers
	$(INSTALL) '.[franka]' || echo "no pylibfranka for this machine: its tests are skipped"
	touch $@

clean:
	rm -rf .venv build out .pytest_cache .mypy_cache .ruff_cache
