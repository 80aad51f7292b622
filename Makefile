# make          what every commit waits for: make check
# make check    lint, types, and the tests that play no track and need no process beside them (a minute on two cores)
# make test     before anything is published: also whole tracks, HTTP, a browser, a kill, a journey of each kind (five
#               to six minutes on two cores)
# make soak     the rest: every kill, every width and scheme, chance through the database (hours). Each time from
#               another seed, which is printed; ARGS="--seed …" runs the same again
# make again    only the tests that failed the last time, one after the other
# make demo     the whole journey on demo data, then the site (ARGS="--reset" afresh, ARGS="--no-serve" without the site)
# make stop     stop the PostgreSQL that the demo and the tests started, and what a killed demo left behind
# make clean    stop them and delete what was made here: var/ (the demo's data too), caches, .venv

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
# What the service runs on, and what tests and benchmarks need besides.
INSTALLED := $(VENV)/.installed
TOOLS := $(VENV)/.tools
ARGS ?=
# Test processes side by side; each has servers of its own (tests/apart.py). JOBS=0: one process. One more than there
# are processors for this process, at most nine: tests that play the running service wait a third of their time.
JOBS ?= $(shell $(PYTHON) -c 'import os; \
	print(1 + min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()))')
# How often each process is killed in a soak.
KILLS ?= 200
PYTEST := $(RUN) -m pytest -p tests.apart -n $(JOBS) --dist worksteal

# Runs a command and mypy beside it; what mypy says comes last, and both have to be well. The tests leave a part of
# the processors idle.
define TYPES_BESIDE
@beside() { \
	$(RUN) -m mypy . > $(VENV)/.types.log 2>&1 & types=$$!; \
	"$$@"; done=$$?; wait $$types; typed=$$?; cat $(VENV)/.types.log; exit $$((done || typed)); }; beside
endef

PIP := $(RUN) -m pip install --quiet --disable-pip-version-check --no-compile

# A module is compiled once, not by every process that loads it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := check
.PHONY: check test soak again lint types demo venv benchmarks stop clean
.NOTPARALLEL:

check: lint
	$(TYPES_BESIDE) $(PYTEST) --tier check $(ARGS)

test: lint
	$(TYPES_BESIDE) $(PYTEST) --tier test $(ARGS)

soak: $(TOOLS)
	KILLS=$(KILLS) $(PYTEST) --tier soak $(ARGS)

# Without a failure on record (lint failed, say) there is nothing to run, and that is a failure too.
again: lint types
	$(PYTEST) -n 0 -v --last-failed --last-failed-no-failures none $(ARGS)

lint: $(TOOLS)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(TOOLS)
	$(RUN) -m mypy .

# exec: Ctrl-C reaches the demo itself, which stops what it started.
demo: $(INSTALLED)
	@exec $(RUN) manage.py demo $(ARGS)

# Each prints its figures; they read ../shared/data where it exists and say so where it does not.
benchmarks: $(TOOLS)
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(RUN) "$$script"; done

venv: $(TOOLS)

# Installed once, and again when a requirement changes. The stamp is written last: a broken installation has none.
$(INSTALLED): requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed; there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another one: make PYTHON=python3.11" >&2; exit 1; }
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "$(PYTHON) cannot make a virtual environment. On Debian: apt install python3-venv" >&2; exit 1; }
	$(PIP) -r requirements.txt
	@touch $@

$(TOOLS): requirements-dev.txt requirements-parquet.txt requirements-similarity.txt $(INSTALLED)
	$(PIP) -r requirements-dev.txt
	@touch $@

stop:
	@if [ -x $(RUN) ]; then $(RUN) -m kbpo.embedded stop; fi

clean:
	@if [ -x $(RUN) ]; then $(RUN) -m kbpo.embedded wipe; fi
	rm -rf var .pytest_cache .mypy_cache .ruff_cache .hypothesis staticfiles benchmarks/out $(VENV)
