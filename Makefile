# Everything runs in virtual environments that are made here: a fresh clone needs make and Python 3.11 or newer.
#
#   make install      the virtual environment
#   make node         the npm packages that tests/clients and tests/conformance drive
#   make run          the tour
#   make test         the suite
#   make test-all     the suite on every Python found
#   make check        linters, types, import contracts
#   make format       rewrite as the formatter has it
#   make bench        measure
#   make wheel-check  build the wheel and use it as a stranger would

PYTHON ?= python3
PYTEST_ARGS ?= -n 2 --dist worksteal
BENCH_ARGS ?=
OTHER_PYTHONS = 3.11 3.12 3.13

BIN = .venv/bin
RUNNABLE = .venv/.runnable
READY = .venv/.ready
NODE = tests/clients/node_modules/.ready tests/conformance/node_modules/.ready
FORMATTED = src tests examples benchmarks .ci

.PHONY: install node run test test-all test-others check format bench wheel-check clean
.DELETE_ON_ERROR:

install: $(READY)

node: $(NODE)

run: $(RUNNABLE)
	@$(BIN)/python examples/tour.py

test: $(READY) $(NODE)
	@$(BIN)/pytest $(PYTEST_ARGS)

# The interpreters that the main environment does not have; test-all adds the main one.
test-others: $(NODE)
	@bash .ci/test_others $(OTHER_PYTHONS)

test-all: test-others
	@$(MAKE) --no-print-directory test

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check $(FORMATTED)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format $(FORMATTED)

bench: $(READY)
	@$(BIN)/python benchmarks/stdio.py $(BENCH_ARGS)
	@$(BIN)/python benchmarks/registry.py

wheel-check: $(READY)
	@$(BIN)/python .ci/wheel_check.py

$(RUNNABLE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Stanchion needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another with make PYTHON=python3.12." >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[demo]'
	@$(BIN)/python -m compileall -q src examples
	@touch $@

$(READY): $(RUNNABLE)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@

# The published TypeScript clients and the conformance suite. Node and npm come from a wheel of the dev extra.
$(NODE): %/node_modules/.ready: %/package.json %/package-lock.json | $(READY)
	@$(BIN)/python .ci/npm.py install --prefix $* --no-save --no-audit --no-fund --loglevel=error
	@touch $@

clean:
	rm -rf .venv .venv-3.* build dist tests/*/node_modules .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
