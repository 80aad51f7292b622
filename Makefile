# make          everything that must hold before a commit: lint, types, tests
# make demo     the whole journey on demo data, then the site (ARGS="--reset" afresh, ARGS="--no-serve" without the site)
# make again    only the tests that failed the last time, one after the other
# make kills    two hundred kill -9 in the middle of calls to a marketplace, and as many orders of events (an hour)
# make stop     stop the PostgreSQL and Redis that the demo and the tests started
# make clean    stop them and delete what was made here: var/ (the demo's data too), caches, .venv

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
ARGS ?=
# Test processes side by side; each has servers of its own (tests/apart.py). JOBS=0: one process. Files go out in their
# own order: those with the fewest tests, which would else come last, are the longest, and one process would wait.
JOBS ?= 2

.DEFAULT_GOAL := test
.PHONY: test lint types pytest again kills demo venv benchmarks stop clean
.NOTPARALLEL:

test: lint types pytest

pytest: $(INSTALLED)
	$(RUN) -m pytest -p tests.apart -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Without a failure on record (lint failed, say) there is nothing to run, and that is a failure too.
again: lint types
	$(RUN) -m pytest -p tests.apart -n 0 -v --last-failed --last-failed-no-failures none $(ARGS)

kills: $(INSTALLED)
	KILLS=200 $(RUN) -m pytest tests/annotation/test_mturk_kills.py tests/annotation/test_mturk_machine.py $(ARGS)

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(INSTALLED)
	$(RUN) -m mypy .

# exec: Ctrl-C reaches the demo itself, which stops what it started.
demo: $(INSTALLED)
	@exec $(RUN) manage.py demo $(ARGS)

# Each prints its figures; they read ../shared/data where it exists and say so where it does not.
benchmarks: $(INSTALLED)
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(RUN) "$$script"; done

venv: $(INSTALLED)

# Installed once, and again when a requirement changes. The stamp is written last: a broken installation has none.
$(INSTALLED): requirements.txt requirements-dev.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed; there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another one: make PYTHON=python3.11" >&2; exit 1; }
	@$(RUN) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || { \
		echo "$(PYTHON) cannot make a virtual environment. On Debian: apt install python3-venv" >&2; exit 1; }
	$(RUN) -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

stop:
	@if [ -x $(RUN) ]; then $(RUN) -m kbpo.embedded stop; fi

clean:
	@if [ -x $(RUN) ]; then $(RUN) -m kbpo.embedded wipe; fi
	rm -rf var .pytest_cache .mypy_cache .ruff_cache .hypothesis staticfiles benchmarks/out $(VENV)
