PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test quick lint bench golden clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(BIN)/tile-eg run examples/gemm.tile

test: lint
	$(BIN)/python -m pytest -n 2

quick: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 -m 'not slow'

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/mypy

golden: $(VENV)/.ready
	$(BIN)/python -m pytest tests/golden --update-golden

bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build *.egg-info
