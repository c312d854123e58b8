# Every target does its own set-up: only Python 3.11 or newer and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
JOBS ?= auto
OUT ?= demo-output

.PHONY: install demo test test-all check lint package numbers numbers-check docs lock clean help

help:
	@echo "make install  set up .venv with every extra"
	@echo "make demo     measure a sentence and the shipped reviews, print the exponents, write the report"
	@echo "make test     run the tests, but for the slow ones"
	@echo "make test-all run the slow tests too, with every shape and type checked"
	@echo "make check    exactly what CI runs: format, lint, types, tests, demo"
	@echo "make package  the wheel and the sdist, checked"
	@echo "make numbers  measure again what README, docs and pictures show and is older than its code, or NAMES='control'"
	@echo "make numbers-check  what is older than the code that it measures"
	@echo "make docs     the documentation site, in docs/_build (downloads 25 MB)"
	@echo "make lock     renew requirements.lock"

install: $(INSTALLED)

$(INSTALLED): requirements.lock pyproject.toml
	@echo "Installing into $(VENV), once: 2.2 GB on disk, some minutes. First torch, the largest ..."
	$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $$(grep '^torch==' requirements.lock)
	@echo "... then the other $$(grep -vc '^torch==' requirements.lock) packages of requirements.lock ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	@echo "... and wordsens itself."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(INSTALLED)
	$(BIN)/wordsens measure "I love her much" --map rf,raf,relu-raf --out $(OUT)
	$(BIN)/wordsens paper sensitivity --scale quick --workers 2 --out $(OUT)
	$(BIN)/wordsens report $(OUT)

test: $(INSTALLED)
	$(BIN)/python -m pytest --numprocesses $(JOBS) --durations 25 --durations-min 5

test-all: $(INSTALLED)
	$(BIN)/python -m pytest -m "slow or not slow" --jaxtyping-packages=wordsens,beartype.beartype --numprocesses $(JOBS) --durations 25 --durations-min 5

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

check:
	bash .ci/run

package: $(INSTALLED)
	rm -rf dist .package-venv
	$(PYTHON) -m venv .package-venv
	.package-venv/bin/python -m pip install --quiet build twine check-wheel-contents hatchling
	.package-venv/bin/python -m build --no-isolation --outdir dist
	.package-venv/bin/twine check --strict dist/*
	.package-venv/bin/check-wheel-contents dist/*.whl
	rm -rf .package-venv

numbers: $(INSTALLED)
	$(BIN)/python -m benchmarks.numbers $(NAMES)

numbers-check: $(INSTALLED)
	$(BIN)/python -m benchmarks.numbers --check

docs: $(INSTALLED)
	$(BIN)/python docs/cli_page.py
	$(BIN)/python docs/json_page.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement docs/requirements.txt
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build

lock: pyproject.toml
	rm -rf .lock-venv
	$(PYTHON) -m venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet torch==2.13.0 hatchling editables
	.lock-venv/bin/python -m pip install --quiet --editable '.[dev]'
	.lock-venv/bin/python -m pip freeze --exclude-editable --exclude wordsens | sed 's/+cpu$$//' > requirements.lock
	rm -rf .lock-venv

clean:
	rm -rf $(VENV) .lock-venv .package-venv dist docs/_build $(OUT) .pytest_cache .ruff_cache
