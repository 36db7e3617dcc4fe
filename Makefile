# Two commands do everything: `make run` opens the console on an example fleet, `make test` proves the house.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Tests wait for databases and terminals more than they compute: twice the cores keeps the cores busy.
WORKERS ?= 4
PROGRAMS := tmux ssh sshd pgbouncer faketime
PACKAGES := tmux openssh-client openssh-server pgbouncer faketime
# What `make bench` gives to the bench of the queue, such as --quick or --parts throughput,enqueue.
BENCH ?=
unexport NO_COLOR TEXTUAL_THEME PYTHONDONTWRITEBYTECODE

.PHONY: help run test programs check lint types contracts format bench prove docs screenshots clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("agent-console needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make $(MAKECMDGOALS) PYTHON=python3.12") if sys.version_info < (3, 11) else None'
	@# Half of one would be taken for one the next time.
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "There is no virtual environment to work in. Install the venv module of your Python (Debian, Ubuntu: apt-get install python3-venv), then run make again." >&2; exit 1; }

$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --quiet --editable '.[embedded,server]' --constraint constraints.txt
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.test: $(VENV)/.run tests/server/generator.txt
	$(PIP) install --quiet --editable '.[test]' --constraint constraints.txt
	@# It wants an older typer than the program: it lives apart.
	$(PIP) install --quiet --upgrade --target $(VENV)/generator --no-deps --requirement tests/server/generator.txt
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) install --quiet --editable '.[bench]' --constraint constraints.txt
	@touch $@

run: $(VENV)/.run ## open the console on an embedded database with an example fleet
	@$(BIN)/agent-console demo

test: programs check ## everything that must hold
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

# Journeys need a terminal and an SSH server, others PgBouncer and a clock that lies. Where they can't be installed, those tests say so.
programs:
	@PATH="$$PATH:/usr/sbin:/sbin"; for program in $(PROGRAMS); do command -v $$program >/dev/null || missing=yes; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get install --yes --quiet --no-install-recommends $(PACKAGES) || apt-get update --quiet && \
	apt-get install --yes --quiet --no-install-recommends $(PACKAGES) || true; fi

check: lint types contracts ## lint, strict types, import contracts

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

contracts: $(VENV)/.test
	$(BIN)/lint-imports

format: $(VENV)/.test ## let ruff lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench ## ratios measured in one run: first paint, cursor, bytes to the terminal, the queue beside its peers
	$(BIN)/python bench/first_paint.py --marker Loading -- $(BIN)/agent-console --dsn postgresql://127.0.0.1:1/none
	$(BIN)/python bench/cursor_move.py
	$(BIN)/python -m bench.terminal_bytes
	$(BIN)/python -m bench.terminal_console
	$(BIN)/python -m bench.queue $(BENCH)

prove: $(VENV)/.test ## the long proofs: histories of the queue, what a large fleet, long threads and a long trail cost, a fleet at work
	$(BIN)/python -m bench.proved_tests histories -n $(WORKERS)
	$(BIN)/python -m bench.proved_tests answers -n $(WORKERS)
	$(BIN)/python -m bench.proved_tests pairs -n $(WORKERS)
	$(BIN)/python -m bench.proved_tests attacks -n $(WORKERS)
	$(BIN)/python -m bench.breaking_rules
	@# A mutant that survives is told in the table at the end, which fails then; the other proofs are made all the same.
	-$(BIN)/python -m bench.mutants
	$(BIN)/python -m bench.heartbeats
	$(BIN)/python -m bench.fleet_size
	$(BIN)/python -m bench.messages
	$(BIN)/python -m bench.audit
	$(BIN)/python -m bench.http
	$(BIN)/python -m bench.console_depth
	$(BIN)/python -m bench.console_memory
	$(BIN)/python -m bench.fleet
	$(BIN)/python -m bench.faults --rounds 200
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.faults_report

docs: $(VENV)/.test ## make the generated pages of docs/ anew
	$(BIN)/python -m tests.docs.write

screenshots: $(VENV)/.test ## make the pictures of the README anew
	$(BIN)/python -m bench.screenshots

clean: ## remove what was built here (never your data)
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache
