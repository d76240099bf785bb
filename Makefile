PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= auto
BIN     := $(VENV)/bin
# A worker for each core: NumPy needs no threads of its own.
PYTEST  := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

.PHONY: demo test quick long torch lint bench mutants validate judges targets rules rule golden readme clean

$(VENV)/.usable: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tile_eg needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.ready: $(VENV)/.usable
	@echo "setting up what tests and checks need in $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(VENV)/.usable
	$(BIN)/tile-eg run examples/gemm.tile

test: lint
	$(PYTEST)

quick: $(VENV)/.ready
	$(PYTEST) -m 'quick and not long'

long: $(VENV)/.ready
	$(PYTEST) -m long

torch: $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[torch]'
	$(PYTEST) tests/in_torch

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy

golden: $(VENV)/.ready
	$(BIN)/python -m pytest tests/golden --update-golden

readme: $(VENV)/.ready
	$(BIN)/python docs/update_readme.py

mutants: $(VENV)/.ready
	$(BIN)/python -m tests.simulator.mutants

bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks

validate: $(VENV)/.ready
	$(BIN)/python -m benchmarks.validate

judges: $(VENV)/.ready
	$(BIN)/python -m benchmarks.judges $(if $(PYPTO),--pypto $(PYPTO)) $(if $(FIT),--fit $(FIT))

targets: $(VENV)/.ready
	$(BIN)/python -m benchmarks.targets $(if $(CATLASS),--catlass $(CATLASS))

rules: $(VENV)/.ready
	$(BIN)/python -m benchmarks.rules

rule: $(VENV)/.ready
	$(BIN)/python -m benchmarks.rules "$(or $(NAME),$(error which one? make rule NAME=v-axpy))"

clean:
	rm -rf $(VENV) build *.egg-info
