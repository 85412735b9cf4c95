# Everything starts from Python 3.11 or newer, make and a network; `make help` lists what there is.
# Another interpreter: make clean, then make test PYTHON=/path/to/python3.12

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# An installation knows the directory it was made in: a clone that was moved is installed anew.
PLACE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
INSTALLED := $(VENV)/.installed-$(PLACE)
INSTALLED_SPARK := $(VENV)/.installed-spark-$(PLACE)
INSTALLED_POSTGRES := $(VENV)/.installed-postgres-$(PLACE)
INSTALLED_DEV := $(VENV)/.installed-dev-$(PLACE)
CLASSES := $(VENV)/spark-classes.jsa
PYTHONS := python3 python3.13 python3.12 python3.11 python3.14 python
# One more than the cores of a small machine: a third of the time of a test is waiting, for processes and for the disk.
WORKERS ?= 3
# Tests of one group stay on one worker: sessions of Spark, and the build of the wheel, run one at a time.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup
SERVER_RUN := $(BIN)/python -m tests.server_run -q -n $(WORKERS) --dist loadgroup
CRASH_ROUNDS ?= 500
TRANSACTIONS ?= 100000
FLIPS ?= 10000
TAKEOVERS ?= 10000
FAULTS ?= 1
FAILOVERS ?= 200
MESSAGES ?= 10000000
MINUTES ?= 10
CURVES_DIR ?= /dev/shm
TRANSFERS ?= 117805
# Factor of the sizes of all long forms; part of full sizes, and names of rows, of the benchmarks; kinds of faults.
NIGHTLY ?= 1
SIZE ?= 1
ROWS ?=
KINDS ?=
PICTURES ?= docs/images

# Each target with a short form in the gate: tests/nightly.py names both, and tests/test_nightly.py holds them to it.
LONG := bench crash-sweep curves demo-cluster demo-spark failovers faults flips scale serializability soak takeovers \
	test-postgres transfers

PIP_FAILED = { echo; \
	echo "Installing failed; the lines above are pip's own. Mostly it is the network: pip needs to reach its"; \
	echo "package index. Behind a proxy set HTTPS_PROXY; for an index of your own set PIP_INDEX_URL. Then run"; \
	echo "make again: it carries on where it stopped."; \
	exit 1; } >&2

.DELETE_ON_ERROR:
.PHONY: help demo check test lint types imports generated pytest \
	pytest-postgres format generate hooks lock nightly figures picture clean $(LONG)

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sort | sed 's/:.*##/|/' | \
		while IFS='|' read -r name text; do printf '  make %-15s %s\n' "$$name" "$$text"; done

demo: $(INSTALLED) $(if $(filter postgres%,$(STORE)),$(INSTALLED_POSTGRES))  ## the bank's story, balances checked; STORE=postgresql://... for a new store on a server
	@$(BIN)/txnctl demo $(if $(STORE),--store '$(STORE)')

demo-cluster: $(INSTALLED_POSTGRES)  ## the same on two PostgreSQL servers of its own, of which the primary is killed
	@$(BIN)/python -m txnctl.demo.cluster_story

demo-spark: $(INSTALLED_SPARK)  ## the same on Spark: two streaming queries, and a driver that is killed
	@$(BIN)/python -m txnctl.demo.spark_story

check: lint types imports generated  ## the gate of each commit: no JVM, no kills, nothing slow, a quarter of the examples of models
	MODEL_DIVISOR=4 $(PYTEST) -m 'not jvm and not kills and not slow'

# The part on a server runs beside the tests, as one more worker; what it prints follows theirs.
test: SERVER_LOG = $(VENV)/server-tests.log
test: lint types imports generated $(CLASSES)  ## the complete check, with half of the examples of models
	@$(BIN)/python -m tests.server_run -q -n 1 --dist loadgroup --part >$(SERVER_LOG) 2>&1 & server=$$!; \
	MODEL_DIVISOR=2 $(PYTEST); status=$$?; \
	wait $$server || status=1; cat $(SERVER_LOG); exit $$status

test-postgres: $(INSTALLED_DEV)  ## the tests of storage and processes with their stores on a PostgreSQL server of their own
	$(SERVER_RUN)

lint: $(INSTALLED_DEV)  ## format and lint (ruff)
	$(BIN)/ruff format --check --output-format concise .
	$(BIN)/ruff check .

types: $(INSTALLED_DEV)  ## types (mypy --strict)
	$(BIN)/mypy

imports: $(INSTALLED_DEV)  ## direction of imports (import-linter)
	$(BIN)/lint-imports --no-logo

generated: $(INSTALLED_DEV)  ## man pages, completions and docs/CLI.md are those of the command tree
	$(BIN)/python -m txnctl.generate --check

pytest: $(INSTALLED_DEV) $(CLASSES)  ## the tests alone
	MODEL_DIVISOR=2 $(PYTEST)

pytest-postgres: $(INSTALLED_DEV)  ## a part of test-postgres, in two to three minutes
	$(SERVER_RUN) --part

format: $(INSTALLED_DEV)  ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

hooks: $(INSTALLED_DEV)  ## let git run lint, format and the check of generated files before each commit
	@$(PIP) install -q -c constraints.txt pre-commit || $(PIP_FAILED)
	$(BIN)/pre-commit install

generate: $(INSTALLED)  ## write man pages, completions and docs/CLI.md anew
	$(BIN)/python -m txnctl.generate

lock: $(INSTALLED_DEV)  ## write requirements.lock anew: the versions of constraints.txt with the hashes of their files
	$(BIN)/python -m tests.project.lock

figures: $(INSTALLED_DEV)  ## figures of the code base, beside their bounds: prose, names, types, tests
	@$(BIN)/python -m tests.project.figures

picture: $(INSTALLED)  ## the picture of the README, drawn anew; needs chromium
	@$(BIN)/python -m tests.docs.picture docs/images/report.png

nightly: $(INSTALLED_DEV)  ## every long form, one after the other, on a page in docs/figures; NIGHTLY=0.1 for tenths, goes on after a cut
	@$(BIN)/python -m tests.nightly $(NIGHTLY)

bench: $(INSTALLED)  ## the tables of the benchmarks, beside their goals; ROWS="P1 P2" for some, SIZE=0.1 for tenths
	$(BIN)/python -m benchmarks $(ROWS) --size $(SIZE)

curves: MESSAGES = 1000000
curves: $(INSTALLED_DEV)  ## the cost of each operation on stores of growing sizes; MESSAGES=100000000 for the long form, SIZE=0.1 for tenths
	$(BIN)/python -m benchmarks.curves --messages $(MESSAGES) --size $(SIZE) --svg $(PICTURES)/curves.svg --dir $(CURVES_DIR)

soak: $(INSTALLED_DEV)  ## four days of a busy store in MINUTES, and whether files, memory and latency stay flat
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) --svg $(PICTURES)/soak.svg

crash-sweep: $(INSTALLED_DEV)  ## the crash tests in their long form: CRASH_ROUNDS rounds each, without a time limit
	CRASH_ROUNDS=$(CRASH_ROUNDS) $(BIN)/python -m pytest -q -n $(WORKERS) --timeout=0 -m crash_sweep

flips: $(INSTALLED_DEV)  ## FLIPS bits flipped and pages zeroed, each in a copy: no wrong answer that verify does not find
	$(BIN)/python -m tests.processes.damage $(FLIPS)

faults: $(INSTALLED_DEV)  ## power cuts, kills, refused calls, damage and hostile input in full; FAULTS=0.1 for a tenth
	$(BIN)/python -m tests.faults $(FAULTS) $(or $(SEED),1) $(KINDS)

serializability: $(INSTALLED_DEV)  ## random transactions of processes that are killed, TRANSACTIONS of them, judged
	TRANSACTIONS=$(TRANSACTIONS) $(BIN)/python -m pytest -q -s --timeout=0 tests/processes/test_table_serializability.py

failovers: $(INSTALLED_DEV)  ## a primary is killed FAILOVERS times, and its synchronous standby promoted: nothing acknowledged is lost
	$(BIN)/python -m tests.faults.failovers $(FAILOVERS)

takeovers: $(INSTALLED_DEV)  ## eight processes fight for one topic until it had TAKEOVERS owners, without a time limit
	TAKEOVERS=$(TAKEOVERS) $(BIN)/python -m pytest -q --timeout=0 tests/processes/test_takeovers.py

scale: $(INSTALLED_DEV)  ## the proof beyond one machine: a Spark cluster, MESSAGES, processes killed; STORE=postgresql://... for a server
	$(BIN)/python -m scale --messages $(MESSAGES) $(if $(STORE),--url '$(STORE)')

transfers: $(INSTALLED_DEV)  ## 117,805 transfers, settled in batches of 37 by both engines under kills, every balance compared
	$(BIN)/python -m scale.transfers --transfers $(TRANSFERS)

clean:  ## remove all that make and Python have made
	rm -rf $(VENV) build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Serial on purpose: `make -j` must not start two installations, and the closing line of pytest comes last.
.NOTPARALLEL:

$(BIN)/python:
	@rm -rf $(VENV)
	@for candidate in $(or $(PYTHON),$(PYTHONS)); do \
		if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $(VENV) with $$("$$candidate" -V) ..."; \
			"$$candidate" -m venv $(VENV) && exit 0; \
			rm -rf $(VENV); \
			echo "$$candidate could not make a virtual environment. On Debian and Ubuntu the part that is" >&2; \
			echo "missing comes with: apt-get install python3-venv" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "No Python 3.11 or newer among: $(or $(PYTHON),$(PYTHONS))." >&2; \
	echo "Install one (python.org, your package manager), or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing txnctl into $(VENV) ..."
	@$(PIP) install -q -c constraints.txt setuptools || $(PIP_FAILED)
	@$(PIP) install -q -c constraints.txt --no-build-isolation -e . || $(PIP_FAILED)
	@touch $@

$(INSTALLED_SPARK): $(INSTALLED)
	@echo "Installing PySpark and PyArrow (400 MB) ..."
	@$(PIP) install -q -c constraints.txt --no-build-isolation -e '.[spark]' || $(PIP_FAILED)
	@touch $@

$(INSTALLED_POSTGRES): $(INSTALLED)
	@echo "Installing psycopg ..."
	@$(PIP) install -q -c constraints.txt --no-build-isolation -e '.[postgres]' || $(PIP_FAILED)
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@echo "Installing the tools of the complete check into $(VENV) ..."
	@$(PIP) install -q -c constraints.txt --no-build-isolation -e '.[dev]' || $(PIP_FAILED)
	@touch $@

# Without it the tests run too, and longer.
$(CLASSES): $(INSTALLED_DEV)
	@echo "Collecting the classes that Spark loads, once, for the JVMs of the tests ..."
	@$(BIN)/python -m tests.lean_java >$@.log 2>&1 || echo "That failed, see $@.log; the tests do without."
