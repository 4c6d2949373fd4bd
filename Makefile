# Two commands do all set-up: make demo, make test. Both need only Python 3.11+ and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Compiled imports are 2-3x faster; some machines switch them off.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test hostile interop lint format bench docs clean

demo: $(VENV)/core ## train, diagnose and report on an embedded dataset
	$(RUN)/polariscope demo

test: $(VENV)/dev lint ## everything CI checks
	OMP_NUM_THREADS=1 $(RUN)/pytest -n 2 --dist worksteal --durations=10 -q

hostile: $(VENV)/dev ## damaged files, kills, full disks, odd input; SECONDS=600 SEED=1, by default 10,000 calls
	OMP_NUM_THREADS=1 $(RUN)/python tests/hostile/run.py $(if $(SECONDS),--seconds $(SECONDS)) --seed $(or $(SEED),0)

interop: .venv-interop/done ## models of the real libraries, and the table object × function; outside CI
	KERAS_BACKEND=torch OMP_NUM_THREADS=1 .venv-interop/bin/pytest -q tests/interop
	KERAS_BACKEND=torch OMP_NUM_THREADS=1 .venv-interop/bin/python tests/interop/table.py

.venv-interop/done: pyproject.toml
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/pip install --quiet --disable-pip-version-check --editable '.[dev,interop]'
	touch $@

lint: $(VENV)/dev
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .
	$(RUN)/mypy

format: $(VENV)/dev
	$(RUN)/ruff check --fix .
	$(RUN)/ruff format .

bench: $(VENV)/dev ## ratios measured side by side in one run; not part of the tests
	for script in benchmarks/*.py; do $(RUN)/python $$script || exit 1; done

docs: $(VENV)/core ## the pages that are written from the package: concepts, references, glossary, constants, signatures
	$(RUN)/python docs/concepts.py
	$(RUN)/python docs/references.py
	$(RUN)/python docs/glossary.py
	$(RUN)/python docs/sizing_constants.py
	$(RUN)/python docs/signatures.py

$(VENV)/bin/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(PIP) --editable .
	touch $@

$(VENV)/dev: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/core

clean:
	rm -rf $(VENV) .venv-interop .pytest_cache .mypy_cache .ruff_cache build dist
